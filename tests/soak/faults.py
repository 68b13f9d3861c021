# SPDX-License-Identifier: Apache-2.0
"""The deliberate faults of a soak run. Each function injects one kind of fault into a running pair, leaves the pair
able to continue, and returns how many faults that were."""

import mmap
import os
import struct
import time

from pair import link_cut_off


class Refusals:
    """The counters of refuse_allocations.c for one daemon."""

    def __init__(self, file):
        file.write_bytes(bytes(16))
        os.chmod(file, 0o666)  # the daemon may run as another user
        self.known = 0  # refused when the daemon was last started
        with open(file, "r+b") as opened:
            self.map = mmap.mmap(opened.fileno(), 16)

    def ask(self, count):
        struct.pack_into("q", self.map, 0, count)

    def refused(self):
        return struct.unpack_from("q", self.map, 8)[0]


def revive(soak, site):
    """Starts a daemon again that was killed. One that has ended by itself had an allocation refused, or is a finding."""
    if site.process.is_running():
        return
    refusals = soak.refusals[site.name]
    if site.process.clean_end:
        if refusals.refused() == refusals.known:
            soak.crashes.append(site.process.log()[-4000:])
        site.process.clean_end = False
    refusals.known = refusals.refused()
    site.start(30)


def kill(soak):
    site = soak.dice.choice(soak.sites)
    site.kill()
    time.sleep(soak.dice.random() * 0.3)
    revive(soak, site)
    return 1


def restart(soak):
    site = soak.dice.choice(soak.sites)
    site.stop()
    site.process.clean_end = False  # judged by stop()
    revive(soak, site)
    return 1


def cut(soak):
    """The link alone: flows that begin meanwhile bypass it."""
    with link_cut_off(soak.lab, soak.dice.choice(("drop", "reject with tcp reset"))):
        time.sleep(soak.dice.random() * 2)
    return 1


def lose(soak):
    packets = 1 + soak.dice.randrange(50)
    soak.lab.lose(**{soak.dice.choice(("a_to_b", "b_to_a")): packets})
    return packets


def flip_on_wire(soak):
    """Counted by the emulator. Only where a side without a link refuses: what bypasses the link has no protection of its
    own that a flipped bit could be held against."""
    if not soak.closed:
        return 0
    soak.lab.link(soak.LINE, f"corrupt={soak.dice.choice((0.0002, 0.002, 0.02))}")
    soak.lab.stats(reset=True)
    time.sleep(soak.dice.random())
    stats = soak.lab.stats()
    soak.lab.link(soak.LINE)
    return sum(stats[way]["corrupted"] for way in ("a_to_b", "b_to_a"))


def dictionary_files(site):
    folder = site.folder / "state" / "dictionary"
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "LOCK"]


def flip_on_disk(soak):
    files = dictionary_files(soak.dice.choice(soak.sites))
    flipped = 0
    for path in soak.dice.sample(files, min(len(files), 4)):
        try:
            with open(path, "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                if size == 0:
                    continue
                at = soak.dice.randrange(size)
                byte = os.pread(file.fileno(), 1, at)
                os.pwrite(file.fileno(), bytes([byte[0] ^ 1 << soak.dice.randrange(8)]), at)
                flipped += 1
        except (FileNotFoundError, IndexError):
            continue  # evicted, or cut short, meanwhile
    return flipped


def cut_file_short(soak):
    files = dictionary_files(soak.dice.choice(soak.sites))
    if not files:
        return 0
    try:
        path = soak.dice.choice(files)
        os.truncate(path, soak.dice.randint(0, path.stat().st_size))
    except FileNotFoundError:
        return 0
    return 1


def fill_disk(soak):
    """The dictionary's file system is full for a while."""
    ballast = soak.dice.choice(soak.sites).folder / "state" / "dictionary" / "ballast"
    try:
        with open(ballast, "wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
    except OSError:
        time.sleep(soak.dice.random())
    ballast.unlink(missing_ok=True)
    return 1


def refuse_allocations(soak):
    site = soak.dice.choice(soak.sites)
    refusals = soak.refusals[site.name]
    before = refusals.refused()
    refusals.ask(1 + soak.dice.randrange(3))
    time.sleep(0.5)
    refusals.ask(0)
    revive(soak, site)
    return refusals.refused() - before


# How often each is drawn, relative to the others.
KINDS = {
    "kill": (kill, 3),
    "restart": (restart, 1),
    "cut": (cut, 2),
    "lost packets": (lose, 2),
    "bits flipped on the wire": (flip_on_wire, 8),
    "bits flipped on disk": (flip_on_disk, 3),
    "files cut short": (cut_file_short, 1),
    "full disk": (fill_disk, 1),
    "refused allocations": (refuse_allocations, 2),
}
