# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of a scenario that have no result yet, place by place, and stores what each found. A measurement that
cannot be believed is made again, and the reason kept. What a place is made of is in rig.py."""

import datetime
import hashlib
import itertools
import os
import shutil
import time

import applications
import bounded
import confidence
import content
import timing
from capture import CaptureFailed, Recording
from progress import expected_seconds
from rig import Rig
from scenario import FEATURES, IN_GUESTS, WITHOUT_PAIR
from store import StoreFailure

MOST_FOREIGN = 0.01  # of the captured bytes
MOST_REPEATED = 0.01  # of the bytes, more than on the bare line, where the line loses nothing
ONCE_ABOVE_SECONDS = 120.0
ATTEMPTS = 3


class Spoiled(Exception):
    """After a failure the state of the lab is unknown, so it is created again."""


class Runner:
    def __init__(self, scenario, store, progress, cut_seconds, keep_captures=None):
        self.scenario, self.store, self.progress = scenario, store, progress
        self.cut_seconds, self.keep_captures = cut_seconds, keep_captures
        self.make_rig = Rig
        self.attempts = itertools.count(1)

    # -- what is still to do

    def groups(self, cells):
        """The measurements of a place in their order: (repetition, its cells, one for each pass). Features stand next to each
        other in time, so that what drifts drifts for all."""
        order = sorted({cell.features for cell in cells}, key=FEATURES.index)
        for repetition in range(self.scenario.repetitions):
            for features in order:
                mine = [cell for cell in cells if cell.features == features]
                for _, group in itertools.groupby(mine, key=lambda cell: (cell.application, cell.data)):
                    yield repetition, list(group)

    def is_done(self, repetition, group):
        if all(self.store.has(cell.key, repetition) for cell in group):
            return True
        first = [self.store.samples.get((cell.key, 0), {}) for cell in group] if repetition else []
        rule = self.scenario.confidence
        if rule and repetition >= rule.least and all(confidence.is_enough(self._speeds(cell), rule) for cell in group):
            return True
        return any(sample.get("cut") or sample.get("failure") or sample.get("seconds", 0) > ONCE_ABOVE_SECONDS
                   for sample in first)

    def _speeds(self, cell):
        return [sample["size"] / sample["seconds"] for sample in self.store.of(cell.key) if "seconds" in sample]

    def to_do(self, cells):
        return [(repetition, group) for repetition, group in self.groups(cells) if not self.is_done(repetition, group)]

    # -- doing it

    def run(self):
        cells = self.scenario.cells()
        places = [(place, list(group)) for place, group in itertools.groupby(cells, key=lambda cell: cell.place)]
        expected = [cell for _, mine in places for repetition, group in self.to_do(mine) for cell in group
                    if not repetition or repetition < self.scenario.expected_repetitions and expected_seconds(cell, self.cut_seconds) < ONCE_ABOVE_SECONDS]
        self.progress.plan(expected, len(self.store.samples))
        for place, mine in places:
            while self.to_do(mine):
                try:
                    self._run_place(place, mine)
                except Spoiled:
                    self.progress.say("the place is made anew")

    def _run_place(self, place, cells):
        needs = {cell.application.protocol for cell in cells} | {cell.application.client for cell in cells} | \
            {cell.features for cell in cells}
        spoiled = None
        rig = self.make_rig(place, self.scenario.seed, self.scenario.told_rate, needs)
        try:
            with rig:
                name = str(place) + (" tuned" if place.tuned else "")
                self.store.header.setdefault("places", {})[name] = rig.conditions()
                self.store.save_header()
                try:
                    while work := self.to_do(cells):
                        self._run_group(rig, *work[0])
                except Spoiled as error:
                    spoiled = error
        except AssertionError as error:  # the lab could not be made, or a daemon did not end well
            sentence = _in_short(error)
            if not spoiled and (left := self.to_do(cells)):
                for repetition, group in left:
                    for cell in group:
                        self.progress.begin(cell, repetition)
                        self._add(cell, repetition, {"failure": f"the lab could not be created: {sentence}"})
            else:
                self.store.header.setdefault("troubles", []).append(f"{place}: {sentence}")
                self.store.save_header()
        if spoiled:
            raise spoiled

    def _run_group(self, rig, repetition, group):
        work = None
        try:
            failure = None
            try:
                rig.switch(None if group[0].features in WITHOUT_PAIR else group[0].features)
                application = group[0].application
                count = application.transaction.count(self.scenario.transactions) if application.transaction else 1
                work = applications.make(rig, application, self._seed(group[0], repetition), count, self.scenario.seconds)
            except (AssertionError, OSError) as error:
                failure = f"could not be set up: {_in_short(error)}"
            file = File(group[0], self._seed(group[0], repetition))
            for cell in group:
                self.progress.begin(cell, repetition)
                if not failure:
                    found = self._measure(rig, work, cell, file)
                    failure = found.get("failure")
                else:
                    found = {"failure": failure}
                self._add(cell, repetition, found)
            if not repetition and self.is_done(1, group):  # what took so long is not repeated
                self.progress.forget(group, self.scenario.repetitions - repetition - 1)
            in_guest = group[0].application.client == "kernel" or group[0].features in IN_GUESTS
            if failure or (found.get("cut") and in_guest):  # the guest is still at it
                raise Spoiled
        finally:
            if work:
                work.remove()

    def _seed(self, cell, repetition):
        """A number that no other file has, and that the same run gives again."""
        words = f"{self.scenario.seed} {cell.key} {repetition} {next(self.attempts)}"
        return int(hashlib.sha256(words.encode()).hexdigest()[:12], 16)

    def _add(self, cell, repetition, found):
        sample = {"key": cell.key, "repetition": repetition, "size": cell.size,
                  "at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                  "load": round(os.getloadavg()[0], 2), **found}
        self.store.add(sample)
        self.progress.end(cell, sample)

    def _measure(self, rig, work, cell, file):
        """One measurement that can be believed, or the last one of several with what speaks against it."""
        discarded = []
        while True:
            try:
                found = self._attempt(rig, work, cell, file, again=bool(discarded))
                doubt = found.pop("doubt", None) or self._doubt(cell, found)
            except (timing.Unusable, CaptureFailed) as error:
                found, doubt = {"failure": f"no measurement: {error}"}, str(error)
            except (bounded.WorkFailed, AssertionError, OSError) as error:
                found, doubt = {"failure": _in_short(error)}, None
            if "failure" in found:
                check_room(rig.lab.scratch, cell)  # programs report a full disk in many ways
            if doubt is None or found.get("cut"):
                return found | {"discarded": discarded}
            discarded.append(doubt)
            self.progress.say(f"measured again: {doubt}")
            if len(discarded) == ATTEMPTS:
                return found | {"discarded": discarded[:-1], "doubt": doubt}

    def _attempt(self, rig, work, cell, file, again):
        if not cell.application.is_captured:
            return self._counted(rig, work, cell)
        check_room(rig.lab.scratch, cell)
        if cell.turn == "cold":
            if again:
                file.renew(self._seed(cell, 0))
            if rig.is_running:
                rig.clear_caches()
        elif cell.turn == "edited":
            file.edit(self._seed(cell, 0))
        elif cell.turn == "restart" and rig.is_running:
            rig.restart()
        work.seed = file.seed
        work.place(file.data)
        work.prime()
        reasons, costs = rig.reasons(), rig.costs()
        rig.lab.stats(reset=True)
        recording = Recording(rig.lab, cell.place.bits_per_second)
        try:
            moved, cut, loss = None, None, OneLoss(rig.lab, cell.place.lose_after_s)
            with recording:
                try:
                    moved = bounded.call(work.move, self.cut_seconds, lambda: (loss.look(), self.progress.tick()))
                except bounded.TooLong:
                    cut = self.cut_seconds
            if not cut:
                rig.wait_quiet()
            stats = rig.lab.stats()
            lost_at_ns = loss.at_ns(stats)
            found = {"cpu_seconds": costs.cpu_seconds(), "peak_bytes": costs.peak_bytes(), "carrier": rig.carrier(),
                     "reasons": _since(reasons, rig.reasons()), **_on_line(stats)}
            if cut:
                return found | {"cut": cut, "moved_until_cut": timing.payload(recording.path, work.ports)}
            if (got := work.finish(moved)) != work.expected:
                return found | {"failure": f"WRONG BYTES: {cell.size} bytes were sent, and others arrived"}
            if cell.place.lose_after_s and not lost_at_ns:
                return found | {"failure": f"it ended before {cell.place.lose_after_s:g} s, when a packet was to be dropped"}
            measured = timing.read(recording.path, work.ports, work.kind, lost_at_ns)
            if recording.dropped:
                found["doubt"] = f"the capture lacks {recording.dropped} packets"
            return found | {"seconds": round(measured.seconds, 6), "client_seconds": round(moved.seconds, 6), "sha256": got,
                            "bytes_down": measured.bytes_down, "bytes_up": measured.bytes_up,
                            "connections": measured.connections,
                            "repeated_share": round(measured.repeated_share, 6),
                            "foreign_share": round(measured.foreign_share, 6), "marks_ms": measured.marks_ms,
                            "interval": measured.interval, "series": measured.series,
                            **({"repair": measured.repair} if measured.repair else {}), **(moved.facts or {})}
        finally:
            self._put_away(recording, cell)

    def _counted(self, rig, work, cell):
        """What arrives, by its receiver's count, and what that costs; no capture, which would cost more than either end."""
        reasons, costs = rig.reasons(), rig.costs()
        rig.lab.stats(reset=True)
        try:
            found = bounded.call(lambda: work.measure(cell), self.cut_seconds, self.progress.tick)
        except bounded.TooLong:
            return {"cut": self.cut_seconds, "moved_until_cut": rig.lab.stats()["a_to_b"]["ip_bytes_out"]}
        if not found["size"] or not found["seconds"]:
            return {"failure": "nothing arrived"}
        proxies, stats = costs.cpu_seconds(), rig.lab.stats()
        rig.wait_quiet()
        return {**found, "cpu_seconds": proxies, "peak_bytes": costs.peak_bytes(), "carrier": rig.carrier(),
                "reasons": _since(reasons, rig.reasons()), **_on_line(stats)}

    def _put_away(self, recording, cell):
        if recording.process is None:
            return
        if self.keep_captures and recording.path.exists():
            name = "".join(c if c.isalnum() else "-" for c in cell.key)
            target = self.keep_captures / f"{name}-{next(self.attempts)}.pcap"
            target.write_bytes(recording.path.read_bytes())
        recording.remove()

    def _doubt(self, cell, found):
        """Why this one is not to be believed, or None."""
        if "seconds" not in found or not cell.application.is_captured:
            return None
        if found["foreign_share"] > MOST_FOREIGN:
            return f"{100 * found['foreign_share']:.1f} % of the capture is other traffic"
        if not cell.place.loss and cell.features not in WITHOUT_PAIR:
            bare = self._bare_repeated(cell)
            if bare is not None and found["repeated_share"] > bare + MOST_REPEATED:
                return (f"{100 * found['repeated_share']:.1f} % of the bytes were retransmitted or late, {100 * bare:.1f} % on the "
                        "bare line, although the line loses nothing")
        return None

    def _bare_repeated(self, cell):
        """Of the bare line's first pass of the same."""
        for (key, _), sample in self.store.samples.items():
            words = key.split(" | ")
            if (words[:3], words[3], words[4]) == ([str(cell.place), str(cell.application), cell.data], "bare", "cold"):
                if "repeated_share" in sample:
                    return sample["repeated_share"]
        return None


