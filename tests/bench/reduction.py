# SPDX-License-Identifier: Apache-2.0
"""What the pair spares a line, with files of real packages (reduction/fetch_data): the same tar again and edited, a
file again from memory and from disk after a restart, with 1 % edited, inside another archive, random bytes, many flows
at once, small messages, slow lines.

WAN bytes are the emulator's: IP bytes in both directions, so that acknowledgements and what the dictionaries say to
each other count, too. Every file is compared by SHA-256 at the far end. What the codecs do without a line is in
reduction_codecs.py."""

import contextlib
import statistics
import time

import conditions
import features
import loads
from figures import SHARE, Row, at_least, at_most
from lab import BRANCH, Lab, until
from loopback import Loopback, forwarding_pair, forwards
from pair import Pair
from reduction_data import File, fetch, origin
from transfers import Upload, on_line, upload
from usage import Cpu

OC1, T1 = 51.84e6, 1.544e6
DICTIONARY = {"memory": "1GiB", "disk": "4GiB"}
LIMITS = {"memory": "6GiB"}  # dictionaries included


def run(bench):
    for label, case in (("tar OC-1 100 ms", passes), ("again memory disk OC-1 100 ms", again),
                        ("edited archive OC-1 100 ms", edited), ("random OC-1 100 ms", random_bytes),
                        ("flows loss OC-1 100 ms", many_flows), ("second time OC-1 T1", second_time),
                        ("request response", small_messages)):
        if bench.wants(label):
            case(bench)


# -- labs and pairs


def knows_dictionary(pair):
    """Does this build read [dictionary]? A build before there was one refuses it."""
    site = pair.datacenter
    site.settings["dictionary"] = DICTIONARY
    site.write()
    refused = "dictionary" in site.longhaul("check", site.file, check=False).stderr
    del site.settings["dictionary"]
    return not refused


def reducing_pair(lab, rate, chosen=features.REDUCED):
    """Told the line's rate, as its operator would; None: a line without bound."""
    pair = Pair(lab, both={"features": chosen, "log": {"level": "warn"}})
    if knows_dictionary(pair):
        for site in pair.sites:
            site.settings["dictionary"] = DICTIONARY
            site.settings["limits"] = LIMITS
    return tell(pair, rate)


def tell(pair, rate):
    for site in pair.sites:
        site.settings["peer"][0]["rate"] = f"{rate / 1e6:g}mbit" if rate else None
    return pair


def on_udp(pair):
    for site in pair.sites:
        until(lambda: site.link()["carrier"] == "udp", 15, f"{site.name} sends on udp")
    return pair


@contextlib.contextmanager
def line_with_pair(rate, round_trip, loss=0, chosen=features.REDUCED):
    with Lab(f"{rate / 1e6:g}mbit,{round_trip},{loss:g}") as lab, reducing_pair(lab, rate, chosen) as pair:
        on_udp(pair)
        yield lab, pair


def cut(bench, file):
    """A file of its size, or with --quick its beginning."""
    return file.part(0, min(file.size, 8_000_000)) if bench.quick else file


def where(lab, *names):
    return "; ".join([conditions.of_lab(lab), *map(origin, names)])


# -- rows


def spared(one):
    return 1 - one.on_line / one.file.size


def ratio(one):
    return one.file.size / one.on_line


def note_of(one):
    return f"{one.seconds:.2f} s, {one.on_line:,} bytes on the line for {one.file.size:,}"


PAUSE = 3.0  # seconds between one pass and the next, as nobody sends a file again in the same second


class Measured:
    """An upload, and how busy the two daemons and the machine were with it."""

    def __init__(self, lab, pair, file, pause=0):
        time.sleep(pause)
        pids = [site.process.pid for site in pair.sites]
        with Cpu(*pids) as used:
            self.one = upload(lab, file, pair)
        self.note = (note_of(self.one) + "; CPU s " +
                     ", ".join(f"{site.name} {used.seconds[pid]:.2f}" for site, pid in zip(pair.sites, pids)) +
                     f"; machine {100 * used.busy:.0f} % busy")


