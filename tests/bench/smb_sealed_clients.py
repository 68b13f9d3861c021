# SPDX-License-Identifier: Apache-2.0
"""The clients of smb_clients.py with plain, signed or encrypted sessions, and one that behaves like Windows (smb_windows.py)."""

import json
import pathlib

import smb_client
from kernel_client import Mount
from lab import REPOSITORY, SERVER
from smb_clients import Impacket, Kernel, Smbclient, Subject, check

PLAIN = "none"
WINDOWS = pathlib.Path(__file__).parent / "smb_windows.py"
PYTHON = REPOSITORY / "build" / "clients" / "python" / "bin" / "python3"  # with smbprotocol


class ProtectedImpacket(Impacket):
    protection = PLAIN

    def connect(self):
        return smb_client.connect(self.lab, self.smbd, self.dialect, protection=self.protection)


class ProtectedKernel(Kernel):
    protection = PLAIN

    def mount(self):
        words = {PLAIN: (), "sign": ("sign",), "encrypt": ("seal",)}[self.protection]
        return Mount(self.guest, self.smbd, self.dialect, "cache=none", *words)


class ProtectedSmbclient(Smbclient):
    protection = PLAIN

    @property
    def PATIENT(self):  # pylint: disable=invalid-name
        return (*Smbclient.PATIENT, f"--client-protection={'off' if self.protection == PLAIN else self.protection}")


class Smbprotocol(Subject):
    """3.1.1 only. `found` is the last result of the program."""

    name = "smbprotocol"
    protection = PLAIN
    found = None

    @staticmethod
    def is_there():
        return PYTHON.exists()

    def work(self, what, path, **options):
        options |= {"host": SERVER, "user": self.smbd.user, "password": self.smbd.password, "protection": self.protection}
        words = [f"--{name}={value}" for name, value in options.items()]
        said = self.lab.run("client", *self.smbd.knowing_its_name((PYTHON, "-B", WINDOWS, what, path, *words)), seconds=1800)
        self.found = json.loads(said)
        return self.found["seconds"], self.found.get("sha256")

    def read_folder(self, folder):
        return self.work("read-many", folder)

    def write_folder(self, folder, count, size, seed):
        return self.work("write-many", folder, count=count, size=size, seed=seed)

    def list(self, folder, count):
        """Seconds and requests."""
        seconds, _ = self.work("list", folder)
        check(count, self.found["files"], f"{self.found['files']} of {count} names")
        return seconds, self.found["requests"]

    def said(self):
        """For the note."""
        found, files = self.found, self.found["files"]
        return (f"{found['requests']} requests, {found['leases']} leases RWH and {found['durable']} durable handles for {files} files, "
                f"{1000 * found['cpu'] / files:.1f} ms of the client's CPU each; ")


KINDS = {Impacket: ProtectedImpacket, Kernel: ProtectedKernel, Smbclient: ProtectedSmbclient, Smbprotocol: Smbprotocol}
