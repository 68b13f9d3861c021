# SPDX-License-Identifier: Apache-2.0
"""Many small files, a large folder, and a file that crosses again, in plain, signed and encrypted sessions of 3.1.1 through one
pair that has the server's keys; plain sessions on the bare line for comparison. Part of smb_sealed."""

import contextlib
import shutil
import time

import kernel_client
import smb_rows
from figures import SHARE, Row, at_most
from reduction_test import text
from smb import DIALECTS
from smb_clients import Kernel, Smbclient, check
from smb_rows import LINES, MB, NOT_LONGER, payload
from smb_sealed_clients import KINDS, PLAIN, Smbprotocol
from transfers import on_line
from web import sha256_of

LINE, DIALECT = "OC-1", "3.1.1"
SEALED = ("sign", "encrypt")
PROTECTIONS = (PLAIN, *SEALED)
NEAR_PLAIN = at_most(1.05)  # times as long as plain
AGAIN = at_most(0.005)  # of its bytes


def run(bench):
    small_files(bench)
    folders(bench)
    again(bench)


def kinds():
    return [kind for kind, is_there in ((Kernel, kernel_client.is_there()), (Smbprotocol, Smbprotocol.is_there())) if is_there]


def with_plain(cases):
    """The cases, (…, protection), each after the plain one that it is compared with."""
    return list(dict.fromkeys(one for case in cases for one in ((*case[:-1], PLAIN), case)))


def plain_of(case):
    return (*case[:-1], PLAIN)


@contextlib.contextmanager
def site(round_trip_ms, cases):
    """The place of smb_rows, and the server's keys at its far side."""
    with smb_rows.site(LINES[LINE], round_trip_ms, cases) as here:
        here.pair.datacenter.settings["smb_server"] = here.smbd.keys()
        yield here


def client(here, kind, protection):
    subject = KINDS[kind](here.lab, here.smbd, DIALECT, here.guest)
    subject.protection = protection
    return subject


def measured(here, cases, measure):
    """What `measure(case, preset)` gives: the plain cases on the bare line, all of them through the pair."""
    return here.by_preset(("A",), lambda preset: {case: measure(case, preset) for case in with_plain(cases)
                                                  if preset or case == plain_of(case)})


def small_files(bench):
    """1,000 files of 10 KB at 80 ms, read after a listing, and written."""
    round_trip, size, count = 0.080, 10_000, 50 if bench.quick else 1000
    cases = [(kind, way, protection) for kind in kinds() for way in ("read", "write") for protection in PROTECTIONS
             if bench.wants(f"files {way} {DIALECT} {protection} {kind.name}")]
    if not cases:
        return
    line_time = size / payload(LINES[LINE]) / round_trip  # in round trips
    with site(80, cases) as here:

        def measure(case, _):
            kind, way, protection = case
            subject = client(here, kind, protection)
            taken = [getattr(subject, f"{way}_many")(count, size) / count / round_trip for _ in range(bench.times(1))]
            return taken, subject.said() if kind is Smbprotocol else ""

        found = measured(here, cases, measure)
        for case in cases:
            kind, way, protection = case
            taken, said = found["A"][case]
            bare, plain = found[None][plain_of(case)][0], found["A"][plain_of(case)][0]
            row = Row(f"{count} files of 10 KB, {way}, {LINE} 80 ms, {DIALECT} {protection}, {kind.name}: round trips for each", "RTT",
                      taken, at_most(1.1 if way == "read" else 2 + line_time), *beside(protection, bare, plain), conditions=here.where)
            row.note = f"{min(bare) / row.measured:.1f} times as fast as plain on the bare line; {said}{here.reasons}"
            bench.report(row)


def beside(protection, bare, plain):
    """What a row is compared with, the name of that, and the goal."""
    return (bare, "bare", NOT_LONGER) if protection == PLAIN else (plain, "plain", NEAR_PLAIN)


