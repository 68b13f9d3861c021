# SPDX-License-Identifier: Apache-2.0
"""What reduction makes of pairs of versions of real packages (reduction/fetch_data), and how fast, without a line: the
second version's size, everything counted, beside zstd --long=27 and content-defined chunks of 8 KiB; speeds of the
dictionary alone and of all stages, in plain bytes for a second of CPU time of one core, beside a history of 1 GiB that
is full, and one that is empty: that grows, by pages of memory that the kernel clears first."""

import functools
import json
import random
import subprocess

from figures import SHARE, Row, at_least, at_most
from lab import BUILD
from reduction_data import fetch, folder, manifest, origin, pairs

PROGRAMS = BUILD / "tests" / "bench" / "reduction"
COST_GOALS = {"headers": 0.026, "modules": 0.21, "source": 0.0015}
OC1_BYTES = "6480000"  # a second: what effort the encoder takes follows from it
GIGABIT_BYTES = "125000000"  # and at 10 Gbit/s, which is what the programs take, the processor is the narrower line


def run(bench):
    fetch("headers", "modules", "doc", "random", *([] if bench.quick else ["source"]))
    have, notes = pairs()
    for kind in COST_GOALS:
        if kind not in have:
            bench.report(Row(f"{kind}: second version's cost", SHARE, [], note=notes.get(kind, "no data")))
        elif bench.wants(f"cost {kind}"):
            cost(bench, kind, notes.get(kind, ""))
    for label, case in (("passes", passes), ("speed dictionary", dictionary_speed), ("speed stages", stages_speed)):
        if bench.wants(label):
            case(bench)


def path(name):
    return folder() / name


@functools.cache
def history():
    """1 GiB that nothing is like, to fill a history with."""
    made = path("history.bin")
    if not made.exists() or made.stat().st_size != 1 << 30:
        source = random.Random(7)
        with made.open("wb") as file:
            for _ in range(1 << 10):
                file.write(source.randbytes(1 << 20))
    return made


@functools.cache
def zstd_bytes(names, *options):
    """Size of one zstd stream over these files, by the command line program."""
    feed = subprocess.Popen(["cat", *map(path, names)], stdout=subprocess.PIPE)
    squeeze = subprocess.Popen(["zstd", "-q", "--single-thread", *options], stdin=feed.stdout, stdout=subprocess.PIPE)
    feed.stdout.close()
    size = 0
    while piece := squeeze.stdout.read(1 << 20):
        size += len(piece)
    if squeeze.wait() or feed.wait():
        raise AssertionError("zstd failed")
    return size


def zstd_speed(name):
    """GB/s of zstd -1 and the checksum, blocks of 64 KiB without history: what this core does at this moment."""
    return lines_of("reduction_speed", "--ring", 0, "--no-dedup", "--level", 1, path(name))[0]["encode GB/s"]


