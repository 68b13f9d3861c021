# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo: what is moved, over which line, how much of it, and why the pair helps or does not. Sizes follow
the line, so that each step takes the bare line some 20 s at most, and never more than a plain CPU carries."""

import math

import corpus
import tcp
import workloads

# Losses come last: after them the link sends redundant packets for a while, which the next step would be charged for.
NAMES = ("http", "smb", "transactions", "random", "loss")
LOSS = 0.01
QUICK = 10  # a --quick step moves so many times less


class Step:
    """`make(lane)` gives the workload; `loss` is of this step's line, in each direction; `short` is the title in a table."""

    def __init__(self, name, short, title, why, loss, make):
        self.name, self.short, self.title, self.why, self.loss, self.make = name, short, title, why, loss, make


def plan(chosen, line, quick):
    """The steps in their order, and what they move, made ready."""
    share = QUICK if quick else 1
    pool = corpus.Pool()
    steps = []
    if "http" in chosen:
        steps += _http(pool, line, share)
    if "smb" in chosen:
        steps += _smb(pool, line, share)
    if "transactions" in chosen:
        steps.append(_transactions(line, share))
    if "random" in chosen:
        steps.append(_random(line, share))
    if "loss" in chosen:
        steps.append(_loss(line, share))
    return steps


def _http(pool, line, share):
    files = pool.mixture(int(_within(line.bare_rate(line.loss) / 8 * 20 / share, 1e6, 50e6)))
    old = corpus.archive(files)
    files, changes = corpus.next_version(files, pool)
    new = corpus.archive(files)
    what = f"{_mb(old)} archive over HTTP"
    yield Step("http", "archive over HTTP, first time", f"{what}: the first time",
               "Programs, documents and source text of this system. They have not crossed the line before, so the gain comes "
               "from compression and from repeats within the archive.", line.loss,
               lambda lane: workloads.HttpDownload(lane, "archive", old))
    yield Step("http", "... again", f"{what}: again",
               "Content that has crossed the line before is sent as references to the dictionaries at both sites.", line.loss,
               lambda lane: workloads.HttpDownload(lane, "archive", old))
    yield Step("http", "... its next version", f"{what}: its next version",
               f"The next version: {changes}. Only the new content crosses the line, wherever it was inserted.", line.loss,
               lambda lane: workloads.HttpDownload(lane, "next", new))


def _smb(pool, line, share):
    # Three round trips for each small file, one for each block of the document.
    block, rate = workloads.SmbVisit.BLOCK, line.bare_rate(line.loss)
    count = int(_within(12 / (3 * line.round_trip + 80e3 / rate), 10, 100) / math.sqrt(share))
    blocks = int(_within(7 / (line.round_trip + 8 * block / rate), 4, 160) / share) or 1
    for protection, words, why in (
            ("none", "plain", "The client waits for each answer before it asks for the next. The pair reads ahead, so that "
             "most answers come from the near side."),
            ("sign", "signed", "Client and server sign every message. The far side has the server's keys, so the pair saves "
             "the same round trips, and messages stay signed at both ends.")):
        files, document = pool.small_texts(count), corpus.archive(pool.mixture(blocks * block))
        yield Step("smb", f"SMB folder and document, {words}",
                   f"{count} small files and a {_mb(document)} document over SMB, {words}", why, line.loss,
                   lambda lane, words=words, files=files, document=document, protection=protection:
                   workloads.SmbVisit(lane, f"folder-{words}", files, document, protection))


def _loss(line, share):
    loss = max(LOSS, line.loss)
    # A transfer of this size is about twice as fast, because part of it is slow start before the first loss.
    data = _random_bytes(_within(line.bare_rate(loss) / 8 * 32, 100e3, 50e6) / share, 1)
    return Step("loss", f"random bytes, {100 * loss:g} % loss", f"{_mb(data)} of random bytes over HTTP, {100 * loss:g} % loss each way",
                "TCP between the hosts treats each loss as congestion and slows down; the link between the proxies does not.",
                loss, lambda lane: workloads.HttpDownload(lane, "lossy", data))


def _transactions(line, share):
    count = int(_within(line.rate * 10 / 8 / 1600, 20, 1000) / share)
    at_once = workloads.Transactions.CLIENTS
    return Step("transactions", "short transactions",
                f"{count} short transactions, {at_once} at a time: connect, request, answer",
                "The pair accepts connections locally and sends the request together with the connection set-up: one round trip "
                "instead of two.", line.loss, lambda lane: workloads.Transactions(lane, count))


def _random(line, share):
    data = _random_bytes(_within(line.bare_rate(line.loss) / 8 * 4, 200e3, 50e6) / share, 2)
    title, why = f"{_mb(data)} of random bytes once", "Random bytes neither compress nor repeat. "
    if line.loss:
        why += "The remaining difference is how the line's losses are handled."
    else:
        title += ", no loss: nothing to gain"
        why += ("One long transfer already fills a clean line, so this shows the start of a transfer and the cost of the "
                "pair.")
    return Step("random", "random bytes once", title, why, line.loss,
                lambda lane: workloads.HttpDownload(lane, "random", data))


def _random_bytes(size, seed):
    return b"".join(tcp.pieces(int(size), seed))


def _within(value, least, most):
    return max(least, min(most, value))


def _mb(data):
    return f"{len(data) / 1e6:.{0 if len(data) >= 9.5e6 else 1}f} MB"
