# SPDX-License-Identifier: Apache-2.0
"""SMB by clients that wait for each block, Linux's own (`cache=none`, in the guest) and impacket: files read and
written, small files, an office program's document, a large folder, names, each on the bare line and through the pair with the
source's presets B, T and A. Beside them the figures of the source's appliances, and smbclient, which does not wait."""

import contextlib

import conditions
import features
import kernel_client
import smb
from figures import Row, at_least, at_most
from guest import Guest
from lab import Lab
from pair import Pair
from smb_clients import Impacket, Kernel, Smbclient
from transfers import on_line

LINES = {"OC-1": 51.84e6, "T1": 1.544e6}  # bits of IP packets a second
ROUND_TRIPS_MS = (0, 30, 100, 250)
DIALECTS = {"SMB1": "NT1", "3.1.1": "3.1.1"}
MB, KB = 1_000_000, 1024  # sizes of files; the unit of the source's figures

# Read, KB/s, by B, T and A: the University of Amsterdam's tests of a pair of appliances in 2006 (van Helmond, Smeets:
# "Benefits and tradeoffs of application-specific WAN acceleration", tables 10 and 11).
SOURCE = {("T1", 0): (176.6, 76.5, 97.5), ("T1", 30): (131.8, 67.8, 79.4), ("T1", 100): (83.6, 54.6, 73.7),
          ("T1", 250): (42.7, 34.2, 62.0), ("OC-1", 0): (4294.6, 1347.6, 2008.7), ("OC-1", 30): (425.4, 357.6, 1373.4),
          ("OC-1", 100): (126.1, 139.5, 774.7), ("OC-1", 250): (52.3, 59.7, 375.4)}

# What the goals are for: file size by line, and the share of the payload rate that is wanted of A.
GOALS = {"OC-1": ((10 * MB, 0.75), (100 * MB, 0.90)), "T1": ((10 * MB, 0.95),)}
NOT_SLOWER, NOT_LONGER = at_least(0.98), at_most(1 / 0.98)


def run(bench):
    for line, rate in LINES.items():
        for round_trip in ROUND_TRIPS_MS:
            if not bench.quick or (line, round_trip) == ("OC-1", 100):
                transfers(bench, line, rate, round_trip)
    small_files(bench)
    documents(bench)
    folders(bench)
    names(bench)
    pipelined(bench)


def payload(rate):
    """Bytes of TCP payload a second: 1448 of every 1500 IP bytes."""
    return rate / 8 * 1448 / 1500


class Site:
    """A lab with a server, the guest if anything of it is wanted, and the pair, not running yet."""

    def __init__(self, stack, rate, round_trip, with_guest):
        self.lab = stack.enter_context(Lab(f"{rate / 1e6:g}mbit,{round_trip}"))
        self.smbd = smb.Smbd(self.lab)
        self.guest = stack.enter_context(Guest(self.lab)) if with_guest else None
        self.pair = Pair(self.lab, both={"log": {"level": "warn"}})
        self.where = conditions.of_lab(self.lab)

    def subject(self, kind, dialect):
        return kind(self.lab, self.smbd, DIALECTS[dialect], self.guest)

    def by_preset(self, presets, measure):
        """What `measure` gives on the bare line (None) and with each preset, and the reasons that flows were given.
        The link has carried something before, each way."""
        found = {None: measure(None)}
        with self.pair:
            self.subject(Impacket, "3.1.1").read(1 * MB)
            self.subject(Impacket, "3.1.1").write(1 * MB)
            for preset in presets:
                self.pair.branch.set(preset=preset)
                found[preset] = measure(preset)
            self.reasons = features.reasons(self.pair.branch)
        return found


def presets(bench, *others):
    return ("A",) if bench.quick else (*others, "A")


def through(found, case, number):
    """The note on T, where it was measured."""
    return f"T {number(found['T'][case]):.2f}; " if "T" in found else ""


def kinds():
    return (Kernel, Impacket) if kernel_client.is_there() else (Impacket,)


@contextlib.contextmanager
def site(rate, round_trip, cases):
    with contextlib.ExitStack() as stack:
        yield Site(stack, rate, round_trip, any(kind is Kernel for kind, *_ in cases))


