# SPDX-License-Identifier: Apache-2.0
"""Transactions as a scenario names them: "txn FILETRANSF-LONG udp 10 pairs file 100000". How much of them is done, and what
longhaul-txn is told for that. Doing it is transacting.py's."""

import dataclasses

# Bytes of a transaction, and whether the source calls it a file.
SCRIPTS = {"EFT-SHORT": 100, "EFT-LONG": 100, "FILETRANSF-LONG": 1_460_000}
GRAMMAR = (f"txn {'|'.join(SCRIPTS)} [udp] [N pairs] [file BYTES] [send BYTES] [window BYTES], as the options of longhaul-txn with the "
           "same names")
LONG_FILE = 10  # times fewer transactions of a file than of 100 bytes: the source has 100 of them
WINDOWS = {"udp": 17_726}  # longhaul-txn's own, where none is given
MOST_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Transaction:
    script: str
    over: str = "tcp"
    pairs: int = 1
    file: int = 0  # 0, here and below: longhaul-txn's default
    send: int = 0
    window: int = 0

    def __str__(self):
        words = ["txn", self.script, *(["udp"] if self.over == "udp" else []),
                 *([f"{self.pairs} pairs"] if self.pairs > 1 else []),
                 *(f"{name} {value}" for name, value in self._sizes() if value)]
        return " ".join(words)

    def _sizes(self):
        return ("file", self.file), ("send", self.send), ("window", self.window)

    @property
    def bytes(self):
        """Of one transaction."""
        return self.file or SCRIPTS[self.script]

    @property
    def connects(self):
        """Is the connection's set-up part of each transaction?"""
        return self.script == "EFT-SHORT"

    def count(self, asked):
        """How many each pair does, where `asked` is the number of short ones."""
        return max(1, asked // LONG_FILE) if self.script == "FILETRANSF-LONG" else asked

    def words(self, count, seconds):
        """longhaul-txn's options."""
        found = ["--script", self.script, "--over", self.over, "--pairs", self.pairs, "--transactions", count,
                 "--seconds", f"{seconds:g}"]
        for option, (_, value) in zip(("--file", "--send-buffer", "--window"), self._sizes()):
            found += [option, value] if value else []
        return found

    def expected_seconds(self, count, rate, round_trip):
        """Without the pair: waits for windows and answers, and the line's time."""
        window = self.window or WINDOWS.get(self.over)
        trips = 1 + (self.connects and self.over == "tcp") + (self.bytes // window if window else 0)
        return min(MOST_SECONDS, count * (trips * round_trip + self.pairs * self.bytes / rate))

    def title(self):
        sizes = [*([f"{self.file:,} bytes"] if self.file else []), *([f"send buffer {self.send:,}"] if self.send else []),
                 *([f"window {self.window:,}"] if self.window else []), *([f"{self.pairs} pairs"] if self.pairs > 1 else [])]
        return ", ".join([f"{self.script} over {self.over.upper()}", *sizes])


def parse(words):
    """Of what follows "txn"; None where that is no transaction."""
    if not words or words[0] not in SCRIPTS:
        return None
    found, rest = {}, words[1:]
    if rest[:1] == ["udp"]:
        found["over"], rest = "udp", rest[1:]
    while rest:
        if len(rest) < 2:
            return None
        (number, name), rest = (rest[:2] if rest[1] == "pairs" else rest[1::-1]), rest[2:]
        least, most = {"pairs": (1, 200), "file": (16, 1 << 30), "send": (1, 65_487), "window": (1_460, 1 << 30)}.get(
            name, (1, 0))
        if name in found or not number.isdecimal() or not least <= int(number) <= most:
            return None
        found[name] = int(number)
    return Transaction(words[0], **found)
