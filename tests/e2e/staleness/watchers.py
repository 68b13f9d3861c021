# SPDX-License-Identifier: Apache-2.0
"""Clients that look at a file or its folder again and again, while others change it: measures how long each change
stays unseen. The clients are those of ../clients; run compares the times with and without the pair."""

import contextlib
import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time

import kernel_client
import smb
import smb_client
from guest import Guest
from lab import SERVER, Lab, until
from pair import Pair
from smb import USER
from writers import CLIENTS, KINDS

sys.path.append(os.fspath(CLIENTS))

from looking import BLOCK, BLOCKS  # pylint: disable=wrong-import-position

RTT_MS = 40
LINE = f"25mbit,{RTT_MS}"
# What a client may see later through the pair than without it.
ALLOWED_MS = 1000 + RTT_MS
# The same where the client holds an oplock or a lease of its own, which the server breaks: no later, but for what two
# measurements of a few round trips differ by beside other work.
ALLOWED_OWN_MS = 5 * RTT_MS
LOOKS = ("held", "opened", "size", "names")
WITHOUT = {("pysmb", "held")}  # what these clients do not do
# Clients that look at a file under their own oplock or lease, and answer its breaks.
OWN = {"impacket": ("oplock", "lease"), "kernel": ("lease",)}
# By whom it is changed: a program on the server, that smbd knows nothing of; a client beside the server; a client through the
# pair (of the direct run: over the line).
CHANGERS = ("local", "client", "neighbour")
BYTES = BLOCK * BLOCKS  # of a file that is looked at
UNSEEN = 60.0  # seconds, after which a change counts as not seen
GUEST_PACE = 3.0  # between two changes that the guest looks for, which tells of none before the end


@dataclasses.dataclass(frozen=True)
class Watch:
    kind: str
    dialect: str
    look: str
    ask: str = "none"

    def name(self):
        return f"{self.kind} {self.dialect} {self.look}" + (f" {self.ask}" if self.ask != "none" else "")

    def allowed_ms(self, changer):
        """What a program on the server changes breaks no oplock."""
        return ALLOWED_OWN_MS if self.ask != "none" and changer != "local" else ALLOWED_MS


def all_watches(kinds, dialects=("NT1", "2.1", "3.1.1")):
    watches = [Watch(kind, dialect, look) for kind in kinds for dialect in dialects for look in LOOKS
               if dialect in KINDS[kind].dialects and kind != "smbclient" and (kind, look) not in WITHOUT]
    return watches + [Watch(kind, dialect, "held", ask) for kind in kinds for dialect in dialects for ask in OWN.get(kind, ())
                      if dialect != "NT1" or ask == "oplock" or KINDS[kind].is_kernel]


def content(shown):
    return shown.encode().ljust(BLOCK, b"\0") * BLOCKS



class Target:
    """A folder with the file that one client looks at, and the clients that change it."""

    def __init__(self, stage, watch):
        self.stage, self.watch = stage, watch
        self.folder = f"folder-{next(stage.numbers)}"
        self.name = f"{self.folder}/file"
        self.path = stage.smbd.share / self.folder / "file"
        self.path.parent.mkdir()
        self.path.write_bytes(content("first"))
        self.turns = itertools.count(1)
        self.clients = {}

    def change(self, changer):
        """Makes something new, and gives what a look will show of it, with the time at which it was there."""
        turn = next(self.turns)
        shown = str(BYTES + turn) if self.watch.look == "size" else f"{changer}-{turn}"
        if changer == "local":
            self.change_locally(shown)
        else:
            self.change_by_client({"client": "server", "neighbour": "client"}[changer], shown)
        return shown, time.time()

    def change_locally(self, shown):
        if self.watch.look == "names":
            (self.path.parent / shown).touch()
            return
        with open(self.path, "r+b") as file:
            file.truncate(int(shown)) if self.watch.look == "size" else file.write(content(shown))

    def change_by_client(self, node, shown):
        """The change is at the server when its file is closed, also where writes are acknowledged early."""
        if node not in self.clients:
            self.clients[node] = smb_client.connect(self.stage.lab, self.stage.smbd, "3.1.1", node=node)
        if self.watch.look == "names":
            self.clients[node].open(f"{self.folder}/{shown}", smb_client.WRITE, smb_client.CREATE).close()
            return
        with self.clients[node].open(self.name, smb_client.READ | smb_client.WRITE) as file:
            file.truncate(int(shown)) if self.watch.look == "size" else file.write(0, content(shown))

    def close(self):
        for client in self.clients.values():
            client.close()


