# SPDX-License-Identifier: Apache-2.0
"""Linux's own SMB client: mounts in the tests' guest, and what on_mount.py does there."""

import base64
import itertools
import json
import os

from guest import FOLDER
from lab import REPOSITORY, SERVER
from smb import USER

VERSIONS = {"NT1": "1.0,nounix", "2.1": "2.1", "3.0": "3.0", "3.1.1": "3.1.1"}  # nounix: as with a server of Windows
PROGRAM = REPOSITORY / "tests" / "e2e" / "on_mount.py"
FSX = REPOSITORY / "build" / "fsx" / "bin" / "fsx"  # made by tests/guest/setup_fsx, where it can be
_numbers = itertools.count(1)


def is_there():
    return (FOLDER / "made-by").exists()


def knows_tickets():
    """The kernel asks a program for them."""
    return os.path.exists("/sbin/request-key")


def give_tickets(guest, realms, name):
    """The guest's root has the tickets that the realms' client has now, one for the file server of this name included."""
    realms.fetch_ticket(name)
    tickets = base64.b64encode(realms.tickets.read_bytes()).decode()  # not by the host's file: the guest keeps what it has read
    guest.run(f"cp {realms.krb5_conf} /etc/krb5.conf && echo {tickets} | base64 -d > /tmp/krb5cc_0 && "
              f"chmod 600 /tmp/krb5cc_0 && echo {SERVER} {name} >> /etc/hosts")


class Mount:
    """`with Mount(guest, smbd, "3.1.1", "cache=none") as mount: mount.work("read", "file")`. With sec=krb5 or sec=krb5i it
    logs in with tickets, and needs the server's name as `host`."""

    def __init__(self, guest, smbd, dialect, *options, share="share", host=SERVER):
        self.guest = guest
        self.folder = f"/mnt/{next(_numbers)}"
        login = () if any(option.startswith("sec=krb5") for option in options) else (f"password={smbd.password}",)
        # closetimeo=0: close() waits for the server's answer to CLOSE. Otherwise Linux keeps a file open for a second
        # under a handle lease, and what its program has written may still be on its way when close() returns.
        words = ",".join((f"username={USER}", *login, f"vers={VERSIONS[dialect]}", "closetimeo=0", *options))
        self.command = f"mkdir -p {self.folder} && mount -t cifs //{host}/{share} {self.folder} -o {words}"

    def __enter__(self):
        code, said = self.guest.run(self.command, check=False)
        if code != 0:
            said += self.guest.run("dmesg | tail -n 20")
            raise AssertionError(f"mount in the guest: {said}")
        return self

    def __exit__(self, *_):
        self.guest.run(f"umount {self.folder}")

    def fsx(self, operations, seed, seconds=300):
        """The known exerciser of file systems: compares what it reads with what it wrote, ends with an error if that differs."""
        self.guest.run(f"{FSX} -q -N {operations} -S {seed} -P /tmp {self.folder}/fsx-{seed}", seconds=seconds)

    def work(self, what, path, seconds=120, **options):
        """Does one thing of on_mount.py with a path in the share and gives what it found."""
        words = [PROGRAM, what, f"{self.folder}/{path}"]
        for name, value in options.items():
            words += [f"--{name}"] if value is True else [f"--{name}", value]
        return json.loads(self.guest.python(*words, seconds=seconds))