def passes(bench):
    """A tar of documentation and headers three times through the same pair."""
    fetch("doc")
    doc, changed = cut(bench, File("doc.tar")), cut(bench, File("doc-edited.tar"))
    with line_with_pair(OC1, 100) as (lab, pair):
        conditions_ = where(lab, "doc.tar")
        first, second, edit = (Measured(lab, pair, file, PAUSE) for file in (doc, doc, changed))
    for name, found, goal, other in (("first pass", first, 3, 2.5), ("second pass", second, 200, 34),
                                     ("edited pass", edit, 100, 30)):
        bench.report(Row(f"tar, OC-1 100 ms, {name}: plain bytes for one on the line", ": 1", [ratio(found.one)],
                         at_least(goal), note=f"{found.note}; WANProxy had {other} with data of its kind",
                         conditions=conditions_))
    bench.report(Row("tar, OC-1 100 ms, second pass: from connect to the last byte", "Gbit/s",
                     [second.one.bits_per_second / 1e9], at_least(2), note="WANProxy 0.59", conditions=conditions_))


def again(bench):
    """The identical file: the ring still has it; then both daemons are new and only their disks have it."""
    fetch("headers")
    file = cut(bench, File("headers-1.tar"))
    with line_with_pair(OC1, 100) as (lab, pair):
        has_disk = "dictionary" in pair.branch.settings
        conditions_ = where(lab, "headers-1.tar")
        Measured(lab, pair, file)
        warm = [Measured(lab, pair, file) for _ in range(bench.times(3))]
        bench.report(Row("identical file, warm memory, 100 ms: bytes spared", SHARE,
                         [spared(found.one) for found in warm], at_least(0.995), note=warm[-1].note,
                         conditions=conditions_))
        def kill():
            time.sleep(3)  # what goes to the disk goes there when the line is quiet
            for site in pair.sites:
                site.kill()

        for name, end in (("restarted", pair.stop), ("after kill -9", kill)):
            end()
            on_udp(pair.start())
            found = Measured(lab, pair, file)
            bench.report(Row(f"identical file, warm disk, both daemons {name}, 100 ms: bytes spared", SHARE,
                             [spared(found.one)] if has_disk else [], at_least(0.99),
                             note=found.note if has_disk else f"no disk dictionary in this build: {found.note}",
                             conditions=conditions_))


def edited(bench):
    fetch("headers", "edited")
    first = cut(bench, File("headers-1.tar"))
    for name, title in (("headers-1-percent.tar", "1 % edited in many places"),
                        ("headers-1.zip", "inside another archive at another offset")):
        file = cut(bench, File(name))
        with line_with_pair(OC1, 100) as (lab, pair):
            upload(lab, first, pair)
            found = Measured(lab, pair, file)
            bench.report(Row(f"{title}, 100 ms: bytes spared", SHARE, [spared(found.one)], at_least(0.95),
                             note=found.note, conditions=where(lab, "headers-1.tar", name)))


def random_bytes(bench):
    """Cold bytes that nothing makes fewer, with everything on and everything off, in turn on the same line."""
    fetch("random")
    whole = File("random.bin")
    for rate, round_trip, size in ((OC1, 100, 30_000_000), (200e6, 20, 50_000_000)):
        parts = iter(whole.part(start, size) for start in range(0, whole.size - size + 1, size))
        found = {"off": [], "on": []}
        for _ in range(bench.times(3, quick=1)):
            file = next(parts, None) or whole.part(0, size)  # new daemons each time: cold again
            for name, chosen in (("off", features.NOT_REDUCED), ("on", features.REDUCED)):
                with line_with_pair(rate, round_trip, chosen=chosen) as (lab, pair):
                    found[name].append(Measured(lab, pair, file))
                    conditions_ = where(lab, "random.bin")
        line = f"{rate / 1e6:g} Mbit/s {round_trip} ms"
        for title, unit, figure, goal in (
                ("bytes on the line", "MB", lambda one: one.on_line / 1e6, 1.003),
                ("seconds", "s", lambda one: one.seconds, 1.01)):
            bench.report(Row(f"cold random, {line}: {title}", unit, [figure(each.one) for each in found["on"]],
                             beside=[figure(each.one) for each in found["off"]], beside_name="off",
                             beside_goal=at_most(goal), conditions=conditions_,
                             note=f"on: {found['on'][-1].note}; off: {found['off'][-1].note}"))


