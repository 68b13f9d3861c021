# SPDX-License-Identifier: Apache-2.0
"""What changed between two runs, and which differences exceed the noise of both."""

import math

import scenario as scenarios
import tables
from summary import KB, Figures


def compare(before, after):
    """A table of all cells that both runs have, what is slower and faster beyond the noise, and what only one has."""
    old, new = (Figures(scenarios.parse(store.header["scenario"], store.header["name"], store.header["quick"]), store)
                for store in (before, after))
    rows, slower, faster = [], [], []
    shared = [key for key in old.by_key if key in new.by_key]
    for key in shared:
        left, right = old.by_key[key], new.by_key[key]
        if not left.samples or not right.samples:
            continue
        said, change, noise = verdict(left, right)
        if said.startswith("slower"):
            slower.append(key)
        if said.startswith("faster"):
            faster.append(key)
        rows.append([key, tables.speed_text(left), tables.speed_text(right),
                     tables.MISSING if change is None else f"{100 * change:+.1f} %",
                     tables.MISSING if noise is None else f"± {100 * noise:.1f} %", said, _wan(left, right)])
    table = tables.Table("What changed", ["cell", "before, KB/s", "after, KB/s", "change", "noise", "verdict",
                                          "bytes on the line"], rows,
                         f"KB of {KB:,} bytes. Noise: the larger of both runs' spreads and floors. Slower and faster mean beyond "
                         "the noise.")
    alone = [key for key in [*old.by_key, *new.by_key] if (key in old.by_key) != (key in new.by_key)]
    return table, slower, faster, alone


def verdict(left, right):
    """In words; the change as a share, and the noise that it is held against."""
    if right.failures and not left.failures:
        return "slower: it FAILS now", None, None
    if left.is_there and not right.is_there:
        return "slower: it does not finish now", None, None
    if right.is_there and not left.is_there:
        return "faster: it finishes now", None, None
    if not left.is_there:
        return "neither finished", None, None
    change, noise = right.speed / left.speed - 1, max(left.noise, right.noise)
    if abs(math.log(1 + change)) <= math.log(1 + noise):
        return "the same", change, noise
    return ("faster" if change > 0 else "slower"), change, noise


def _wan(left, right):
    if not left.is_there or not right.is_there:
        return tables.MISSING
    return f"{100 * (right.wan_bytes / left.wan_bytes - 1):+.1f} %"


def warnings(before, after):
    """Why the two may not be comparable."""
    found = []
    for what, of in (("machine", lambda header: header["sessions"][-1]["machine"]["cpu"]),
                     ("kernel", lambda header: header["sessions"][-1]["machine"]["kernel"]),
                     ("scenario", lambda header: header["name"])):
        if of(before.header) != of(after.header):
            found.append(f"the {what} differs: {of(before.header)} before, {of(after.header)} after")
    if before.header["quick"] or after.header["quick"]:
        found.append("a quick run gives only rough results")
    return found