def transfers(bench, line, rate, round_trip):
    cases = [(kind, dialect, way) for kind in kinds() for dialect in DIALECTS for way in ("read", "write")
             if bench.wants(f"{way} {line} {round_trip} ms {dialect} {kind.name}")]
    if not cases:
        return
    # So small that a client which waits for each block is done in time, and the same for all that are compared.
    size = 2 * MB if bench.quick or line == "T1" else 10 * MB
    sizes = [size] if bench.quick else sorted({size, *(size for size, _ in GOALS[line])})
    best = payload(rate) / KB
    with site(rate, round_trip, cases) as here:

        def measure(preset):
            found = {}
            for kind, dialect, way in cases:
                subject = here.subject(kind, dialect)
                for amount in sizes if preset == "A" else [size]:
                    found[kind, dialect, way, amount] = [
                        amount / KB / getattr(subject, way)(amount) for _ in range(bench.times(1))]
            return found

        found = here.by_preset(presets(bench, "B", "T"), measure)
        for case in cases:
            kind, dialect, way = case
            for amount in sizes:
                key = (*case, amount)
                goals = dict(GOALS[line])
                compared = amount == size
                notes = [f"{100 * max(found['A'][key]) / best:.1f} % of the line's payload rate"]
                notes += [f"{preset} {found[preset][key][0]:.1f}" for preset in ("B", "T")
                          if key in found.get(preset, {})]
                if way == "read" and compared:
                    notes.append("source B {:g}, T {:g}, A {:g}".format(*SOURCE[line, round_trip]))
                bench.report(Row(
                    f"{way} {amount // MB} MB, {line} {round_trip} ms, {dialect}, {kind.name}: A", "KB/s",
                    found["A"][key], at_least(goals[amount] * best) if amount in goals else None,
                    found[None][key] if compared else None, beside_goal=NOT_SLOWER if compared else None,
                    note="; ".join((*notes, here.reasons)), conditions=here.where))


def small_files(bench):
    """1,000 files of 10 KB at 80 ms, read after a listing, and written."""
    line, rate, round_trip, size = "OC-1", LINES["OC-1"], 0.080, 10_000
    count = 50 if bench.quick else 1000
    cases = [(kind, dialect, way) for kind in kinds() for dialect in DIALECTS for way in ("read", "write")
             if bench.wants(f"files {way} {dialect} {kind.name}")]
    if not cases:
        return
    line_time = size / payload(rate) / round_trip  # in round trips
    with site(rate, 80, cases) as here:

        def measure(_):
            return {case: [getattr(here.subject(case[0], case[1]), f"{case[2]}_many")(count, size) / count / round_trip]
                    for case in cases}

        found = here.by_preset(presets(bench, "T"), measure)
        for case in cases:
            kind, dialect, way = case
            gain = found[None][case][0] / found["A"][case][0]
            bench.report(Row(
                f"{count} files of 10 KB, {way}, {line} 80 ms, {dialect}, {kind.name}: round trips for each", "RTT",
                found["A"][case], at_most(1.1 if way == "read" else 2 + line_time), found[None][case],
                # SMB1 has no leases: its files are not opened ahead (proxy/modules/smb/README.md).
                beside_goal=at_most(0.1) if way == "read" and dialect != "SMB1" else NOT_LONGER,
                conditions=here.where,
                note=f"{gain:.1f} times as fast as bare; " + through(found, case, lambda got: got[0]) + here.reasons))


def documents(bench):
    """5 MB at 100 ms, opened and saved by the requests of an office program (../e2e/smb_work.py)."""
    rate, round_trip = LINES["OC-1"], 0.100
    size = 1 * MB if bench.quick else 5 * MB
    cases = [(Impacket, dialect) for dialect in DIALECTS if bench.wants(f"document {dialect}")]
    if not cases:
        return
    with site(rate, 100, cases) as here:

        def measure(_):
            return {case: (here.subject(*case).open_document(size), here.subject(*case).save_document(size))
                    for case in cases}

        found = here.by_preset(presets(bench, "T"), measure)
        for case in cases:
            for turn, act in enumerate(("opened", "saved")):
                bare, (seconds, count) = found[None][case][turn][0], found["A"][case][turn]
                most = 2.0 if act == "opened" else size / payload(rate) + 1.1 * round_trip * count
                bench.report(Row(
                    f"a document of {size // MB} MB {act}, OC-1 100 ms, {case[1]}, impacket", "s", [seconds],
                    at_most(most), [bare], beside_goal=NOT_LONGER, conditions=here.where,
                    note=f"{count} {'requests' if act == 'opened' else 'requests that do not write'}; "
                         + through(found, case, lambda got, turn=turn: got[turn][0]) + here.reasons))


