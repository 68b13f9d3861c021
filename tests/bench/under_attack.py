# SPDX-License-Identifier: Apache-2.0
"""The speed of an honest site's flows while a host on the LAN or a rogue peer attacks, over OC-1 with 20 ms: one
bulk transfer and one-byte exchanges, quiet and attacked in turn. The attackers run on the same processors. For
strangers see strangers.py."""

import contextlib
import os
import threading
import time

import conditions
import loads
from figures import SHARE, Row, at_least, at_most
from hostile_peer import CONTROL_STREAM, DICTIONARY, RESET, STREAM, frame, open_record, record, varint
from lab import DATACENTER, SERVER, Lab
from lan_flood_test import Flood, within
from rogue import Besieged

SECONDS = 10.0
HELLO, SEALED, FORGET = b"\x01", b"\x0b", b"\x0f"  # between block codecs


class Rogue:
    """Sends what `words` yields as fast as the daemon takes it, and dials again whenever the daemon ends the session,
    until the end of the context. It does so from the datacenter's LAN: what is measured is the daemon, and not how two
    sites share a line."""

    def __init__(self, besieged, words):
        self.besieged, self.words = besieged, words
        self.sent = self.sessions = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError, AssertionError), self.besieged.rogue(node="server", to=DATACENTER) as peer:
                self.sessions += 1
                for data in self.words():
                    if self.over.is_set():
                        return
                    peer.send(data)
                    self.sent += len(data)
            self.over.wait(0.2)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(30)

    def note(self):
        return f"{self.sent / 1e6:.1f} MB in {self.sessions} sessions"


class Syns(Flood):
    def note(self):
        return f"{self.sent} SYNs"


def dictionary(messages):
    """The messages in frames of their own on the control stream."""
    at = 0
    for message in messages:
        data = record(DICTIONARY, message)
        yield frame(STREAM, varint(CONTROL_STREAM) + varint(at) + data)
        at += len(data)


def hello():
    return HELLO + varint(1) + os.urandom(8) + varint(256 << 20)


def sealed():
    """Names 16 MiB that never came, with a digest of nothing."""

    def messages():
        yield hello()
        while True:
            yield SEALED + varint(65536) + varint(16 << 20) + os.urandom(16)

    return dictionary(messages())


def forget():
    def messages():
        yield hello()
        while True:
            yield FORGET

    return dictionary(messages())


def resets():
    """Of every other stream, so that what is finished has as many gaps as there are streams."""
    for first in range(1, 1 << 40, 2000):
        yield b"".join(frame(RESET, varint(stream) + b"\1" + varint(0)) for stream in range(first, first + 2000, 4))


def unfinished_opens():
    beginning = open_record(("x" * 255, 80))[:-1]
    for first in range(1, 1 << 40, 100):
        yield b"".join(frame(STREAM, varint(stream) + varint(0) + beginning) for stream in range(first, first + 100, 2))


def attacks(lab, besieged):
    return {
        "LAN: 2,000 forged SYNs a second": lambda: Syns(lab, within("10.10.1.0/24"), SERVER, 9),
        **{f"peer: {name}": lambda words=words: Rogue(besieged, words)
           for name, words in (("SEALED of what never came", sealed), ("FORGET again and again", forget),
                               ("RESET of every other stream", resets), ("unfinished OPENs", unfinished_opens))},
    }


def measure(lab, sink, echo, seconds):
    """Bits per second of one transfer, and the p99 in ms of the exchanges beside it."""
    found = []
    beside = threading.Thread(target=lambda: found.extend(
        loads.run(lab, "exchanges", seconds + 60, to=SERVER, port=echo.port, seconds=seconds)))
    beside.start()
    stream = loads.transfer(lab, SERVER, sink.port, seconds=seconds)[0]
    beside.join()
    return stream.bits_per_second, found[0]["p99_us"] / 1000


def run(bench):
    seconds = 3.0 if bench.quick else SECONDS
    with Lab("51.84mbit,20") as lab, Besieged(lab) as besieged:
        where = conditions.of_lab(lab)
        sink, echo = loads.Server(lab, "sink"), loads.Server(lab, "echo")
        measure(lab, sink, echo, seconds)  # warm
        for name, attack in attacks(lab, besieged).items():
            if not bench.wants(name):
                continue
            quiet, attacked, note = [], [], ""
            for _ in range(bench.times(3, quick=1)):
                quiet.append(measure(lab, sink, echo, seconds))
                with attack() as attacker:
                    time.sleep(1)
                    attacked.append(measure(lab, sink, echo, seconds))
                    note = attacker.note()
            bench.report(Row(f"{name}: bulk of another site keeps", SHARE,
                             [during[0] / before[0] for during, before in zip(attacked, quiet)], at_least(0.9),
                             note=note, conditions=where))
            bench.report(Row(f"{name}: 1-byte exchange of another site, p99 later by", "ms",
                             [during[1] - before[1] for during, before in zip(attacked, quiet)], at_most(20.0),
                             note=f"quiet {quiet[-1][1]:.1f} ms", conditions=where))
