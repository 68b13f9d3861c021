# SPDX-License-Identifier: Apache-2.0
"""The clients of the scenarios: the list, the abilities of each, and one of them at work. They are the programs in
../clients; this file describes what their libraries can do, not what the pair does."""

import contextlib
import dataclasses
import json
import os
import subprocess
import threading
import time

import guest
import kernel_client
from lab import REPOSITORY
from smb import USER

CLIENTS = REPOSITORY / "tests" / "e2e" / "clients"
BUILT = REPOSITORY / "build" / "clients"
SMB2 = ("2.1", "3.0", "3.1.1")
EVERY_DIALECT = ("NT1", *SMB2)
POLICIES = ("stop", "continue", "close-only")
UNFINISHED = ".new"  # as in ../clients/writing.py


@dataclasses.dataclass(frozen=True)
class Kind:
    """`weight`: how often it is drawn. `flushes`: the library can flush. `behaviour`: how it answers errors by itself, before its
    program can. `is_heavy`: one at a time. `promised`: for which requests its writes are acknowledged early; `if_cached`: for which
    they are where clients that cache files themselves get promises, too; `unpromised`: in which dialects none are; `signs`: in
    which they are only if the far side has the server's key."""

    name: str
    words: tuple
    needs: object = None  # a file that is there when the client can run
    dialects: tuple = EVERY_DIALECT
    asks: tuple = ("none",)
    policies: tuple = POLICIES
    promised: tuple = ("none",)
    if_cached: tuple = ("oplock", "lease")
    unpromised: tuple = ()
    signs: tuple = ()
    flushes: bool = True
    in_place: bool = True  # can write into a file without emptying it
    is_samba: bool = False
    is_kernel: bool = False
    behaviour: str = ""
    is_heavy: bool = False
    weight: int = 2

    def asks_in(self, dialect):
        """SMB1 has no leases; Linux asks for a lease wherever there are leases, and for an oplock elsewhere."""
        if len(self.asks) == 1:
            return self.asks
        known = ("none", "oplock") if dialect == "NT1" else ("none", "lease") if self.is_kernel else self.asks
        return [ask for ask in self.asks if ask in known]

    def may_be_promised(self, dialect, ask, if_cached=False, has_keys=False):
        if dialect in self.signs and not has_keys:
            return False
        return dialect not in self.unpromised and ask in self.promised + (self.if_cached if if_cached else ())

    def is_there(self):
        return self.needs is None or self.needs.exists()


def python(name, interpreter="/usr/bin/python3"):
    return (interpreter, "-B", CLIENTS / f"write_{name}.py")


PYTHON = BUILT / "python" / "bin" / "python3"  # with smbprotocol and pysmb

