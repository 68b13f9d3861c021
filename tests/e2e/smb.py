# SPDX-License-Identifier: Apache-2.0
"""File sharing with programs we did not write: Samba's smbd serves folders in a node, smbclient copies files. Clients
that a test leads step by step are in smb_client.py."""

import os
import pathlib
import secrets
import signal
import socket
import subprocess

import tcp
from lab import SERVER, SERVER6, until
from web import sha256_of

# All state is in a folder of its own, so that neither the host's Samba nor another test is met.
GLOBAL = {
    "workgroup": "LAB",
    "netbios name": "LABSERVER",
    "server role": "standalone server",
    "map to guest": "never",
    "passdb backend": "tdbsam",
    "private dir": "{folder}/private",
    "state directory": "{folder}/state",
    "lock directory": "{folder}/lock",
    "cache directory": "{folder}/cache",
    "pid directory": "{folder}/pid",
    "ncalrpc dir": "{folder}/ncalrpc",
    "log file": "{folder}/log.%m",
    "log level": "1",
    "bind interfaces only": "no",
    "disable netbios": "yes",
    "smb ports": "445",
    "server min protocol": "NT1",
    "server signing": "auto",
    "load printers": "no",
    "printing": "bsd",
    "printcap name": "/dev/null",
    "disable spoolss": "yes",
    "dns proxy": "no",
    "smb2 leases": "yes",
    "oplocks": "yes",
    "level2 oplocks": "yes",
    "kernel oplocks": "no",  # else leases and durable handles are off
    "posix locking": "no",
    "durable handles": "yes",
    "ea support": "yes",
    "store dos attributes": "yes",
    "strict sync": "yes",
    "vfs objects": "streams_xattr acl_xattr",
    "ntlm auth": "ntlmv1-permitted",
}

# The client's own state has to have a place too, or smbclient writes to the host's.
CLIENT = {
    "workgroup": "LAB",
    "client min protocol": "NT1",
    "client max protocol": "SMB3",
    "lock directory": "{folder}/client",
    "cache directory": "{folder}/client",
    "state directory": "{folder}/client",
    "private dir": "{folder}/client",
}

USER = "root"  # smbd maps to a Unix user; any other would have to be made on the host
DIALECTS = {"NT1": "NT1", "2.02": "SMB2_02", "2.1": "SMB2_10", "3.0": "SMB3_00", "3.1.1": "SMB3_11"}  # Samba's names


def section(name, settings, folder):
    lines = [f"  {key} = {value}".format(folder=folder) for key, value in settings.items() if value is not None]
    return "\n".join((f"[{name}]", *lines, ""))


