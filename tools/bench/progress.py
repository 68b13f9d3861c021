# SPDX-License-Identifier: Apache-2.0
"""Says what is being measured, what came out, and how long the rest will take."""

import sys
import time

OVERHEAD_SECONDS = 3.0  # of each measurement: marks, caches, reading the capture
WAITING = ("bare", "tuned", "B", "T", "F")  # with these a client that waits for each block really waits
BLOCK = 61_440


def expected_seconds(cell, cut_seconds):
    """A guess, good enough for a time left: the line's time, the waits of a client that asks block by block, and what
    losses leave to CUBIC (Mathis)."""
    place, size = cell.place, cell.size
    if cell.application.protocol == "stream":
        return min(cell.application.seconds, cut_seconds) + OVERHEAD_SECONDS
    if cell.application.packets:
        return min(cut_seconds, size / cell.application.packets.payload_share(place.mtu) / place.bits_per_second * 8) + OVERHEAD_SECONDS
    round_trip = max(0.001, place.round_trip_ms / 1000)
    work, transaction = cell.application.work, cell.application.transaction
    if transaction:
        count = max(1, size // (transaction.bytes * transaction.pairs))
        return min(cut_seconds, transaction.expected_seconds(count, place.payload_bytes_per_second, round_trip)) + \
            OVERHEAD_SECONDS
    rate = place.payload_bytes_per_second
    if place.loss and cell.features in ("bare", "B"):
        rate = min(rate, 1448 / round_trip * 1.22 / place.loss ** 0.5)
    seconds = size / rate + 3 * round_trip
    if cell.features in WAITING and cell.application.protocol == "smb" and cell.application.client != "smbclient":
        waits = {"files": 3 * size / 10_000, "document": 700}.get(work, size / BLOCK)
        seconds += waits * round_trip
    return min(seconds, cut_seconds) + OVERHEAD_SECONDS


class Progress:
    def __init__(self, cut_seconds, out=sys.stdout, clock=time.monotonic):
        self.cut_seconds, self.out, self.clock = cut_seconds, out, clock
        self.left = []
        self.done = self.total = 0
        self.expected_so_far = self.spent_so_far = 0.0
        self.began = 0.0
        self.current = ""

    def plan(self, cells, done):
        """What is still to be measured, and how much is there already."""
        self.left = list(cells)
        self.done, self.total = done, done + len(cells)
        if done:
            self.say(f"{done} measurements exist already")
        if cells:
            self.say(f"{len(cells)} measurements, about {duration(self.seconds_left())}")

    def seconds_left(self):
        guess = sum(expected_seconds(cell, self.cut_seconds) for cell in self.left)
        # What was measured so far says how good the guesses are; at first they are all there is.
        factor = (self.spent_so_far + 20) / (self.expected_so_far + 20)
        return guess * factor

    def begin(self, cell, repetition):
        self.began = self.clock()
        self.current = f"{cell.place}, {cell.application}" + (f", {cell.data}" if cell.data != "random" else "") + \
            f", {cell.features}, {cell.turn}" + (f", {repetition + 1}." if repetition else "")
        self.tick()

    def tick(self):
        if self.out.isatty():
            left = max(0.0, self.seconds_left() - (self.clock() - self.began))
            self.out.write(f"\r\033[K[{self.done + 1}/{self.total}] {self.current} … {self.clock() - self.began:.0f} s, about "
                           f"{duration(left)} left")
            self.out.flush()

    def end(self, cell, sample):
        if cell in self.left:
            self.left.remove(cell)
            self.expected_so_far += expected_seconds(cell, self.cut_seconds)
            self.spent_so_far += self.clock() - self.began
        self.done += 1
        self.total = max(self.total, self.done)
        self.say(f"[{self.done}/{self.total}] {self.current}: {outcome(sample)}; about {duration(self.seconds_left())} left")

    def forget(self, cells, times):
        """They took so long that once is enough."""
        for cell in cells:
            for _ in range(min(times, self.left.count(cell))):
                self.left.remove(cell)
                self.total -= 1

    def say(self, text):
        self.out.write(("\r\033[K" if self.out.isatty() else "") + text + "\n")
        self.out.flush()


def outcome(sample):
    if "failure" in sample:
        return f"FAILED: {sample['failure']}"
    if "cut" in sample:
        return f"cut after {sample['cut']:g} s, {sample['moved_until_cut'] / 1e6:.1f} MB moved"
    if "cpu_share" in sample:
        return (f"{8e-6 * sample['size'] / sample['seconds']:.2f} Mbit/s, processor of one core: sender "
                f"{100 * sample['cpu_share']['client']:.1f} %, receiver {100 * sample['cpu_share']['server']:.1f} %")
    return (f"{sample['seconds']:.3f} s, {sample['size'] / sample['seconds'] / 1024:,.1f} KB/s, "
            f"{(sample['wan_up'] + sample['wan_down']) / 1e6:.2f} MB on the line")


def duration(seconds):
    seconds = round(seconds)
    if seconds < 90:
        return f"{seconds} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
