# SPDX-License-Identifier: Apache-2.0
"""What a report says of transports over delay: throughput and processor for each round trip, graded as the source of 2007
graded them, its figures beside ours. Plots of the same are in transport_plots.py."""

import dataclasses
import statistics
from typing import Callable

import confidence
import sources
from scenario import PARALLEL
from tables import MISSING, Table, number

NAMES = {"bare": "TCP CUBIC", "tuned": "TCP BBR", "parallel": f"{PARALLEL} × TCP CUBIC", "sctp": "SCTP (usrsctp)",
         "guest-tcp": "TCP CUBIC, emulated", "guest-sctp": "SCTP (Linux), emulated",
         "carrier-udp": "Longhaul, UDP", "carrier-tcp": "Longhaul, TCP"}
LEVEL = 0.95
SOURCE_TOOL = "netperf"
SOURCE_COLUMNS = (("sctp", "2007: SCTP"), ("tcp", "2007: TCP"))
THEIR_TOOLS = {"iperf": "Iperf 2.0.6", "netperf": "Netperf 2.4.3", "netperf-streams": "Netperf 2.4.6, STREAMS"}
PROXY_OF = {"client": "branch", "server": "datacenter"}


def grade_speed(share):
    """Of the line's rate: the source's 900, 800, 700 and 600 Mbit/s of 1000."""
    return next((letter for letter, least in (("A", 0.9), ("B", 0.8), ("C", 0.7), ("D", 0.6)) if share >= least), "F")


def grade_cpu(share):
    """Of one core: the source's 19, 39, 59 and 79 %."""
    return next((letter for letter, below in (("A", 0.2), ("B", 0.4), ("C", 0.6), ("D", 0.8)) if share < below), "F")


# -- what is measured, ours of a Figure and theirs of a row of the source


def _speeds(figure):
    return [8e-6 * speed for speed in figure.speeds]


def _with_cpu(figure):
    """Emulated machines have none to be compared."""
    return [sample for sample in figure.good if "cpu_share" in sample]


def _busier_end(figure):
    return [100 * max(sample["cpu_share"][end] + sample["cpu_seconds"].get(proxy, 0.0) / sample["seconds"]
                      for end, proxy in PROXY_OF.items()) for sample in _with_cpu(figure)]


def _cost(figure):
    return [(sum(sample["cpu_share"].values()) * sample["seconds"] + sum(sample["cpu_seconds"].values()))
            / (8e-9 * sample["size"]) for sample in _with_cpu(figure)]


def _their_cost(row, which):
    return 10 * row[f"{which}_cpu"] / row[f"{which}_mbit"]  # % of a second for so many Mbit


@dataclasses.dataclass(frozen=True)
class Measure:
    title: str
    unit: str
    ours: Callable  # of a Figure: one value for each repetition
    theirs: Callable  # of a row and "sctp" or "tcp"
    grade: Callable | None  # of a value and the line's Mbit/s
    note: str


SPEED = Measure("Throughput", "Mbit/s", _speeds, lambda row, which: row[f"{which}_mbit"],
                lambda value, line: grade_speed(value / line),
                "Payload that the receiver had at the end, slow start included. A: at least 90 % of the line's rate, B: "
                "80 %, C: 70 %, D: 60 %, F: less (the source: 900, 800, 700, 600 Mbit/s of 1000).")
CPU = Measure("Processor", "% of one core", _busier_end, lambda row, which: row[f"{which}_cpu"],
              lambda value, _: grade_cpu(value / 100),
              "At the end that needed more: user and system time of its program and, with the pair, of the proxy at its site. A: below "
              "20 %, B: 40 %, C: 60 %, D: 80 %, F: more, as in the source. The kernel charges TCP's work in interrupts to the process "
              "that is running at that moment, so the figures for TCP are lower bounds; SCTP runs in user space, and its figures include "
              "all of its work. Emulated machines have no figures here.")
COST = Measure("Processor per gigabit", "CPU seconds of both ends for 10⁹ bits", _cost, _their_cost, None,
               "Comparable also between different rates, unlike the share of a core. 2007: for the machine whose share the source "
               "states.")
MEASURES = (SPEED, CPU, COST)


# -- tables


def tables(figures, block):
    """One of each measure, for each rate and MTU."""
    matrix = figures.scenario.matrices[block]
    for places in lines(matrix):
        for measure in MEASURES:
            yield _table(figures, matrix, places, measure)


def lines(matrix):
    """The places of a matrix by rate and MTU (and what else differs), each list by round trip."""
    found = {}
    for place in sorted(matrix.places, key=lambda place: place.round_trip_ms):
        found.setdefault(dataclasses.replace(place, round_trip_ms=0), []).append(place)
    return list(found.values())


