# SPDX-License-Identifier: Apache-2.0
"""What a benchmark found, beside what was hoped for: one row each. How it was found is in the benchmarks."""

import dataclasses
import statistics

SHARE = "%"  # samples are fractions of one, and printed in percent


def written(value, unit):
    if unit == SHARE:
        return f"{100 * value:.{1 if value >= 0.1 else 2 if value >= 0.01 else 3}f} %"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f} {unit}"


@dataclasses.dataclass
class Goal:
    value: float
    most: bool  # or least

    def met(self, value):
        return value <= self.value if self.most else value >= self.value

    def written(self, unit):
        return ("≤ " if self.most else "≥ ") + written(self.value, unit)


def at_most(value):
    return Goal(value, True)


def at_least(value):
    return Goal(value, False)


@dataclasses.dataclass
class Row:
    what: str
    unit: str
    samples: list
    goal: Goal | None = None
    beside: list | None = None  # the same without the pair, or the part's limit, measured in the same run
    beside_name: str = "bare"
    beside_goal: Goal | None = None  # for the ratio of the two
    note: str = ""
    conditions: str = ""

    @property
    def measured(self):
        return statistics.median(self.samples) if self.samples else None  # none: the note says why

    @property
    def ratio(self):
        if not self.samples or not self.beside or not (other := statistics.median(self.beside)):
            return None
        return self.measured / other

    @property
    def verdict(self):
        if not self.samples:
            return "not there yet"
        if self.goal is None and self.beside_goal is None:
            return "-"
        missed = []
        if self.goal and not self.goal.met(self.measured):
            missed.append("goal")
        if self.beside_goal and not (self.ratio and self.beside_goal.met(self.ratio)):
            missed.append(self.beside_name)
        return "missed (" + ", ".join(missed) + ")" if missed else "met"

    def cells(self):
        goals = [self.goal.written(self.unit)] if self.goal else []
        if self.beside_goal:
            goals.append(f"{self.beside_goal.written(SHARE)} of {self.beside_name}")
        if not self.samples:
            return (self.what, ", ".join(goals) or "report", "-", "", "", self.verdict, self.note)
        many = f" ({len(self.samples)}: {min(self.samples):.4g} to {max(self.samples):.4g})"
        return (self.what, ", ".join(goals) or "report", written(self.measured, self.unit) +
                (many if len(self.samples) > 1 and self.unit != SHARE else f" ({len(self.samples)})"),
                f"{self.beside_name} {written(statistics.median(self.beside), self.unit)}" if self.beside else "",
                f"{self.ratio:.3f}" if self.ratio is not None else "", self.verdict, self.note)

    def as_json(self):
        return {"what": self.what, "unit": self.unit, "measured": self.measured, "samples": self.samples,
                "goal": self.goal and self.goal.written(self.unit), "beside": self.beside,
                "beside_name": self.beside and self.beside_name, "ratio": self.ratio,
                "beside_goal": self.beside_goal and self.beside_goal.written(SHARE), "verdict": self.verdict,
                "note": self.note, "conditions": self.conditions}


HEADINGS = ("what", "goal", "measured (of N)", "beside", "ratio", "verdict", "note")


def table(rows):
    """As Markdown, aligned for a terminal."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(text)