def folders(bench):
    """A folder of 5,000 files listed with their attributes at 100 ms."""
    rate, round_trip, count = LINES["OC-1"], 0.100, 5000
    cases = [(kind, dialect) for kind in kinds() for dialect in DIALECTS
             if bench.wants(f"folder {dialect} {kind.name}")]
    if not cases:
        return
    with site(rate, 100, cases) as here:
        folder = here.smbd.share / "large"
        folder.mkdir()
        for number in range(count):
            (folder / f"a file with number {number:05}.txt").write_bytes(b"x" * (number % 100))
        carried = {}

        def measure(preset):
            found = {}
            for case in cases:
                here.lab.stats(reset=True)
                found[case] = here.subject(*case).list("large", count)
                carried[preset, case] = on_line(here.lab.stats())
            return found

        found = here.by_preset(presets(bench, "T"), measure)
        for case in cases:
            kind, dialect = case
            seconds, requests = found[None][case]
            bench.report(Row(
                f"a folder of {count} files listed, OC-1 100 ms, {dialect}, {kind.name}", "s", [found["A"][case][0]],
                at_most(3 * round_trip + carried[None, case] * 8 / rate), [seconds], beside_goal=NOT_LONGER,
                conditions=here.where,
                note=f"bare {seconds / round_trip:.1f} RTT" + (f", {requests} requests" if requests else "") +
                     "; " + through(found, case, lambda got: got[0]) + here.reasons))


def names(bench):
    """What is done with the names of 20 files, in round trips: nothing of it can be answered locally, so it must not cost more."""
    rate, round_trip, count = LINES["OC-1"], 0.100, 5 if bench.quick else 20
    cases = [(Impacket, dialect, act) for dialect in DIALECTS for act in ("stat", "rename", "rename while open", "delete")
             if bench.wants(f"names {act} {dialect}")]
    if not cases:
        return
    with site(rate, 100, cases) as here:

        def measure(_):
            return {case: [seconds / round_trip for seconds in here.subject(*case[:2]).act_on_names(case[2], count)]
                    for case in cases}

        found = here.by_preset(("A",), measure)
        for case in cases:
            bench.report(Row(f"{case[2]}, OC-1 100 ms, {case[1]}, impacket: round trips", "RTT", found["A"][case], None,
                             found[None][case], beside_goal=at_most(1.05), conditions=here.where, note=here.reasons))


def pipelined(bench):
    """smbclient, which keeps the line full by itself."""
    for round_trip in (100,) if bench.quick else (0, 100):
        rate, size = LINES["OC-1"], (10 if bench.quick else 100) * MB
        cases = [(Smbclient, dialect, way) for dialect in DIALECTS for way in ("read", "write")
                 if bench.wants(f"{way} OC-1 {round_trip} ms {dialect} smbclient")]
        if not cases:
            continue
        with site(rate, round_trip, cases) as here:

            def measure(_):
                return {case: [size / KB / getattr(here.subject(*case[:2]), case[2])(size)
                               for _ in range(bench.times(1))] for case in cases}

            found = here.by_preset(("A",), measure)
            for case in cases:
                share = 100 * found["A"][case][0] * KB / payload(rate)
                bench.report(Row(f"{case[2]} {size // MB} MB, OC-1 {round_trip} ms, {case[1]}, smbclient: A", "KB/s",
                                 found["A"][case], None, found[None][case], beside_goal=NOT_SLOWER,
                                 note=f"{share:.1f} % of the line's payload rate; {here.reasons}",
                                 conditions=here.where))