def line_title(places):
    place = places[0]
    return f"{place.line_name()}, MTU {place.mtu}" + (f", loss {100 * place.loss:g} %" if place.loss else "")


def _table(figures, matrix, places, measure):
    application, line = matrix.applications[0], places[0].bits_per_second / 1e6
    theirs = rows_of_source(matrix)
    rows, columns = [], {name: [] for name in matrix.features}
    for place in places:
        row = [f"{place.round_trip_ms:g} ms"]
        for name in matrix.features:
            figure = figures.find(place, application, "random", name)
            values = measure.ours(figure) if figure and figure.is_there else []
            columns[name].append(statistics.fmean(values) if values else None)
            row.append(_text(figure, values, measure, line))
        found = next((each for each in theirs if each["rtt_ms"] == place.round_trip_ms), None)
        row += [_graded(measure.theirs(found, which) if found else None, measure, _THEIR_LINE) for which, _ in SOURCE_COLUMNS
                if theirs]
        rows.append(row)
    rows.append(["mean", *(_graded(_mean(column), measure, line) for column in columns.values()),
                 *(_graded(_mean([measure.theirs(row, which) for row in theirs]), measure, _THEIR_LINE)
                   for which, _ in SOURCE_COLUMNS if theirs)])
    note = measure.note
    if figures.scenario.repetitions > 1:
        note += f" Mean ± half of its {100 * LEVEL:g} % confidence interval (Student)."
    if theirs:
        note += f" 2007: {sources.OVER_DELAY_ORIGIN}, by {SOURCE_TOOL}; its mean is over 0 to 60 ms in steps of 5 ms." if measure is SPEED \
            else " 2007: as above."
    return Table(f"{measure.title}, {measure.unit}: {line_title(places)}",
                 ["round trip", *(NAMES[name] for name in matrix.features), *(name for _, name in SOURCE_COLUMNS if theirs)],
                 rows, note)


def their_tools():
    """The source's three tables: what its tools said of the same two transports."""
    columns = [(tool, which) for tool in THEIR_TOOLS for which, _ in SOURCE_COLUMNS
               if any(row[f"{which}_mbit"] is not None for row in sources.over_delay()[tool])]
    for measure in (SPEED, CPU):
        rows = {}
        for tool, which in columns:
            there = [row for row in sources.over_delay()[tool] if row[f"{which}_mbit"] is not None]
            for row in there:
                rows.setdefault(row["rtt_ms"], {})[tool, which] = measure.theirs(row, which)
            rows.setdefault("mean", {})[tool, which] = statistics.fmean(measure.theirs(row, which) for row in there)
        order = sorted(delay for delay in rows if delay != "mean") + ["mean"]
        yield Table(f"2007, with each of the source's tools: {measure.title.lower()}, {measure.unit}",
                    ["round trip", *(f"{which.upper()}, {THEIR_TOOLS[tool]}" for tool, which in columns)],
                    [[delay if delay == "mean" else f"{delay:g} ms",
                      *(_graded(rows[delay].get(column), measure, _THEIR_LINE) for column in columns)] for delay in order],
                    f"{sources.OVER_DELAY_ORIGIN}.")


_THEIR_LINE = sources.OVER_DELAY_RATE / 1e6


def rows_of_source(matrix):
    return sources.over_delay()[SOURCE_TOOL] if matrix.source == sources.OVER_DELAY else []


def _mean(values):
    return statistics.fmean(values) if values and None not in values else None


def _text(figure, values, measure, line):
    if figure is None:
        return MISSING
    if figure.failures:
        return "FAILED"
    if figure.cut:
        return f"cut after {figure.cut[0]['cut']:g} s"
    if not values:
        return "not measured"
    mean = statistics.fmean(values)
    return number(mean) + (f" ± {number(confidence.half_width(values, LEVEL))}" if len(values) > 1 else "") + \
        (f" {measure.grade(mean, line)}" if measure.grade else "")


def _graded(value, measure, line):
    if value is None:
        return MISSING
    return number(value) + (f" {measure.grade(value, line)}" if measure.grade else "")


def unsure(figures):
    """Where the most repetitions were not enough for the confidence that the scenario asks for."""
    rule = figures.scenario.confidence
    rows = []
    for figure in figures.everything() if rule else []:
        values = _speeds(figure) if figure.is_there and figure.cell.application.protocol == "stream" else []
        if len(values) >= rule.least and not confidence.is_enough(values, rule):
            rows.append([figure.cell.key, str(len(values)), number(statistics.fmean(values)),
                         f"± {100 * confidence.half_width(values, rule.level) / statistics.fmean(values):.1f} %"])
    return Table("Confidence not reached", ["cell", "repetitions", "mean, Mbit/s", "interval"], rows,
                 f"Required: ± {100 * rule.within:g} % at {100 * rule.level:g} %, {rule.least} to {rule.most} repetitions."
                 if rule else "")