class Smbd:
    """A server with the share `share`, whose folder is `.share`. `settings` and `share` are lines of smb.conf that are
    added or changed: Smbd(lab, {"smb encrypt": "off"}, {"oplocks": "no"}); None takes one away. `shares` has more
    shares by name, each over a folder of its own, `smbd.folder_of(name)`. `small="8m"` adds a share `small` of
    that size, in memory, where writing meets the end of the disk. It runs until the lab ends, or, where another is to take its
    place, until its `with` block does. `disk` is one whose power can fail (promises/disk.py), for the share `share`."""

    def __init__(self, lab, settings=None, share=None, shares=None, small=None, node="server", disk=None):
        self.lab, self.node, self.disk = lab, node, disk
        self.folder = lab.scratch / f"smb-{next(lab.counter)}"
        for name in ("private", "state", "lock", "cache", "pid", "ncalrpc", "client"):
            (self.folder / name).mkdir(parents=True, mode=0o755)
        self.small = small
        sections = {"share": share or {}, **({"small": {}} if small else {}), **(shares or {})}
        for name in sections:
            (self.folder / "shares" / name).mkdir(parents=True)
        self.share = self.folder_of("share")
        self.configuration = self.folder / "smb.conf"
        self.configuration.write_text(section("global", {**GLOBAL, **(settings or {})}, self.folder) + "".join(
            section(name, {"path": self.folder_of(name), "read only": "no", **changes}, self.folder)
            for name, changes in sections.items()))
        self.client_configuration = self.folder / "client.conf"
        self.client_configuration.write_text(section("global", CLIENT, self.folder))
        # Samba asks for the name of its own host. Where /etc/hosts does not have it, a name server is asked, and no lab
        # reaches one: each connection would wait for most of a minute.
        self.hosts = self.folder / "hosts"
        self.hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n::1 localhost\n")
        self.password = secrets.token_hex(8)
        self.user = USER
        lab.run(node, "smbpasswd", "-c", self.configuration, "-s", "-a", USER, text=f"{self.password}\n" * 2)
        self.process = None
        self.start()

    def log_in_with(self, connection):
        """Of impacket."""
        connection.login(self.user, self.password)

    def ntlm_hashes(self):
        """A file that opens the logins of its user: [[smb_server]] ntlm_hashes of the far side."""
        listed = self.lab.run(self.node, "pdbedit", "-s", self.configuration, "-L", "-w", self.user)
        path = self.folder / "ntlm_hashes"
        path.touch(mode=0o600)
        path.write_text(f"{self.user}:{listed.split(':')[3]}\n")  # as in the file smbpasswd
        return path

    def keys(self):
        """[[smb_server]] of the far side: its signed and encrypted sessions are opened."""
        return [{"addresses": [SERVER, SERVER6], "ntlm_hashes": str(self.ntlm_hashes())}]

    def folder_of(self, share):
        return self.folder / "shares" / share

    # -- its life

    def start(self):
        """Returns when it accepts connections. All of it but the small share is as it was before a stop."""
        words = ["smbd", "--foreground", "--no-process-group", "--debug-stdout", "-s", self.configuration]
        if self.small:
            # A process started in a namespace has mounts of its own, which go when it does.
            words = ["sh", "-c", 'mount -t tmpfs -o size="$0" small "$1" && shift && exec "$@"', self.small,
                     self.folder_of("small"), *words]
        if self.disk:
            words = self.disk.mounted(self.folder_of("share"), words)
        self.process = self.lab.start(self.node, *self.knowing_its_name(words), name="smbd")
        until(self._answers, what="smbd accepts connections")
        return self

    def _answers(self):
        if not self.process.is_running():
            raise AssertionError(f"smbd ended with {self.process.popen.returncode} at its start\n{self.process.log()}")
        try:
            tcp.connect(self.lab, "127.0.0.1", 445, self.node).close()
            return True
        except ConnectionRefusedError:
            return False

    def stop(self):
        """As an administrator would: clients learn of it by the end of their connections."""
        self.process.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.is_running():
            self.stop()

    def crash(self):
        """Ends it and the processes that serve its clients, at once."""
        everyone = descendants(self.process.pid)
        self.process.kill()
        for pid in everyone:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in everyone), what="smbd is gone")

    def path_of(self, name, share="share"):
        """Where the test finds a file of a share; that of the small one, or on a disk, is in the mounts of smbd alone."""
        path = self.folder_of(share) / name
        return pathlib.Path(f"/proc/{self.process.pid}/root{path}") if share == "small" or self.disk else path

    # -- files

    def make(self, name, size, seed=1):
        """Makes a file in the share and gives its SHA-256."""
        (self.share / name).parent.mkdir(parents=True, exist_ok=True)
        with open(self.share / name, "wb") as file:
            for piece in tcp.pieces(size, seed):
                file.write(piece)
        return sha256_of(self.share / name)

    def sha256_of(self, name, share="share"):
        return sha256_of(self.path_of(name, share))

    # -- smbclient

    def words(self, command, *options, host=SERVER, share="share"):
        """The command line of smbclient that runs one of its commands in a share."""
        return self.knowing_its_name(("smbclient", f"//{host}/{share}", self.password, "-s",
                                       self.client_configuration, "-U", USER, "-c", command, *options))

    def knowing_its_name(self, words):
        """The command line of a program that is Samba's."""
        # What runs inside a namespace has mounts of its own, so the host's file stays as it is.
        mount = 'if [ -e /etc/hosts ]; then mount --bind "$0" /etc/hosts || exit; fi; exec "$@"'
        return ("sh", "-c", mount, self.hosts, *words)

    def smbclient(self, command, *options, node="client", host=SERVER, share="share", seconds=120):
        return self.lab.run(node, *self.words(command, *options, host=host, share=share), seconds=seconds)

    def get(self, name, *options, **where):
        """Copies a file of the share to the client and gives the SHA-256 of the copy."""
        copy = self.lab.scratch / f"copy-{next(self.lab.counter)}"
        self.smbclient(f"get {name} {copy}", *options, **where)
        sha256 = sha256_of(copy)
        copy.unlink()
        return sha256

    def put(self, path, name, *options, **where):
        """Copies a file of the client into the share and gives the SHA-256 of the copy."""
        self.smbclient(f"put {path} {name}", *options, **where)
        return sha256_of(self.folder_of(where.get("share", "share")) / name)


def descendants(pid):
    found = []
    for line in subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split():
        found += [int(line), *descendants(int(line))]
    return found
