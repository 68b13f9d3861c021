# SPDX-License-Identifier: Apache-2.0
"""The race on the terminal: two bars for each step, drawn again while it runs; plain lines where the output is no
terminal. What the numbers mean in words is in wording.py."""

import os
import shutil
import sys
import textwrap
import time

import wording

PREFIX = "  "
LEAST_COLUMNS, MOST_COLUMNS = 60, 100
OTHER_COLUMNS, CURVE_COLUMNS = 44, 12  # of a line, beside its bar
SPEED_SECONDS = 1.0  # over which the live throughput is averaged
COLOURS = {"bare": "33", "pair": "36", "title": "1", "good": "32", "bad": "31", "dim": "2"}


class Screen:
    def __init__(self, stream=None, environment=None):
        self.stream = stream or sys.stdout
        environment = os.environ if environment is None else environment
        self.is_live = (self.stream.isatty() and environment.get("TERM", "dumb") != "dumb"
                        and shutil.get_terminal_size().columns >= LEAST_COLUMNS)
        self.has_colours = self.is_live and not environment.get("NO_COLOR")
        is_unicode = "utf" in (getattr(self.stream, "encoding", "") or "").lower()
        self.full, self.empty = ("█", "░") if is_unicode else ("#", ".")
        self.levels = "▁▂▃▄▅▆▇█" if is_unicode else "_.-=*#"
        self.drawn = 0  # lines of the live part, above the cursor

    # -- lines

    def columns(self):
        """One less than there are: a full line would wrap on some terminals."""
        there = shutil.get_terminal_size().columns if self.is_live else 80
        return max(LEAST_COLUMNS, min(MOST_COLUMNS, there)) - 1

    def coloured(self, name, text):
        return f"\033[{COLOURS[name]}m{text}\033[0m" if self.has_colours else text

    def say(self, text="", indent="", colour=None):
        for line in textwrap.wrap(text, self.columns(), initial_indent=indent, subsequent_indent=indent) or [""]:
            self._write((self.coloured(colour, line) if colour else line) + "\n")

    def text(self, text):
        """Lines as they are."""
        self._write(text + "\n")

    def _write(self, text):
        try:
            self.stream.write(text)
        except UnicodeEncodeError:
            self.stream.write(text.encode(self.stream.encoding, "replace").decode(self.stream.encoding))
        self.stream.flush()

    def _draw(self, lines):
        up = f"\033[{self.drawn}A" if self.drawn else ""
        self._write(up + "".join(f"\r\033[K{line}\n" for line in lines))
        self.drawn = len(lines)

    def abandon(self):
        """Leaves what is drawn as it is: what comes next goes below."""
        self.drawn = 0

    # -- a step

    def begin(self, number, count, step):
        self.say()
        self.say(f"{number}/{count}  {step.title}", colour="title")
        self.say(step.why, PREFIX, "dim")

    def show(self, runners):
        if self.is_live:
            self._draw([self._live_line(runner) for runner in runners])

    def _live_line(self, runner):
        work, series = runner.work, runner.series
        share, seconds = min(1.0, work.arrived / work.size), time.monotonic() - runner.began
        speed = wording.speed_text(recent_speed(series), work.unit)
        if runner.ended.is_set() and runner.moved:
            seconds, speed = runner.ran_seconds, "done" if runner.moved.seconds else "stopped"
            share = 1.0 if runner.moved.seconds else share
        return self._line(runner.lane.way, self.bar(runner.lane.way, share, self.empty), f"{100 * share:3.0f} %",
                          f"{seconds:.1f}", speed, series)

    def _line(self, way, bar, number, seconds, speed, series):
        """Way, bar, percentage or bytes, seconds, speed, and a curve of the speed where there is room for it."""
        return (f"{PREFIX}{way} {bar} {number:>12} {seconds:>7} s {speed:>12} "
                + self.coloured(way, self.curve(series, self.curve_columns()))).rstrip()

    def curve_columns(self):
        return CURVE_COLUMNS if self.columns() >= 75 else 0

    def bar(self, way, share, rest):
        columns = self.columns() - OTHER_COLUMNS - self.curve_columns()
        filled = max(1 if share > 0 else 0, round(share * columns))
        return self.coloured(way, self.full * filled) + self.coloured("dim", rest * (columns - filled))

    def curve(self, series, columns):
        """The speed over the time of a step, one character for each part of it, relative to the highest."""
        if not columns or len(series) < 3 or series[-1][0] <= 0:
            return " " * columns
        speeds = speeds_of(series, min(columns, len(series) - 1))
        most = max(speeds) or 1
        return "".join(self.levels[max(0, min(len(self.levels) - 1, int(speed / most * len(self.levels))))]
                       for speed in speeds).ljust(columns)

    def end(self, row):
        """The bars now show the time each has taken; the slower one is full."""
        if self.is_live:
            longest = max(row[way]["ran_seconds"] for way in wording.WAYS)
            self._draw([self._end_line(row, way, longest) for way in wording.WAYS])
            self.abandon()
        else:
            for way in wording.WAYS:
                result = row[way]
                self.say(f"{way}  {wording.time_text(result):>7} s, WAN {wording.mb_text(wording.wan_bytes(result))} MB, "
                         f"{mean_speed(row, way)}", PREFIX)
        self.say(wording.verdict(row), PREFIX + "     ", wording.mood(row))

    def _end_line(self, row, way, longest):
        result = row[way]
        return self._line(way, self.bar(way, result["ran_seconds"] / longest, " "),
                          f"WAN {wording.mb_text(wording.wan_bytes(result))} MB",
                          wording.seconds_text(result["ran_seconds"]), mean_speed(row, way), result["series"])


def mean_speed(row, way):
    result = row[way]
    if not result["seconds"]:
        return "failed" if result["failure"] else "cut"
    return wording.speed_text(row["size"] / result["seconds"], row["unit"])


def recent_speed(series):
    """Of the last second of samples."""
    last = series[-1]
    first = next(sample for sample in series if sample[0] >= last[0] - SPEED_SECONDS)
    return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0


def speeds_of(series, parts):
    """What arrived per second in each of so many equal parts of the time; between samples it is taken as even."""
    whole = series[-1][0]
    marks = [_arrived_at(series, whole * number / parts) for number in range(parts + 1)]
    return [(after - before) * parts / whole for before, after in zip(marks, marks[1:])]


def _arrived_at(series, when):
    for before, after in zip(series, series[1:]):
        if after[0] >= when:
            span = after[0] - before[0]
            return before[1] + (after[1] - before[1]) * ((when - before[0]) / span if span else 1.0)
    return series[-1][1]
