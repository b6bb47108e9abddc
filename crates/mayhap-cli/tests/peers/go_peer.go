// Go's bits-and-blooms, asked from the outside.
//
//	go_peer make FILE CAPACITY FPR KIND < keys     writes a filter of the keys
//	go_peer ask FILE KIND < keys                   prints 1 or 0 for each key
//
// Keys are lines. KIND is the form of the file: binary, json or gob.
package main

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/bits-and-blooms/bloom"
)

func main() {
	command, file, kind := os.Args[1], os.Args[2], os.Args[len(os.Args)-1]
	lines := bufio.NewScanner(os.Stdin)
	if command == "make" {
		capacity, err := strconv.ParseUint(os.Args[3], 10, 32)
		check(err)
		fpr, err := strconv.ParseFloat(os.Args[4], 64)
		check(err)
		filter := bloom.NewWithEstimates(uint(capacity), fpr)
		for lines.Scan() {
			filter.Add(lines.Bytes())
		}
		check(os.WriteFile(file, encode(filter, kind), 0o644))
	} else {
		content, err := os.ReadFile(file)
		check(err)
		filter := decode(content, kind)
		var answers []byte
		for lines.Scan() {
			if filter.Test(lines.Bytes()) {
				answers = append(answers, '1')
			} else {
				answers = append(answers, '0')
			}
		}
		fmt.Println(string(answers))
	}
	check(lines.Err())
}

func encode(filter *bloom.BloomFilter, kind string) []byte {
	var out bytes.Buffer
	var err error
	switch kind {
	case "binary":
		_, err = filter.WriteTo(&out)
	case "json":
		var text []byte
		text, err = json.Marshal(filter)
		out.Write(text)
	case "gob":
		err = gob.NewEncoder(&out).Encode(filter)
	default:
		err = fmt.Errorf("unknown form %q", kind)
	}
	check(err)
	return out.Bytes()
}

func decode(content []byte, kind string) *bloom.BloomFilter {
	filter := &bloom.BloomFilter{}
	var err error
	switch kind {
	case "binary":
		_, err = filter.ReadFrom(bytes.NewReader(content))
	case "json":
		err = json.Unmarshal(content, filter)
	case "gob":
		err = gob.NewDecoder(bytes.NewReader(content)).Decode(filter)
	default:
		err = fmt.Errorf("unknown form %q", kind)
	}
	check(err)
	return filter
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