class Stage:
    """A lab with a server, and with the pair unless `direct`."""

    def __init__(self, direct=False, guest=False, settings=None):
        self.direct, self.with_guest, self.settings = direct, guest, settings
        self.numbers = itertools.count(1)
        self.guest = self.pair = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.lab = stack.enter_context(Lab(LINE))
            self.smbd = smb.Smbd(self.lab, self.settings)
            if not self.direct:
                self.pair = stack.enter_context(Pair(self.lab))
            if self.with_guest:
                self.guest = stack.enter_context(Guest(self.lab))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def words(self, watch, target):
        options = {"host": SERVER, "share": "share", "user": USER, "password": self.smbd.password, "name": target.name,
                   "dialect": watch.dialect, "look": watch.look, "ask": watch.ask, "configuration": self.smbd.client_configuration}
        return [str(word) for option, value in options.items() for word in (f"--{option}", value)]

    def delays(self, watch, changes):
        """Of each changer the milliseconds until each of its changes was seen; None: it was not."""
        target = Target(self, watch)
        measured = self.of_guest if KINDS[watch.kind].is_kernel else self.of_program
        try:
            return measured(watch, target, changes)
        finally:
            target.close()

    def of_program(self, watch, target, changes):
        kind = KINDS[watch.kind]
        words = [*kind.words, *self.words(watch, target)]
        if kind.is_samba:
            words = self.smbd.knowing_its_name(words)
        complaints = self.lab.scratch / f"{target.folder}.errors"
        lines, chance = [], random.Random(target.folder)
        with open(complaints, "wb") as errors:
            popen = subprocess.Popen(self.lab.words_in("client", words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=errors, text=True)

        def read():
            for line in popen.stdout:
                with contextlib.suppress(ValueError):
                    lines.append(json.loads(line))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()

        def seen(shown):
            if popen.poll() is not None:
                raise AssertionError(f"{watch.name()} ended: {complaints.read_text(errors='replace')[-2000:]}")
            return next((line["at"] for line in list(lines) if shown in line.get("seen", "")), None)

        found = {changer: [] for changer in CHANGERS}
        try:
            popen.stdin.write("\n")
            popen.stdin.flush()
            until(lambda: seen("file" if watch.look == "names" else str(BYTES) if watch.look == "size" else "first"),
                  what=f"{watch.name()} looks")
            for changer in [changer for _ in range(changes) for changer in CHANGERS]:
                time.sleep(0.1 + chance.random())  # the client looks meanwhile
                shown, made = target.change(changer)
                try:
                    until(lambda shown=shown: seen(shown), UNSEEN)
                    found[changer].append(max(0.0, 1000 * (seen(shown) - made)))
                except AssertionError:
                    seen(shown)  # it still runs
                    found[changer].append(None)
        finally:
            with contextlib.suppress(BrokenPipeError):
                popen.stdin.close()
            try:
                popen.wait(10)
            except subprocess.TimeoutExpired:
                popen.kill()
                popen.wait()
            thread.join(5)
        return found

    def of_guest(self, watch, target, changes):
        """Its clock is compared with the host's; it tells what it has seen at its end."""
        with kernel_client.Mount(self.guest, self.smbd, watch.dialect, "cache=none" if watch.ask == "none" else "cache=strict") as mount:
            words = self.words(watch, target)
            words[words.index("--name") + 1] = f"{mount.folder}/{target.name}"
            ahead = min((self.clock_ahead() for _ in range(3)), key=lambda pair: pair[1])[0]
            last = len(CHANGERS) * changes
            lines = []
            end = str(BYTES + last) if watch.look == "size" else f"{CHANGERS[-1]}-{last}"
            thread = threading.Thread(target=lambda: lines.extend(self.guest.python(
                CLIENTS / "write_on_mount.py", *words, "--no-wait", "--until", end, seconds=240).splitlines()), daemon=True)
            thread.start()
            made = []
            time.sleep(GUEST_PACE)  # it begins to look
            for changer in [changer for _ in range(changes) for changer in CHANGERS]:
                made.append((changer, *target.change(changer)))
                time.sleep(GUEST_PACE)
            thread.join(60)
            said = [json.loads(line) for line in lines if line.startswith("{")]
        found = {changer: [] for changer in CHANGERS}
        for changer, shown, at in made:
            seen = next((line["at"] - ahead for line in said if shown in line.get("seen", "")), None)
            found[changer].append(None if seen is None else max(0.0, 1000 * (seen - at)))
        return found

    def clock_ahead(self):
        """Seconds that the guest's clock is before the host's, and how long it took to ask."""
        asked = time.time()
        told = float(self.guest.python(CLIENTS / "clock.py"))
        answered = time.time()
        return told - (asked + answered) / 2, answered - asked
