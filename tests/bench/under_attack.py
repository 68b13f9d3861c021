# SPDX-License-Identifier: Apache-2.0
"""What an attack costs everybody else: one bulk transfer and one-byte exchanges of an honest site over OC-1 with 20 ms,
quiet and while a stranger, a host on the LAN or a rogue peer attacks. The attackers run on the same processors."""

import contextlib
import os
import threading
import time

import conditions
import loads
import stranger
from figures import SHARE, Row, at_least, at_most
from hostile_peer import RESET, HostilePeer, frame, open_record, varint
from lab import SERVER, Lab
from lan_flood_test import Flood as SynFlood
from lan_flood_test import within
from pair import Pair, Site

SECONDS = 10.0
ROGUE = "10.10.100.77"


class RoguePeer:
    """Sends what `words(peer)` yields as fast as the daemon takes it, and dials again whenever the daemon ends the
    session, until the end of the context."""

    def __init__(self, lab, site, words):
        self.lab, self.site, self.words = lab, site, words
        self.sent = self.sessions = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError, AssertionError), HostilePeer(self.lab, self.site, source=ROGUE) as peer:
                self.sessions += 1
                for data in self.words(peer):
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


def dictionary(peer, message, count=1):
    """Frames that carry so many copies of a dictionary message on the control stream."""
    from hostile_peer import CONTROL_STREAM, DICTIONARY, STREAM, record
    data = record(DICTIONARY, message) * count
    at = peer.offsets.get(CONTROL_STREAM, 0)
    peer.offsets[CONTROL_STREAM] = at + len(data)
    return frame(STREAM, varint(CONTROL_STREAM) + varint(at) + data)


def sealed(peer):
    """27 bytes that name 16 MiB which were never sent, with a digest of nothing."""
    hello = b"\x01" + varint(1) + os.urandom(8) + varint(256 << 20)
    yield dictionary(peer, hello)
    number = 0
    while True:
        number += 1
        first = 65536 + (number % 8 << 24)
        yield dictionary(peer, b"\x0b" + varint(first) + varint(16 << 20) + os.urandom(16))


def forget(peer):
    yield dictionary(peer, b"\x01" + varint(1) + os.urandom(8) + varint(256 << 20))
    while True:
        yield dictionary(peer, b"\x0f", 500)


def resets(peer):
    """Of every other stream, so that what is finished has as many gaps as there are streams."""
    stream = 1
    while True:
        words = []
        for _ in range(500):
            words.append(frame(RESET, varint(stream) + b"\1" + varint(0)))
            stream += 4
        yield b"".join(words)


def unfinished_opens(peer):
    """The beginning of an OPEN on one stream after the other."""
    stream = 1
    beginning = open_record(("x" * 255, 80))[:-1]
    while True:
        words = []
        for _ in range(50):
            words.append(frame(2, varint(stream) + varint(0) + beginning))
            stream += 2
        yield b"".join(words)




def attacks(lab, rogue):
    sources = stranger.give_addresses(lab, 256)
    of_lan = within("10.10.1.0/24", ())

    def hellos(count):
        return lambda: stranger.Flood(lab, sources[:count])

    def peer(words):
        return lambda: RoguePeer(lab, rogue, words)

    return {
        "stranger: 1,000 ClientHellos a second, one source": hellos(1),
        "stranger: 1,000 ClientHellos a second, 256 sources": hellos(256),
        "LAN: 2,000 forged SYNs a second": lambda: SynFlood(lab, of_lan, SERVER, 9),
        "peer: SEALED of what was never sent": peer(sealed),
        "peer: FORGET again and again": peer(forget),
        "peer: RESET of every other stream": peer(resets),
        "peer: unfinished OPENs": peer(unfinished_opens),
    }


def measure(lab, sink, echo, seconds):
    """Bits per second of one transfer, and the p99 in µs of the exchanges beside it."""
    found = {}

    def exchange():
        found["exchange"] = loads.run(lab, "exchanges", seconds + 60, to=SERVER, port=echo.port, seconds=seconds)[0]

    beside = threading.Thread(target=exchange)
    beside.start()
    stream = loads.transfer(lab, SERVER, sink.port, seconds=seconds)[0]
    beside.join()
    return stream.bits_per_second, found["exchange"]["p99_us"]


def run(bench):
    seconds = 3.0 if bench.quick else SECONDS
    with Lab("51.84mbit,20") as lab:
        where = conditions.of_lab(lab)
        sink, echo = loads.Server(lab, "sink"), loads.Server(lab, "echo")
        pair = Pair(lab, both={"log": {"level": "warn"}})
        rogue = Site(lab, "branch", "rogue")
        lab.run("branch", "ip", "addr", "add", f"{ROGUE}/24", "dev", "wan0")
        pair.datacenter.settings["peer"].append(
            {"name": "rogue", "fingerprint": rogue.fingerprint, "networks": ["10.10.3.0/24"]})
        with pair:
            measure(lab, sink, echo, seconds)  # warm
            for name, attack in attacks(lab, rogue).items():
                if not bench.wants(name):
                    continue
                quiet, attacked, note = [], [], ""
                for _ in range(bench.times(3, quick=1)):
                    quiet.append(measure(lab, sink, echo, seconds))
                    with attack() as attacker:
                        time.sleep(1)
                        attacked.append(measure(lab, sink, echo, seconds))
                    note = attacker.note() if hasattr(attacker, "note") else f"{attacker.sent} sent"
                bench.report(Row(f"{name}: bulk of another peer, of quiet", SHARE,
                                 [during[0] / before[0] for during, before in zip(attacked, quiet)], at_least(0.9),
                                 note=note, conditions=where))
                bench.report(Row(f"{name}: p99 of an exchange, above quiet", "ms",
                                 [(during[1] - before[1]) / 1000 for during, before in zip(attacked, quiet)],
                                 at_most(20.0), note=f"quiet {quiet[-1][1] / 1000:.1f} ms", conditions=where))