KINDS = {kind.name: kind for kind in (
    Kind("impacket", python("impacket"), asks=("none", "oplock", "lease", "durable"),
         policies=(*POLICIES, "rename"), weight=6),
    Kind("smbprotocol", python("smbprotocol", PYTHON), PYTHON, SMB2,
         ("none", "oplock", "lease", "durable"), signs=("3.1.1",)),
    # It asks for a durable handle with every open, without the oplock that it takes to be granted one.
    Kind("pysmb", python("pysmb", PYTHON), PYTHON, ("NT1", "2.1"), ("durable",), flushes=False, promised=("durable",),
         unpromised=("NT1",)),
    Kind("libsmbclient", python("libsmbclient"), flushes=False, is_samba=True),
    # It writes all at once, and may have done so before anybody looks what was promised to it.
    Kind("smbclient", python("smbclient"), policies=("close-only",), promised=(), flushes=False, in_place=False, is_samba=True,
         weight=1),
    Kind("go-smb2", (BUILT / "go" / "write",), BUILT / "go" / "write", SMB2, signs=SMB2),
    Kind("jcifs-ng", ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{BUILT}/java/classes:{BUILT}/java/jars/*",
                      "Write"), BUILT / "java" / "classes", flushes=False, behaviour="reconnects", promised=(),  # it reports no error at CLOSE
         is_heavy=True),  # a Java machine takes as long to start as all the others
    Kind("kernel", (CLIENTS / "write_on_mount.py",), guest.FOLDER / "made-by", EVERY_DIALECT, ("none", "oplock", "lease"),
         ("stop", "close-only"), promised=(), is_kernel=True, behaviour="kernel", is_heavy=True, weight=0),  # the guest runs one program
)}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """The work of one client. The bytes of its file follow from the seed."""

    kind: str
    dialect: str
    ask: str
    policy: str
    blocks: int
    size: int
    pace: float  # milliseconds
    timeout: float  # seconds
    in_place: bool
    flush_every: int
    seed: int

    def described(self):
        also = [word for word, is_so in (("in place", self.in_place), (f"flush every {self.flush_every}",
                                                                      self.flush_every)) if is_so]
        return (f"{self.kind} {self.dialect} {self.policy} asks {self.ask}, {self.blocks} x {self.size}, "
                f"pace {self.pace:.0f} ms, timeout {self.timeout:g} s{''.join(', ' + word for word in also)}")


class Writer:
    """A client at work. Its output is in `lines`."""

    def __init__(self, stage, scenario, name, data, share, patience):
        self.scenario, self.name, self.share = scenario, name, share
        self.lines = []
        self.stage = stage
        self.words = self.arguments(name, data, patience)
        self.popen = None
        self.thread = threading.Thread(target=self.read, daemon=True)

    def arguments(self, name, data, patience):
        told, smbd = self.scenario, self.stage.smbd
        options = {"host": self.stage.host, "share": self.share, "user": USER, "password": smbd.password, "name": name, "data": data,
                   "dialect": told.dialect, "blocks": told.blocks, "size": told.size, "policy": told.policy,
                   "ask": told.ask, "flush-every": told.flush_every, "pace": round(told.pace, 1),
                   "timeout": told.timeout, "patience": patience, "configuration": smbd.client_configuration}
        words = [str(word) for option, value in options.items() for word in (f"--{option}", value)]
        return words + (["--in-place"] if told.in_place else [])

    def start(self):
        kind = KINDS[self.scenario.kind]
        words = [*kind.words, *self.words]
        if kind.is_samba:
            words = self.stage.smbd.knowing_its_name(words)
        self.errors = open(self.stage.lab.scratch / f"{self.name}.errors", "wb")
        self.popen = subprocess.Popen(self.stage.lab.words_in("client", words), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True)
        self.thread.start()
        return self

    def read(self):
        for line in self.popen.stdout:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.lines.append({"said": line.strip()})

    def said(self, key):
        return [line[key] for line in list(self.lines) if key in line]

    def is_ready(self):
        return bool(self.said("ready")) or self.has_ended()

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.write("\n")
            self.popen.stdin.flush()

    def progress(self):
        """Blocks that were acknowledged so far; where the client tells of none, those that the server has."""
        if self.scenario.kind != "smbclient":
            return len(self.said("acked"))
        try:
            return self.stage.smbd.path_of(self.name, self.share).stat().st_size // self.scenario.size
        except OSError:
            return 0

    def has_ended(self):
        return self.popen.poll() is not None and not self.thread.is_alive()

    def stop(self):
        """Ends a client that hangs. Its output so far is kept."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, 9)
        self.popen.wait()
        self.thread.join(5)
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.close()
        self.errors.close()

    def end(self):
        """success, failure, or hung where it was stopped."""
        return (self.said("end") or ["hung"])[-1]

    def complaint(self):
        """The standard error of a client that ended without output."""
        return (self.stage.lab.scratch / f"{self.name}.errors").read_text(errors="replace")[-2000:]


class KernelWriter(Writer):
    """On a mount of Linux's own client in the guest, which reports nothing before its program has ended."""

    def start(self):
        self.mounted, self.may_go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        return self

    def is_ready(self):
        return self.mounted.is_set() or self.has_ended()

    def go(self):
        self.may_go.set()

    def work(self):
        told = self.scenario
        # It waits for an answer for as long as the server answers its ECHOs: one every 5 s, not every minute.
        # A mount of SMB1, which has no leases, refuses `nolease`.
        nothing = "cache=none" if told.dialect == "NT1" else "cache=none,nolease"
        options = [nothing if told.ask == "none" else "cache=strict", "echo_interval=5"]
        try:
            with kernel_client.Mount(self.stage.guest, self.stage.smbd, told.dialect, *options, share=self.share,
                                    host=self.stage.host) as mount:
                self.mounted.set()
                self.may_go.wait()
                words = list(self.words)
                words[words.index("--name") + 1] = f"{mount.folder}/{self.name}"
                said = self.stage.guest.python(CLIENTS / "write_on_mount.py", *words, "--no-wait", seconds=240)
                self.lines += [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        except Exception as error:  # pylint: disable=broad-except
            self.lines.append({"error": str(error)[-500:], "call": "guest", "broken": True})
            self.lines.append({"end": self.end() if self.said("end") else "failure"})

    def progress(self):
        try:
            return self.stage.smbd.path_of(self.name, self.share).stat().st_size // self.scenario.size
        except OSError:
            return 0

    def has_ended(self):
        return not self.thread.is_alive()

    def stop(self):
        self.may_go.set()
        self.thread.join(1)

    def complaint(self):
        return self.stage.guest.console_text()[-2000:]


