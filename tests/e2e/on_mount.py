#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a program does with the files of a mounted folder, timed: run by the tests' guest on a mount of its kernel. The
result is one line of JSON. The same through a client library is smb_work.py."""

import argparse
import hashlib
import json
import mmap
import os
import random
import time

import random_file


def made(size, seed):
    """The bytes that tcp.pieces gives for a seed."""
    source = random.Random(seed)
    return b"".join(source.randbytes(min(262144, size - at)) for at in range(0, size, 262144))


def read(path, block):
    pieces = []
    began = time.monotonic()
    file = os.open(path, os.O_RDONLY)
    while piece := os.read(file, block):
        pieces.append(piece)
    os.close(file)
    seconds = time.monotonic() - began
    sha = hashlib.sha256()
    for piece in pieces:
        sha.update(piece)
    return {"seconds": seconds, "bytes": sum(map(len, pieces)), "sha256": sha.hexdigest()}


def write(path, block, size, seed):
    data = memoryview(made(size, seed))
    began = time.monotonic()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for at in range(0, size, block):
            piece = data[at:at + block]
            if os.write(file, piece) != len(piece):
                raise OSError("short write")
    finally:
        os.close(file)
    return {"seconds": time.monotonic() - began, "bytes": size, "sha256": hashlib.sha256(data).hexdigest()}


def read_many(path):
    sha = hashlib.sha256()
    began = time.monotonic()
    names = sorted(os.listdir(path))
    for name in names:
        with open(os.path.join(path, name), "rb", buffering=0) as file:
            sha.update(file.read())
    return {"seconds": time.monotonic() - began, "files": len(names), "sha256": sha.hexdigest()}


def write_many(path, count, size, seed):
    data = [made(size, seed + number) for number in range(count)]
    began = time.monotonic()
    for number, content in enumerate(data):
        with open(os.path.join(path, f"file-{number:04}"), "wb", buffering=0) as file:
            file.write(content)
    seconds = time.monotonic() - began
    return {"seconds": seconds, "files": count, "sha256": hashlib.sha256(b"".join(data)).hexdigest()}


def list_folder(path):
    began = time.monotonic()
    with os.scandir(path) as entries:
        sizes = {entry.name: entry.stat().st_size for entry in entries}
    return {"seconds": time.monotonic() - began, "files": len(sizes), "bytes": sum(sizes.values())}


class Path:
    """The file object for random_file.check."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def read(self, at, size):
        found = b""
        while piece := os.pread(self.file, size - len(found), at + len(found)):
            found += piece
        return found

    def write(self, at, data):
        if os.pwrite(self.file, data, at) != len(data):
            raise OSError("short write")

    def truncate(self, size):
        os.ftruncate(self.file, size)

    def flush(self):
        os.fsync(self.file)

    def size(self):
        return os.fstat(self.file).st_size

    def touch_mapped(self):
        """Reads and writes the same bytes through a mapping."""
        if size := self.size():
            with mmap.mmap(self.file, size) as mapped:
                at = size // 2
                mapped[at] = mapped[at]
                mapped.flush()

    def close(self):
        os.close(self.file)


def random_operations(path, operations, seed, offset, mapped, most):
    open(path, "wb").close()
    began = time.monotonic()
    data = random_file.check(lambda: Path(path), operations, seed, most, offset=offset,
                             also=("touch_mapped",) if mapped else ())
    return {"seconds": time.monotonic() - began, "bytes": offset + len(data),
            "sha256_of_rest": hashlib.sha256(data).hexdigest()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("read", "write", "read-many", "write-many", "list", "random"))
    parser.add_argument("path")
    parser.add_argument("--block", type=int, default=65536)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--most", type=int, default=256 * 1024, help="bytes of the file of random operations")
    parser.add_argument("--mapped", action="store_true")
    arguments = parser.parse_args()
    found = {"read": lambda: read(arguments.path, arguments.block),
             "write": lambda: write(arguments.path, arguments.block, arguments.size, arguments.seed),
             "read-many": lambda: read_many(arguments.path),
             "write-many": lambda: write_many(arguments.path, arguments.count, arguments.size, arguments.seed),
             "list": lambda: list_folder(arguments.path),
             "random": lambda: random_operations(arguments.path, arguments.count, arguments.seed, arguments.offset,
                                                 arguments.mapped, arguments.most)}[arguments.what]()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