def folders(bench):
    """A folder of 5,000 files listed with their attributes at 100 ms, each time another one."""
    round_trip, count = 0.100, 5000
    cases = [(kind, protection) for kind in kinds() for protection in PROTECTIONS
             if bench.wants(f"folder {DIALECT} {protection} {kind.name}")]
    if not cases:
        return
    carried = {}
    with site(100, cases) as here:

        def measure(case, preset):
            subject = client(here, *case)
            name, seed = subject.fresh("large")
            folder = here.smbd.share / name
            folder.mkdir()
            for number in range(count):
                (folder / f"a file with number {seed}-{number:05}.txt").write_bytes(b"x" * (number % 100))
            here.lab.stats(reset=True)
            seconds, requests = subject.list(name, count)
            carried[preset, case] = on_line(here.lab.stats())
            shutil.rmtree(folder)
            return [seconds], f", {requests} requests" if requests else ""

        found = measured(here, cases, measure)
        for case in cases:
            kind, protection = case
            taken, requests = found["A"][case]
            bare, plain = found[None][plain_of(case)][0], found["A"][plain_of(case)][0]
            bench.report(Row(
                f"a folder of {count} files listed, {LINE} 100 ms, {DIALECT} {protection}, {kind.name}", "s", taken,
                at_most(3 * round_trip + carried[None, plain_of(case)] * 8 / LINES[LINE]), *beside(protection, bare, plain),
                conditions=here.where, note=f"plain on the bare line {bare[0] / round_trip:.1f} RTT{requests}; {here.reasons}"))


def again(bench):
    """Text that smbclient reads twice, or writes twice under two names: how much of it is on the line each time."""
    size = (10 if bench.quick else 100) * MB
    cases = [(Smbclient, way, protection) for way in ("read", "write") for protection in PROTECTIONS
             if bench.wants(f"again {way} {DIALECT} {protection}")]
    if not cases:
        return
    with site(100, cases) as here:

        def crossing(case, preset, name, source):
            """Seconds, and the bytes on the line."""
            _, way, protection = case
            options = ("-m", DIALECTS[DIALECT], *client(here, Smbclient, protection).PATIENT)
            here.lab.stats(reset=True)
            began = time.monotonic()
            if way == "read":
                got = here.smbd.get(name, *options, seconds=600)
            else:
                got = here.smbd.put(source, name, *options, seconds=600)
            seconds = time.monotonic() - began
            check(sha256_of(source), got, f"{size} bytes, {case}")
            if preset:
                here.pair.wait_flows(0)
            return seconds, on_line(here.lab.stats())

        def measure(case, preset):
            """The first time and the second, which the bare line does without: it would be the same."""
            taken = []
            for _ in range(bench.times(1)):
                name, seed = client(here, Smbclient, PLAIN).fresh("text")
                source = (here.smbd.share if case[1] == "read" else here.lab.scratch) / name
                source.write_bytes(b"".join(text(size // 10, 10 * seed + piece) for piece in range(10)))
                names = [name] if not preset else [name, name if case[1] == "read" else f"{name}-again"]
                taken.append([crossing(case, preset, called, source) for called in names])
                for path in {source, *(here.smbd.share / called for called in names)}:
                    path.unlink()
            return taken

        found = measured(here, cases, measure)
        for case in cases:
            _, way, protection = case
            shares = {preset: [[crossed / size for _, crossed in turn] for turn in found[preset][one]]
                      for preset, one in (("A", case), (None, plain_of(case)))}
            plain = [turn[1][1] / size for turn in found["A"][plain_of(case)]]
            (first, _), (second, _) = found["A"][case][0]
            bare, _ = found[None][plain_of(case)][0][0]
            bench.report(Row(
                f"{size // MB} MB of text {way} again, {LINE} 100 ms, {DIALECT} {protection}, smbclient: bytes on the line", SHARE,
                [turn[1] for turn in shares["A"]], AGAIN, *(() if protection == PLAIN else (plain, "plain")), conditions=here.where,
                note=f"the first time {100 * shares['A'][0][0]:.1f} %, plain on the bare line {100 * shares[None][0][0]:.1f} %; "
                     f"{first:.1f} s, then {second:.1f} s, bare {bare:.1f} s; {here.reasons}"))
