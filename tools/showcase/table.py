# SPDX-License-Identifier: Apache-2.0
"""The summary below the race: a table of at most 80 columns, and the conditions. Nothing is measured here."""

import textwrap

import wording
from wording import WAYS

HEAD = (("", "seconds", "", "", "WAN MB", "", ""), ("step", "bare", "pair", "times", "bare", "pair", "bytes"))
MOST_TITLE = 34


def cells_of(row):
    return (row["short"], *(wording.time_text(row[way]) for way in WAYS), wording.ratio_text(row),
            *(wording.mb_text(wording.wan_bytes(row[way])) for way in WAYS), wording.bytes_text(row))


def table(results):
    rows = [*HEAD, *map(cells_of, results["rows"])]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join((cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1])),
                        cells[-1])).rstrip() for cells in rows]
    return "\n".join([*lines[:2], "-" * max(map(len, lines)), *lines[2:]])


def conditions(results):
    """Names and texts."""
    hosts = results["hosts"]
    found = [("line", f"{results['line']}; emulated, one for each lane"),
             ("hosts", f"{hosts['congestion_control']}, TCP buffers up to {wording.size_text(hosts['rmem'])} (receive) and "
              f"{wording.size_text(hosts['wmem'])} (send)"),
             ("pair", f"transparent mode, all features on, {results['link']}; its dictionaries were empty at the start"),
             ("flows", results["flows"]),
             ("columns", "seconds: at the client; WAN MB: IP bytes that left the line in both directions, counted by "
              "the emulator; bytes: those that arrived, compared with those that were sent")]
    if results["version"]:
        found.append(("version", results["version"]))
    late = results["emulator_late_p99_ms"]
    if late > 1:
        found.append(("note", f"this machine is busy: 1 % of the packets left the emulated line {late:.0f} ms late or more"))
    return found


def conditions_text(results, columns=79):
    return "\n".join(textwrap.fill(text, columns, initial_indent=f"{name:9}", subsequent_indent=" " * 9)
                     for name, text in conditions(results))
