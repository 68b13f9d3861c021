# SPDX-License-Identifier: Apache-2.0
"""The bytes that are moved: from a seed, so that a run can be repeated, and no two files alike."""

import bisect
import itertools
import random

PIECE = 256 * 1024
EDIT_EVERY, EDIT_BYTES = 10_000, 100  # 1 %


def make(kind, size, seed):
    return {"random": noise, "text": text}[kind](size, seed)


def noise(size, seed):
    """Nothing in it repeats, so neither compression nor a dictionary can help."""
    source = random.Random(seed)
    return b"".join(source.randbytes(min(PIECE, size - at)) for at in range(0, size, PIECE))


def text(size, seed):
    """Sentences of 4,000 made-up words, the common ones as common as in a language (Zipf): zstd finds about 3:1 in it,
    a dictionary little."""
    words = _words()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    source = random.Random(f"text {seed}")
    pieces, length = [], 0
    while length < size:
        line = " ".join(words[bisect.bisect(weights, source.random() * weights[-1], 0, len(words) - 1)]
                        for _ in range(12)) + ".\n"
        pieces.append(line.encode())
        length += len(line)
    return b"".join(pieces)[:size]


def _words():
    source = random.Random("words")
    return ["".join(source.choice("bcdfghklmnprstvz") + source.choice("aeiou") for _ in range(source.randint(1, 4)))
            for _ in range(4000)]


def edited(data, seed):
    """About 1 % of it changed, all over: bytes replaced, put in and taken out, 100 at a time."""
    source = random.Random(f"edits {seed}")
    pieces = []
    for start in range(0, len(data), EDIT_EVERY):
        piece = data[start:start + EDIT_EVERY]
        at = source.randrange(max(1, len(piece) - EDIT_BYTES))
        kind = source.choice(("replace", "insert", "delete"))
        new = b"" if kind == "delete" else source.randbytes(EDIT_BYTES)
        pieces += [piece[:at], new, piece[at:] if kind == "insert" else piece[at + EDIT_BYTES:]]
    return b"".join(pieces)
