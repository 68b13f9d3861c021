# SPDX-License-Identifier: Apache-2.0
"""A line as a person writes it, and as longhaul-wan takes it. What the settings mean is longhaul-wan's to say."""

import re

from failure import Failure

LINE_DEFAULTS = {"rate": "unlimited", "delay": "0ms", "loss": "0", "jitter": "0ms", "burst-loss": "off",
                 "reorder": "0", "duplicate": "0", "corrupt": "0", "queue": "auto", "aqm": "off", "ecn": "off", "policer": "off",
                 "cut": "off"}


def parse_line(text, more=()):
    """RATE,RTT[,LOSS] and NAME=VALUE words, as the settings of longhaul-wan. Every setting is there, so that a
    line is described by its words alone and not by what was set before."""
    parts = text.split(",")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise Failure(f"'{text}' is not a line: RATE,RTT[,LOSS], for instance 51.84mbit,100,0.01 (RTT in ms)")
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:ms)?", parts[1])
    if not found:
        raise Failure(f"'{parts[1]}' is not a round-trip time in milliseconds")
    line = dict(LINE_DEFAULTS, rate=parts[0], delay=f"{float(found[1]) / 2:g}ms")
    if len(parts) == 3:
        line["loss"] = parts[2]
    for word in more:
        name, equals, value = word.partition("=")
        if not equals or re.sub("^(a-to-b|b-to-a)-", "", name) not in LINE_DEFAULTS:
            raise Failure(f"'{word}' is not NAME=VALUE with NAME one of {', '.join(LINE_DEFAULTS)}, "
                          "for one direction with a-to-b- (branch to datacenter) or b-to-a- before it")
        line[name] = value
    return line


def bits_per_second(rate):
    """Of a rate as longhaul-wan takes it; None where it has no bound."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg])bit", rate)
    return float(found[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[found[2]] if found else None


def words_of(line):
    """The other way round, for a person: only what differs from an ideal line."""
    extra = [f"{name} {value}" for name, value in line.items()
             if name not in ("rate", "delay", "loss") and LINE_DEFAULTS.get(name) != value]
    return ", ".join([f"{line['rate']}", f"{line['delay']} each way", f"loss {line['loss']} each way", *extra])
