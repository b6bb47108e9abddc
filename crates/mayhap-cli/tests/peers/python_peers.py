"""Filters of Python packages, asked from the outside.

    python_peers.py PACKAGE make FILE CAPACITY FPR KIND < keys     writes a filter of the keys
    python_peers.py PACKAGE ask FILE KIND < keys                   prints 1 or 0 for each key

Keys are lines. What KIND means is the package's own matter. A package is imported only when it is asked for.
"""

import hashlib
import sys


class DuckDb:
    """A Parquet file with one column, `key`, in several row groups. KIND is the type of the column."""

    TYPES = {"text": ("VARCHAR", str), "i32": ("INTEGER", int), "i64": ("BIGINT", int)}

    def make(self, file, capacity, fpr, kind, keys):
        import duckdb

        column, read = self.TYPES[kind]
        database = duckdb.connect()
        database.execute(f"CREATE TABLE keys (key {column})")
        database.execute("INSERT INTO keys SELECT unnest($1)", [[read(key) for key in keys]])
        # Only dictionaries get filters, so the dictionary must be allowed to hold all keys of a row group.
        database.execute(
            f"COPY keys TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 2048, DICTIONARY_SIZE_LIMIT {capacity}, "
            f"BLOOM_FILTER_FALSE_POSITIVE_RATIO {fpr})"
        )

    def ask(self, file, kind, keys):
        import duckdb

        column, read = self.TYPES[kind]
        database = duckdb.connect()
        probe = f"SELECT NOT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe('{file}', 'key', $1::{column})"
        return [database.execute(probe, [read(key)]).fetchone()[0] for key in keys]


class PybloomLive:
    """KIND is plain or scalable."""

    def make(self, file, capacity, fpr, kind, keys):
        import pybloom_live

        if kind == "scalable":
            made = pybloom_live.ScalableBloomFilter(initial_capacity=int(capacity), error_rate=float(fpr))
        else:
            made = pybloom_live.BloomFilter(capacity=int(capacity), error_rate=float(fpr))
        for key in keys:
            made.add(key)
        with open(file, "wb") as out:
            made.tofile(out)

    def ask(self, file, kind, keys):
        import pybloom_live

        family = pybloom_live.ScalableBloomFilter if kind == "scalable" else pybloom_live.BloomFilter
        with open(file, "rb") as written:
            opened = family.fromfile(written)
        return [key in opened for key in keys]


class Pyprobables:
    """KIND is plain or expanding."""

    def make(self, file, capacity, fpr, kind, keys):
        import probables

        family = probables.ExpandingBloomFilter if kind == "expanding" else probables.BloomFilter
        made = family(est_elements=int(capacity), false_positive_rate=float(fpr))
        for key in keys:
            made.add(key)
        made.export(file)

    def ask(self, file, kind, keys):
        import probables

        family = probables.ExpandingBloomFilter if kind == "expanding" else probables.BloomFilter
        opened = family(filepath=file)
        return [opened.check(key) for key in keys]


class Rbloom:
    """The hash is the caller's: the first 16 bytes of SHA-256, little-endian. There is one KIND."""

    @staticmethod
    def digest(key):
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little", signed=True)

    def make(self, file, capacity, fpr, kind, keys):
        import rbloom

        made = rbloom.Bloom(int(capacity), float(fpr), self.digest)
        made.update(keys)
        made.save(file)

    def ask(self, file, kind, keys):
        import rbloom

        opened = rbloom.Bloom.load(file, self.digest)
        return [key in opened for key in keys]


class Pyfusefilter:
    """KIND is xor8, xor16, fuse8 or fuse16. Keys are text, which the package hashes to numbers."""

    @staticmethod
    def family(kind):
        import pyfusefilter

        return getattr(pyfusefilter, kind.capitalize())

    def make(self, file, capacity, fpr, kind, keys):
        with open(file, "wb") as out:
            out.write(self.family(kind)(keys).serialize())

    def ask(self, file, kind, keys):
        with open(file, "rb") as written:
            opened = self.family(kind).deserialize(written.read())
        return [opened.contains(key) for key in keys]


class Pyroaring:
    """An exact set of numbers below 2^32. There is one KIND."""

    def make(self, file, capacity, fpr, kind, keys):
        import pyroaring

        with open(file, "wb") as out:
            out.write(pyroaring.BitMap(int(key) for key in keys).serialize())

    def ask(self, file, kind, keys):
        import pyroaring

        with open(file, "rb") as written:
            opened = pyroaring.BitMap.deserialize(written.read())
        return [int(key) in opened for key in keys]


PACKAGES = {
    "duckdb": DuckDb,
    "pybloom_live": PybloomLive,
    "probables": Pyprobables,
    "rbloom": Rbloom,
    "pyfusefilter": Pyfusefilter,
    "pyroaring": Pyroaring,
}


def main():
    package, command, *arguments = sys.argv[1:]
    keys = sys.stdin.buffer.read().decode().split("\n")[:-1]
    peer = PACKAGES[package]()
    if command == "make":
        peer.make(*arguments, keys)
    else:
        print("".join("1" if answer else "0" for answer in peer.ask(*arguments, keys)))


if __name__ == "__main__":
    main()
