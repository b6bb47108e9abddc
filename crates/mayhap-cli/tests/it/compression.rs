//! Compressed input, recognised by its first bytes and not by its name.

use std::io::Write;

use lzma_rust2::{XzOptions, XzWriter};

use crate::runner::{Folder, lines};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    // As the program `zstd` does it.
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const FORMATS: [(&str, Compress); 4] = [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("bzip2", bzip2)];

#[test]
fn every_format_is_read_from_files_and_streams() {
    let folder = Folder::new();
    let text = lines("key-", 50_000);
    folder.mayhap("build -o plain").input(&text).run().ends(0);
    for (name, compress) in FORMATS {
        let packed = compress(text.as_bytes());
        assert!(packed.len() < text.len() / 2, "{name} is compressed");
        folder.write("packed", &packed);
        folder.mayhap("build -o f packed").run().ends(0);
        assert!(folder.read("f") == folder.read("plain"), "{name}");
        folder.mayhap("dedup").input(&packed).run().ends(0).prints(&text);
        folder.mayhap("check -c plain packed -").input(&packed).run().ends(0).prints("100000\n");
    }
}

/// `cat a.gz b.gz` is a file too, and the first may end without a newline.
#[test]
fn several_members_are_one_text() {
    let folder = Folder::new();
    for (name, compress) in FORMATS {
        let packed = [compress(b"a\nb"), compress(b"c\n"), compress(b""), compress(b"d\n")].concat();
        folder.write("packed", packed);
        folder.mayhap("dedup packed").run().ends(0).prints("a\nbc\nd\n");
        println!("{name} is right");
    }
}

#[test]
fn an_empty_text_has_no_records() {
    let folder = Folder::new();
    for (name, compress) in FORMATS {
        folder.write("packed", compress(b""));
        folder.mayhap("dedup --stats packed").run().ends(0).prints("").says("read 0, printed 0");
        println!("{name} is right");
    }
}

#[test]
fn text_that_starts_like_a_compressed_file_is_text() {
    let folder = Folder::new();
    let texts: [&[u8]; 12] = [
        b"BZh9\n",
        b"BZh91AY&S\n",
        b"BZh\n",
        b"BZh91AY",
        b"\x1f\n",
        b"\x1f",
        b"\x1f\x8b",
        b"\x1f\x8b\n",
        b"(\xb5/\n",
        b"\xfd7zX\n",
        b"PK\x03\x04\n",
        b"B\nB2\n",
    ];
    for text in texts {
        let mut expected = text.to_vec();
        if expected.last() != Some(&b'\n') {
            expected.push(b'\n');
        }
        folder.write("text", text);
        folder.mayhap("dedup text").run().ends(0).prints(&expected);
        folder.mayhap("dedup").input(text).run().ends(0).prints(&expected);
    }
}

#[test]
fn compressed_bytes_are_keys_if_that_is_wanted() {
    let folder = Folder::new();
    let packed = gzip(b"a\nb\n");
    folder.write("packed", &packed);
    let mut expected = packed;
    if expected.last() != Some(&b'\n') {
        expected.push(b'\n');
    }
    folder.mayhap("dedup --no-decompress packed").run().ends(0).prints(expected);
}

#[test]
fn truncated_and_damaged_files_are_errors_and_nothing_is_written() {
    let folder = Folder::new();
    // Random digits do not compress so well that the end of the file is all there is.
    let text: String =
        (0..20_000u64).map(|i| format!("{}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    for (name, compress) in FORMATS {
        let packed = compress(text.as_bytes());
        for length in [20, packed.len() / 2, packed.len() - 1] {
            folder.write("packed", &packed[..length]);
            for capacity in ["", "-n 100"] {
                folder
                    .mayhap(&format!("build {capacity} -o f packed"))
                    .run()
                    .ends(2)
                    .says("mayhap: packed: cannot decompress: ");
            }
            folder.mayhap("dedup packed").run().ends(2).says("packed: cannot decompress: ");
        }
        let mut damaged = packed;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        folder.write("packed", damaged);
        folder.mayhap("build -o f packed").run().ends(2).says("packed: cannot decompress: ");
        assert_eq!(folder.names(), ["packed"], "{name}");
    }
}
