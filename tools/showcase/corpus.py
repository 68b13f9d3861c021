# SPDX-License-Identifier: Apache-2.0
"""The files that the demo moves: programs, documents and source text that any Debian has, and the next version of an
archive of them. The same system gives the same bytes; how they are moved is in workloads.py."""

import hashlib
import io
import os
import random
import stat
import tarfile

from failure import Failure

# Kinds, where they are, and their share of an archive's bytes.
KINDS = (("programs", ("/usr/bin",), 0.5), ("documents", ("/usr/share/doc",), 0.2),
         ("source text", ("/usr/lib/python3", "/usr/include", "/usr/share/perl"), 0.3))
LARGEST = 4_000_000  # of one file: an archive of 50 MB should not be three programs
# Of so many files one changes: a text gets new lines, a file is replaced by another one, removed, or added.
EDITED, REPLACED, REMOVED, ADDED = 20, 40, 60, 60


class Pool:
    """Files that have not been used yet. Each is given once, so that a later step cannot profit from an earlier one."""

    def __init__(self):
        self.left = {kind: _ordered(folders) for kind, folders, _ in KINDS}

    def take(self, kind, fits=lambda size: True):
        """The next file of a kind as (path, bytes), or None; those that do not fit stay for others."""
        for number, (path, size) in enumerate(self.left[kind]):
            if fits(size):
                del self.left[kind][number]
                try:
                    with open(path, "rb") as file:
                        return path, file.read(LARGEST)
                except OSError:
                    return self.take(kind, fits)
        return None

    def mixture(self, size):
        """Files of all kinds, of about so many bytes together."""
        files, total = [], 0
        for kind, _, share in KINDS:
            wanted, got = size * share, 0
            while got < wanted * 0.98 and (found := self.take(kind, lambda bytes_, most=wanted - got: bytes_ <= most)):
                files.append(found)
                got += len(found[1])
            total += got
        if total < size / 2:
            raise Failure(f"this system has too few files in {', '.join(root for _, roots, _ in KINDS for root in roots)}: "
                          f"{total / 1e6:.1f} MB, but the demo needs {size / 1e6:.1f} MB; choose a slower --link or --quick")
        return sorted(files)

    def small_texts(self, count):
        """Names and bytes of text files of 4 to 20 kB."""
        files = {}
        for _ in range(count):
            found = self.take("source text", lambda size: 4_000 <= size <= 20_000)
            if not found:
                raise Failure(f"this system has fewer than {count} source files of 4 to 20 kB; choose --quick")
            files[f"{len(files):03}-{os.path.basename(found[0])}"] = found[1]
        return files


def _ordered(roots):
    """Regular files and their sizes, in an order that depends on their names alone."""
    found, seen = [], set()
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                inode = (status.st_dev, status.st_ino)
                if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= LARGEST and inode not in seen:
                    seen.add(inode)  # a program with two names would be in the archive twice
                    found.append((path, status.st_size))
    return sorted(found, key=lambda item: hashlib.sha256(os.fsencode(item[0])).digest())


def archive(files):
    """A tar of them, the same bytes each time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, data in files:
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def next_version(files, pool):
    """What a later release of the same files could be, and in words what has changed."""
    chance = random.Random(len(files))
    new, counts = [], {"edited": 0, "replaced": 0, "removed": 0, "new": 0}
    for number, (path, data) in enumerate(files):
        is_text = b"\0" not in data[:4096]
        if number % REMOVED == 7:
            counts["removed"] += 1
            continue
        if number % REPLACED == 11 and (other := _like(pool, data)):
            counts["replaced"] += 1
            data = other[1]
        elif number % EDITED == 3 and is_text:
            counts["edited"] += 1
            data = _edited(data, chance)
        new.append((path, data))
        if number % ADDED == 17 and (other := _like(pool, data)):
            counts["new"] += 1
            new.append(other)
    words = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return new, f"of {len(files)} files {words}"


def _like(pool, data):
    """An unused file of about the same size."""
    for kind, _, _ in KINDS:
        if found := pool.take(kind, lambda size: len(data) / 2 <= size <= len(data) * 1.5):
            return found
    return None


def _edited(data, chance):
    """Three lines put into a text: all that follows them moves."""
    lines = data.splitlines(keepends=True)
    for _ in range(3):
        lines.insert(chance.randint(0, len(lines)), f"changed in revision {chance.getrandbits(64):x}\n".encode())
    return b"".join(lines)
