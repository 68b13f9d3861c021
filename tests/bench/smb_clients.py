# SPDX-License-Identifier: Apache-2.0
"""The SMB clients of the benchmark, each behind the same few calls: what is timed runs from the first request on a file
to the last answer; login and mount are over by then. A wrong byte ends the benchmark."""

import itertools
import os
import time

import smb_client
import smb_work
import tcp
from kernel_client import Mount
from smb import DIALECTS
from transfers import WrongBytes
from web import sha256_of

_seeds = itertools.count(1000)


def made(size, seed):
    return b"".join(tcp.pieces(size, seed))


def check(wanted, got, what):
    if wanted != got:
        raise WrongBytes(f"WRONG BYTES: {what}")


class Subject:
    """One way to use a share. The bytes of every file have never been sent before."""

    def __init__(self, lab, smbd, dialect, guest=None):
        self.lab, self.smbd, self.dialect, self.guest = lab, smbd, dialect, guest

    def fresh(self, kind):
        seed = next(_seeds)
        return f"{kind}-{seed}", seed

    def read(self, size):
        """Seconds for a file of so many bytes."""
        name, seed = self.fresh("there")
        there = self.smbd.make(name, size, seed)
        seconds, sha256 = self.read_file(name)
        check(there, sha256, f"{size} bytes read by {self}")
        (self.smbd.share / name).unlink()
        return seconds

    def write(self, size):
        name, seed = self.fresh("here")
        seconds, sha256 = self.write_file(name, size, seed)
        check(sha256, self.smbd.sha256_of(name), f"{size} bytes written by {self}")
        (self.smbd.share / name).unlink()
        return seconds

    def read_many(self, count, size):
        folder, seed = self.fresh("folder")
        for number in range(count):
            self.smbd.make(f"{folder}/file-{number:04}", size, seed * 100_000 + number)
        there = sha256_of_all(self.smbd.share / folder)
        seconds, sha256 = self.read_folder(folder)
        check(there, sha256, f"{count} files read by {self}")
        return seconds

    def write_many(self, count, size):
        folder, seed = self.fresh("folder")
        (self.smbd.share / folder).mkdir()
        seconds, sha256 = self.write_folder(folder, count, size, seed * 100_000)
        check(sha256, sha256_of_all(self.smbd.share / folder), f"{count} files written by {self}")
        return seconds

    def __str__(self):
        return f"{self.name} {self.dialect}"


def sha256_of_all(folder):
    return smb_work.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir())))


class Impacket(Subject):
    name = "impacket"

    def connect(self):
        return smb_client.connect(self.lab, self.smbd, self.dialect)

    def read_file(self, name):
        with self.connect() as client, smb_work.Took() as took:
            data = smb_work.read_file(client, name)
        return took.seconds, smb_work.sha256(data)

    def write_file(self, name, size, seed):
        data = made(size, seed)
        with self.connect() as client, smb_work.Took() as took:
            smb_work.write_file(client, name, data)
        return took.seconds, smb_work.sha256(data)

    def read_folder(self, folder):
        with self.connect() as client, smb_work.Took() as took:
            _, sha256 = smb_work.read_many(client, folder)
        return took.seconds, sha256

    def write_folder(self, folder, count, size, seed):
        files = {f"file-{number:04}": made(size, seed + number) for number in range(count)}
        with self.connect() as client, smb_work.Took() as took:
            smb_work.write_many(client, folder, files)
        return took.seconds, smb_work.sha256(b"".join(files[name] for name in sorted(files)))

    def list(self, folder, count):
        """Seconds and requests."""
        with self.connect() as client:
            asked = client.requests
            with smb_work.Took() as took:
                found = client.listing(folder)
            check(count, len(found), f"{len(found)} of {count} names")
            return took.seconds, client.requests - asked

    def act_on_names(self, act, count):
        """Seconds for each of as many files."""
        folder, _ = self.fresh("names")
        (self.smbd.share / folder).mkdir()
        taken = []
        with self.connect() as client:
            for number in range(count):
                name = f"{folder}/{number}"
                (self.smbd.share / name).write_bytes(b"x" * number)
                held = client.open(name) if act == "rename while open" else None
                with smb_work.Took() as took:
                    if act == "delete":
                        client.remove(name)
                    elif act == "stat":
                        with client.open(name, smb_client.ATTRIBUTES) as file:
                            check(number, file.size(), f"the size of {name}")
                    else:
                        client.rename(name, f"{name} renamed")
                taken.append(took.seconds)
                if held:
                    held.close()
        left = {path.name for path in (self.smbd.share / folder).iterdir()}
        suffix = {"delete": None, "stat": ""}.get(act, " renamed")
        check(set() if suffix is None else {f"{number}{suffix}" for number in range(count)}, left, f"{act} by {self}")
        return taken

    def open_document(self, size):
        name, seed = self.fresh("document")
        there = self.smbd.make(name, size, seed)
        os.utime(self.smbd.share / name, (1e9, 1e9))  # as documents are: SMB1's times cannot exclude a change of one made just now
        with self.connect() as client, smb_work.Took() as took:
            requests, sha256 = smb_work.open_document(client, name, size)
        check(there, sha256, "the document")
        return took.seconds, requests

    def save_document(self, size):
        name, seed = self.fresh("document")
        self.smbd.make(name, size, seed)
        data = made(size, seed + 1)
        with self.connect() as client:
            asked = client.requests
            with smb_work.Took() as took:
                writes = smb_work.save_document(client, name, data)
            requests = client.requests - asked
        check(smb_work.sha256(data), self.smbd.sha256_of(name), "the saved document")
        return took.seconds, requests - writes


class Kernel(Subject):
    """`cache=none`: each system call is a request that waits for its answer."""

    name = "kernel"

    def work(self, *words, **options):
        with self.mount() as mount:
            return self.found(mount, *words, **options)

    def mount(self):
        return Mount(self.guest, self.smbd, self.dialect, "cache=none")

    @staticmethod
    def found(mount, *words, **options):
        found = mount.work(*words, seconds=1800, **options)
        return found["seconds"], found.get("sha256", found.get("files"))

    def read_file(self, name):
        return self.work("read", name)

    def write_file(self, name, size, seed):
        with self.mount() as mount:
            return self.found(mount, "write", name, size=size, seed=seed)

    def read_folder(self, folder):
        return self.work("read-many", folder)

    def write_folder(self, folder, count, size, seed):
        return self.work("write-many", folder, count=count, size=size, seed=seed)

    def list(self, folder, count):
        seconds, files = self.work("list", folder)
        check(count, files, f"{files} of {count} names")
        return seconds, None


class Smbclient(Subject):
    """Keeps many requests on their way by itself; its login is in the time."""

    name = "smbclient"
    PATIENT = ("--timeout", 600)

    def read_file(self, name):
        target = self.lab.scratch / f"copy-{name}"
        words = self.smbd.words(f"get {name} {target}", "-m", DIALECTS[self.dialect], *self.PATIENT)
        began = time.monotonic()
        self.lab.run("client", *words, seconds=1800)
        seconds = time.monotonic() - began
        sha256 = sha256_of(target)
        target.unlink()
        return seconds, sha256

    def write_file(self, name, size, seed):
        source = self.lab.scratch / f"source-{name}"
        source.write_bytes(made(size, seed))
        words = self.smbd.words(f"put {source} {name}", "-m", DIALECTS[self.dialect], *self.PATIENT)
        began = time.monotonic()
        self.lab.run("client", *words, seconds=1800)
        seconds = time.monotonic() - began
        sha256 = sha256_of(source)
        source.unlink()
        return seconds, sha256
