# SPDX-License-Identifier: Apache-2.0
"""The typical file operations of programs on a share, request by request, each waiting for its answer: copies, many
small files, an office program with its document, a folder listed. They use a client of smb_client.py."""

import hashlib
import random
import time

import smb_client as smb

BLOCK = 65536  # what Windows' redirectors and `cache=none` mounts ask for at once


class Took:
    """`with Took() as took: ...` and then `took.seconds`."""

    seconds = 0.0

    def __enter__(self):
        self.began = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.began


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read_file(client, name, block=BLOCK, oplock=smb.NO_OPLOCK):
    """The whole file, in order, to its end. Gives its bytes."""
    block = min(block, client.largest)
    data = bytearray()
    with client.open(name, oplock=oplock) as file:
        while got := file.read(len(data), block):
            data += got
    return bytes(data)


def write_file(client, name, data, block=BLOCK, oplock=smb.NO_OPLOCK, disposition=smb.OVERWRITE_IF):
    """A new file, in order, closed. What the answer to CLOSE promises is all there when this returns."""
    block = min(block, client.largest)
    view = memoryview(data)
    with client.open(name, smb.READ | smb.WRITE, disposition, oplock=oplock) as file:
        for at in range(0, len(data), block):
            file.write(at, bytes(view[at:at + block]))


def read_many(client, folder):
    """Lists a folder and reads every file whole, one after the other by name. Gives how many, and the SHA-256 of all."""
    names = sorted(client.listing(folder))
    sha = hashlib.sha256()
    for name in names:
        with client.open(f"{folder}/{name}") as file:
            sha.update(file.read(0, min(BLOCK, client.largest)))
    return len(names), sha.hexdigest()


def write_many(client, folder, files):
    for name, data in files.items():
        write_file(client, f"{folder}/{name}", data)


DOCUMENT_REQUESTS, DOCUMENT_READS = 700, 550


def open_document(client, name, size):
    """As an office program opens one: the directory of the archive at its end, then its parts, most of them in order
    and many looked at twice, with the questions about file, volume and neighbours in between. 700 requests, of which
    550 read. Gives the SHA-256 of the file's bytes, all of which it has read."""
    chance = random.Random(size)
    piece = -(-size // 400)
    order = list(range(400))
    for at in range(0, 400, 20):  # parts are read in runs; a few runs are taken out of turn
        if chance.random() < 0.2:
            other = chance.randrange(0, 400, 20)
            order[at:at + 20], order[other:other + 20] = order[other:other + 20], order[at:at + 20]
    reads = [399, 398, 397, 0, 1, 2, *order]
    reads += chance.choices(order, k=DOCUMENT_READS - len(reads))
    others = ["query"] * 90 + ["volume"] * 8 + ["neighbour"] * 25  # a neighbour costs an open and a close
    chance.shuffle(others)
    asked = client.requests
    pieces = {}
    every = len(reads) // len(others)
    with client.open(name, smb.READ, share=smb.SHARE_READ) as file:
        for turn, number in enumerate(reads):
            pieces[number] = file.read(number * piece, piece)
            if turn % every == 0 and others:
                what = others.pop()
                if what == "query":
                    file.query(5 if client.dialect != "NT1" else 0x102)
                elif what == "volume":
                    file.query_volume()
                else:
                    client.open(name, smb.ATTRIBUTES).close()
    return client.requests - asked, sha256(b"".join(pieces[number] for number in range(400)))


def save_document(client, name, data):
    """As an office program saves: a temporary file beside it, flushed and closed; the old one renamed away, the new
    one into its place, the old one removed. Gives how many of its requests were writes."""
    temporary, old = f"{name}.tmp", f"{name}.old"
    pieces = range(0, len(data), BLOCK // 2)
    with client.open(temporary, smb.READ | smb.WRITE, smb.CREATE, smb.SHARE_NONE) as file:
        for at in pieces:
            file.write(at, data[at:at + BLOCK // 2])
        file.flush()
    client.rename(name, old)
    client.rename(temporary, name)
    client.remove(old)
    return len(pieces)
