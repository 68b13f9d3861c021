# SPDX-License-Identifier: Apache-2.0
"""From the samples of a cell to what is said of it: the median, its spread, what was on the line for it, and what went
wrong. How it is shown is in tables.py and plots.py."""

import statistics

KB = 1024
FEW = 3
# What counts as noise at least. Two runs of the same on a quiet machine differ by less; for a single sample it is unknown.
FLOOR, FLOOR_OF_FEW = 0.03, 0.10


class Figure:
    """What is known of one cell."""

    def __init__(self, cell, samples):
        self.cell, self.samples = cell, samples
        self.good = [sample for sample in samples if "seconds" in sample and "failure" not in sample]
        self.cut = [sample for sample in samples if "cut" in sample]
        self.failures = [sample["failure"] for sample in samples if "failure" in sample]
        self.doubts = [sample["doubt"] for sample in samples if "doubt" in sample]

    @property
    def is_there(self):
        return bool(self.good)

    def values(self, name):
        return [sample[name] for sample in self.good]

    @property
    def seconds(self):
        return statistics.median(self.values("seconds"))

    @property
    def speeds(self):
        """Bytes of the file a second, of each sample."""
        return [sample["size"] / sample["seconds"] for sample in self.good]

    @property
    def speed(self):
        return statistics.median(self.speeds)

    @property
    def spread(self):
        """Half of what lies between the slowest and the fastest, as a share of the median."""
        return (max(self.speeds) - min(self.speeds)) / 2 / self.speed

    @property
    def noise(self):
        """A difference below this share says nothing."""
        return max(self.spread, FLOOR if len(self.good) >= FEW else FLOOR_OF_FEW)

    def response_ms(self, name):
        """Of the transactions: "mean", "median", "p95" or "p99" of each measurement; the median of those."""
        return statistics.median(sample["response_ms"][name] for sample in self.good)

    @property
    def wan_bytes(self):
        return statistics.median(sample["wan_up"] + sample["wan_down"] for sample in self.good)

    def cpu_seconds(self, node):
        found = [sample["cpu_seconds"].get(node) for sample in self.good]
        return statistics.median(found) if found and None not in found else None

    def peak_bytes(self, node):
        found = [sample["peak_bytes"].get(node) for sample in self.good]
        return max(found) if found and None not in found else None

    def least_speed(self):
        """Of a transfer that was cut: what it had moved by then."""
        return self.cut[0]["moved_until_cut"] / self.cut[0]["cut"] if self.cut else None


class Figures:
    """All of a run, by cell."""

    def __init__(self, scenario, store):
        self.scenario, self.store = scenario, store
        self.cells = scenario.cells()
        by_key = {}
        for (key, _), sample in sorted(store.samples.items(), key=lambda item: item[0][1]):
            by_key.setdefault(key, []).append(sample)
        self.by_key = {cell.key: Figure(cell, by_key.get(cell.key, [])) for cell in self.cells}
        self._by_place = {}
        for cell in self.cells:
            self._by_place[self._name(cell.place, cell.application, cell.data, cell.features, cell.turn)] = cell.key

    @staticmethod
    def _name(place, application, data, features, turn):
        return str(place), str(application), data, features, turn

    def of(self, cell):
        return self.by_key[cell.key]

    def find(self, place, application, data, features, turn="cold"):
        key = self._by_place.get(self._name(place, application, data, features, turn))
        return self.by_key[key] if key else None

    def everything(self):
        return [self.by_key[cell.key] for cell in self.cells]


def gain(figure, base):
    """How much faster than the base, as a share of it; None where one of them is not known."""
    if not figure or not base or not figure.is_there or not base.is_there:
        return None
    return figure.speed / base.speed - 1