def many_flows(bench):
    """64 flows at once on a line with losses: one of them is slow at its client and at its server, and the others
    carry its content, too. Its bytes must not delay any other flow."""
    fetch("doc")
    doc = File("doc.tar")
    count, size, step = (16 if bench.quick else 64), 1_500_000, 750_000
    files = [doc.part(i * step, size) for i in range(count)]
    slow = {"piece": 16_384, "pause": 0.1, "reader_pause": 0.1}
    found = {True: [], False: []}
    for seed in range(1, bench.times(3, quick=1) + 1):
        for delayed in (False, True):
            with Lab(f"{OC1 / 1e6:g}mbit,100,0.02", options=["--seed", str(seed)]) as lab, \
                    reducing_pair(lab, OC1) as pair:
                on_udp(pair)
                conditions_ = where(lab, "doc.tar")
                lab.stats(reset=True)
                # The slow one carries what all others together carry in their halves that overlap.
                odd = Upload(lab, files[count // 2], **(slow if delayed else {}))
                others = [Upload(lab, file) for i, file in enumerate(files) if i != count // 2]
                for one in (odd, *others):
                    one.start()
                for one in others:
                    one.finish()
                line = on_line(lab.stats())
                odd.finish()
            took = max(one.ended for one in others) - min(one.began for one in others)
            found[delayed].append((8 * size * len(others) / took / 1e6,
                                   statistics.median(one.seconds for one in others), line, odd.seconds))
    rates, free = [rate for rate, *_ in found[True]], [rate for rate, *_ in found[False]]
    bench.report(Row(f"{count} flows at once, OC-1 100 ms, loss 0.02, one delayed: the others together", "Mbit/s",
                     rates, beside=free, beside_name="none delayed", beside_goal=at_least(0.95), conditions=conditions_,
                     note=f"the delayed one took {found[True][-1][3]:.1f} s; median of the others "
                          f"{found[True][-1][1]:.2f} s, {found[False][-1][1]:.2f} with none delayed; on the line "
                          f"{found[True][-1][2]:,} and {found[False][-1][2]:,} bytes. Delayed at its ends: the line "
                          "cannot tell flows apart"))


def second_time(bench):
    """100 MB that both dictionaries know, over slow lines; what the same takes without a line stands beside it."""
    fetch("doc")
    file = cut(bench, File("doc.tar"))
    with Lab() as lab, reducing_pair(lab, None) as pair:
        upload(lab, file, pair)
        unbound = []
        for _ in range(bench.times(3, quick=1)):
            time.sleep(PAUSE)
            unbound.append(upload(lab, file, pair).seconds)
    for name, rate in (("OC-1", OC1), ("T1", T1)):  # over the T1 the first time takes three minutes
        if not bench.wants(f"second time {name}"):
            continue
        with line_with_pair(rate, 100) as (lab, pair):
            first = upload(lab, file, pair)
            found = Measured(lab, pair, file, PAUSE)
            bound = 1.2 * statistics.median(unbound) + 0.2 + file.size / 1500 * 8 / rate
            bench.report(Row(f"100 MB the second time, {name} 100 ms", "s", [found.one.seconds], at_most(bound),
                             unbound, beside_name="pair without a line",
                             note=f"first time {first.seconds:.1f} s; {ratio(found.one):.0f} : 1; {found.note}; the "
                                  "goal is 1.2 × without a line + 2 RTT + size / 1500 at line rate",
                             conditions=where(lab, "doc.tar")))


def small_messages(bench):
    """100 bytes to and fro over loopback, through two forwards of the same pair, one of them without reduction."""
    seconds = 1.0 if bench.quick else 4.0
    off = {name: False for name in ("compression", "dedup_memory", "dedup_disk")}
    with Loopback() as lab:
        echoes = [loads.Server(lab, "echo").port for _ in range(2)]
        rule = {"to_ports": [echoes[1]], "features": off}
        with forwarding_pair(lab, echoes, chosen=features.REDUCED, rule=[rule]) as pair:
            def exchange(port):
                return loads.run(lab, "exchanges", seconds + 30, to=BRANCH, port=port, seconds=seconds, size=100)[0]

            on, without = [], []
            for _ in range(bench.times(5, quick=2)):
                without.append(exchange(forwards(echoes)[1]))
                on.append(exchange(forwards(echoes)[0]))
            carrier = pair.branch.link()["carrier"]
        for key, goal in (("p50_us", at_most(50.0)), ("p99_us", None)):
            added = [one[key] - other[key] for one, other in zip(on, without)]
            bench.report(Row(f"request and response of 100 bytes: added by reduction at {key.removesuffix('_us')}",
                             "µs", added, goal, [other[key] for other in without], beside_name="off",
                             note=f"with reduction {on[-1][key]:.1f} µs, {on[-1]['done']} exchanges; on {carrier}",
                             conditions=conditions.of_lab(lab)))
