# SPDX-License-Identifier: Apache-2.0
"""The common part of the clients that look: they read one property of a file again and again, as their library shows
it, and print a line when it has changed. They write nothing; others make the changes."""

import itertools
import sys
import threading
import time

# held: the blocks of a file that stays open, one after the other and round again, so that there is something to read ahead;
# all of them begin with the same bytes. opened: the first bytes of one that is opened for each look. size: of the file, by its path.
# names: the folder that the file lies in.
WHAT = ("held", "opened", "size", "names")
BYTES = 64  # of a block that are looked at
BLOCK, BLOCKS = 4096, 64
PAUSE = 0.002  # between two looks


def shown(what, value):
    """The result of a look, as text."""
    if what == "names":
        return " ".join(sorted(name for name in value if name not in (".", "..")))
    return str(value) if what == "size" else bytes(value[:BYTES]).rstrip(b"\0").decode("ascii")


def walk(read):
    """The look of `held`, where read(offset, size) reads from the open file."""
    offsets = itertools.cycle(range(0, BLOCKS * BLOCK, BLOCK))
    return lambda: read(next(offsets), BLOCK)


def look(client, say):
    """Until standard input ends; with --no-wait, until a look shows --until. `client.looker()` gives the call that looks."""
    what = client.options.look
    say(ready=True)
    ended = threading.Event()
    if not client.options.no_wait:
        sys.stdin.readline()
        threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    call = client.looker(what)
    last = ""
    while not ended.is_set() and not (client.options.until and client.options.until in last):
        found = shown(what, call())
        if found != last:
            say(seen=found)
            last = found
        time.sleep(PAUSE)
    client.drop()
