# SPDX-License-Identifier: Apache-2.0
"""The disk dictionary: data sent once is found again after both daemons were restarted, and damage to its directory
only costs bytes on the WAN."""

import contextlib
import shutil
import unittest

from lab import SERVER, Lab, until
from pair import Pair
from reduction_test import MB, Wan, digest, download, noise


def stored(site):
    """Bytes of segments on disk."""
    with contextlib.suppress(FileNotFoundError):  # one is removed, or gets its name, at this moment: asked again
        return sum(file.stat().st_size for file in (site.folder / "state/dictionary/segments").glob("*"))
    return 0


def wait_stored(pair, bytes_):
    for site in pair.sites:
        until(lambda site=site: stored(site) >= bytes_ * 9 // 10, what=f"{site.name} has stored {bytes_} bytes (not {stored(site)})")


def remove(folder):
    """Even while a daemon writes to it."""
    removed = folder.with_name("removed")
    folder.rename(removed)
    until(lambda: shutil.rmtree(removed, ignore_errors=True) or not removed.exists(), what="the folder is removed")


class Restarts(unittest.TestCase):
    def test_data_sent_before_both_daemons_restarted_costs_next_to_nothing(self):
        lab = self.enterContext(Lab("51.84mbit,20"))
        pair = self.enterContext(Pair(lab))
        data = noise(12 * MB, seed=1)
        with Wan(lab) as wan:
            self.assertEqual(download(lab, data), digest(data))
        self.assertGreater(wan.received, len(data))
        wait_stored(pair, len(data))
        pair.stop()
        pair.start()
        pair.wait_link()
        with Wan(lab) as wan:
            self.assertEqual(download(lab, data), digest(data))
        self.assertLess(wan.received, len(data) / 20)
        # Killed, and with one directory gone: everything is sent, and then it is there again.
        for site in pair.sites:
            site.kill()
        shutil.rmtree(pair.branch.folder / "state/dictionary")
        pair.start()
        pair.wait_link()
        with Wan(lab) as wan:
            self.assertEqual(download(lab, data), digest(data))
        self.assertGreater(wan.received, len(data))

    def test_data_sent_just_before_a_restart_is_kept_too(self):
        lab = self.enterContext(Lab("51.84mbit,20"))
        pair = self.enterContext(Pair(lab))
        for number, site in enumerate(pair.sites):
            with self.subTest(site.name):
                data = noise(2 * MB, seed=f"sent before the {site.name} ends")
                self.assertEqual(download(lab, data), digest(data))
                site.stop()  # at once, and the other one lives on
                site.start()
                pair.wait_link()
                with Wan(lab) as wan:
                    self.assertEqual(download(lab, data), digest(data))
                self.assertLess(wan.received, len(data) / 5)


class Faults(unittest.TestCase):
    def start(self, small_disk=None):
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        self.pair = Pair(self.lab)
        self.pair.branch.small_disk = small_disk
        self.enterContext(self.pair)

    def check(self, data):
        with Wan(self.lab) as wan:
            self.assertEqual(download(self.lab, data), digest(data))
        return wan.received

    def test_removing_segments_while_it_runs_only_costs_the_disk_dictionary(self):
        self.start()
        first, second = noise(9 * MB, seed="first"), noise(9 * MB, seed="second")
        self.check(first)
        wait_stored(self.pair, len(first))
        remove(self.pair.branch.folder / "state/dictionary/segments")
        self.assertLess(self.check(first), len(first) / 20)  # memory has it
        self.assertGreater(self.check(second), len(second))
        self.assertLess(self.check(second), len(second) / 20)
        until(lambda: self.pair.branch.status()["disk_dictionary"]["lost"] > 0, what="what was lost is counted")
        # It is created and used again: data sent now is found after a restart.
        third = noise(9 * MB, seed="third")
        self.check(third)
        until(lambda: stored(self.pair.branch) >= len(third) * 9 // 10, what="the third is stored")
        self.pair.stop()
        self.pair.start()
        self.pair.wait_link()
        self.assertLess(self.check(third), len(third) / 10)
        self.assertGreater(self.check(first), len(first) * 9 / 10)
        self.assertEqual([site.status()["flows"]["reset"] for site in self.pair.sites], [0, 0])

    def test_a_full_disk_only_costs_the_disk_dictionary(self):
        self.start(small_disk=16 << 20)
        disk = lambda: self.pair.branch.status()["disk_dictionary"]
        data = [noise(9 * MB, seed=number) for number in range(3)]
        for each in data:
            self.assertGreater(self.check(each), len(each))
            self.assertLess(self.check(each), len(each) / 20)
        until(lambda: disk()["failed"] > 0, what="the disk is full")
        self.pair.branch.process.lines_with("cannot be written")
        self.assertEqual([site.status()["flows"]["reset"] for site in self.pair.sites], [0, 0])
        self.assertLess(self.check(data[-1]), len(data[-1]) / 20)

    def test_clear_cache_empties_the_disks_of_both_sides(self):
        self.start()
        sent = 0  # since the disks were emptied
        for site, other in self.pair.sites, self.pair.sites[::-1]:
            with self.subTest(site.name):
                data = noise(9 * MB, seed=site.name)
                self.check(data)
                sent += len(data)
                wait_stored(self.pair, sent)
                until(lambda site=site, other=other: stored(site) == stored(other), what="both disks have the same")
                said = site.longhaul("clear-cache")
                # Both have the same: they held it for each other.
                self.assertRegex(said, rf"and (\d+\.\d+ MiB) on disk\n{other.name} cleared \1 on its disk")
                for each in self.pair.sites:
                    until(lambda each=each: stored(each) == 0, what=f"the disk of {each.name} is empty")
                    self.assertEqual(each.status()["disk_dictionary"]["segments"], 0)
                self.pair.stop()
                self.pair.start()
                self.pair.wait_link()
                self.assertGreater(self.check(data), len(data))
                sent = len(data)


if __name__ == "__main__":
    unittest.main()