def lines_of(program, *words):
    """The lines that a program printed, which compares what it decodes with what it encoded."""
    done = subprocess.run([PROGRAMS / program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{program} {' '.join(map(str, words))}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def everything(line):
    """Heads of records are in it; and what the twin answers."""
    return line["wire"] + line["messages back"]


def cost(bench, kind, substitute):
    first, second = f"{kind}-1.tar", f"{kind}-2.tar"
    size = manifest()["files"][second]["bytes"]
    ring = ["--ring", 2048] if kind == "source" else []  # both versions are more than 1 GiB

    def second_by_zstd(level):
        return (zstd_bytes((first, second), level, "--long=27") - zstd_bytes((first,), level, "--long=27")) / size

    ours = lines_of("reduction_speed", *ring, "--rate", GIGABIT_BYTES, path(first), path(second))[1]
    slow = lines_of("reduction_speed", *ring, "--rate", OC1_BYTES, path(first), path(second))[1]
    chunked = lines_of("cdc_reference", path(first), path(second))[1]
    notes = [f"effort for 1 Gbit/s; {ours['after dedup percent']:.2f} % before zstd",
             f"with the effort for an OC-1 {100 * everything(slow) / size:.3f} %",
             f"CDC 8 KiB + zstd -1: {100 * chunked['encoded_bytes'] / size:.2f} %",
             f"zstd -3 --long=27: {100 * second_by_zstd('-3'):.3f} %",
             f"zstd -1 alone: {100 * zstd_bytes((second,), '-1') / size:.2f} %", substitute]
    bench.report(Row(f"{kind}: second version's cost", SHARE, [everything(ours) / size], at_most(COST_GOALS[kind]),
                     [second_by_zstd("-1")], beside_name="zstd -1 --long=27", note="; ".join(filter(None, notes)),
                     conditions="; ".join(map(origin, (first, second)))))


def passes(bench):
    """The tar of documentation and headers as over an OC-1, without packets."""
    lines = lines_of("reduction_speed", "--rate", OC1_BYTES, *map(path, ("doc.tar", "doc.tar", "doc-edited.tar")))
    size = lines[0]["bytes"]
    by_zstd = size / zstd_bytes(("doc.tar",), "-3", "--long=27")
    for name, line, goal, beside in zip(("first", "second", "edited"), lines, (3, 200, 100), (by_zstd, None, None)):
        bench.report(Row(f"documentation and headers, {name} pass, effort for an OC-1", ": 1",
                         [line["bytes"] / everything(line)], at_least(goal), beside and [beside],
                         beside_name="zstd -3 --long=27", conditions=origin("doc.tar"),
                         note=f"encodes {line['encode GB/s']:.2f}, decodes {line['decode GB/s']:.2f} GB/s"))


def dictionary_speed(bench):
    for name in ("headers-1.tar", "modules-1.tar", "random.bin"):
        runs = [lines_of("dedup_speed", history(), path(name), path(name))[1:] for _ in range(bench.times(3))]
        empty = lines_of("dedup_speed", path(name))[0]["encode_mb_s"] / 1000
        thinner = lines_of("dedup_speed", "--thinner", history(), path(name))[1]["encode_mb_s"] / 1000
        for number, (title, key, goal) in ((0, ("encode, first seen", "encode_mb_s", at_least(1.5))),
                                           (1, ("encode, repeats", "encode_mb_s", at_least(2.2))),
                                           (1, ("decode, repeats", "decode_mb_s", at_least(6)))):
            bench.report(Row(f"dictionary alone, {name}: {title}", "GB/s", [run[number][key] / 1000 for run in runs],
                             goal, note=f"{runs[0][number]['share_percent']:.2f} % left; "
                                        f"index {runs[0][number]['index_mib']:.0f} MiB; into an empty history "
                                        f"{empty:.2f} GB/s first seen; with half the samples, as on lines "
                                        f"faster than a core, {thinner:.2f}"))


def stages_speed(bench):
    for name, title, goal in (("headers-1.tar", "new text", 0.4), ("modules-1.tar", "new binaries", 0.4),
                              ("random.bin", "incompressible", 0.8)):
        runs = [lines_of("reduction_speed", history(), path(name), path(name))[1:] for _ in range(bench.times(3))]
        empty = lines_of("reduction_speed", path(name))[0]["encode GB/s"]
        slower = lines_of("reduction_speed", "--rate", GIGABIT_BYTES, path(name))[0]
        bench.report(Row(f"all stages, {title}, effort for 10 Gbit/s: encode", "GB/s",
                         [run[0]["encode GB/s"] for run in runs], at_least(goal),
                         [zstd_speed(name) for _ in range(bench.times(3))], beside_name="zstd -1 alone, 64 KiB blocks",
                         note=f"{runs[0][0]['ratio']:.2f} : 1; decode {runs[0][0]['decode GB/s']:.2f} GB/s; the same "
                         f"again {runs[0][1]['encode GB/s']:.2f} and {runs[0][1]['decode GB/s']:.2f}; into an empty "
                         f"history {empty:.2f} GB/s; with the effort for 1 Gbit/s {slower['encode GB/s']:.2f} GB/s, "
                         f"{slower['ratio']:.2f} : 1"))