class OneLoss:
    """Loses one packet on the way to the client, when it is time."""

    def __init__(self, lab, after_s):
        self.lab, self.due = lab, time.monotonic() + after_s if after_s else None

    def look(self):
        if self.due and time.monotonic() >= self.due:
            self.due = None
            self.lab.lose(b_to_a=1)

    @staticmethod
    def at_ns(stats):
        """When the line lost it, by the clock of captures; None if it did not."""
        at = stats["b_to_a"].get("lost_on_demand_ns")
        return None if at is None else at + time.time_ns() - time.monotonic_ns()


def check_room(scratch, cell):
    """For the file at both ends, its capture, and what the proxies keep of it."""
    if shutil.disk_usage(scratch).free < 5 * cell.size + 10_000_000:
        raise StoreFailure(f"the disk under {scratch.parent} is full; the results so far are kept: free some space, or set TMPDIR "
                           "to another directory, and run the same command again")


class File:
    """The bytes that a group of passes moves."""

    def __init__(self, cell, seed):
        self.cell = cell
        self.renew(seed)

    def renew(self, seed):
        self.seed = seed
        size = 0 if self.cell.application.transaction else self.cell.size  # its agents make their own
        self.original = self.data = content.make(self.cell.data, size, seed)

    def edit(self, seed):
        self.data = content.edited(self.original, seed)


def _since(before, after):
    return {code: count - before.get(code, 0) for code, count in after.items() if count > before.get(code, 0)}


def _on_line(stats):
    """IP bytes that took line time, pings included, and how late the emulator was."""
    return {"wan_up": stats["a_to_b"]["ip_bytes_on_line"], "wan_down": stats["b_to_a"]["ip_bytes_on_line"],
            "line_lost": stats["a_to_b"]["lost"] + stats["b_to_a"]["lost"],
            "line_late_p99_us": max(stats[way]["lateness_us"]["p99"] for way in ("a_to_b", "b_to_a"))}


def _in_short(error, most=300):
    """On one line, and not too long: programs say what is wrong at the end of what they say."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= most else f"{words[:most // 3]} … {words[-most * 2 // 3:]}"
