# SPDX-License-Identifier: Apache-2.0
"""The disk dictionary: what was sent once is found again after both daemons were restarted, and what becomes of its
directory costs bytes on the WAN at most."""

import shutil
import unittest

from lab import SERVER, Lab, until
from pair import Pair
from reduction_test import MB, Wan, digest, download, noise


def stored(site):
    """Segments on disk: the files that are whole."""
    folder = site.folder / "state/dictionary/segments"
    return sum(file.stat().st_size for file in folder.glob("*")) if folder.exists() else 0


def wait_stored(pair, bytes_):
    for site in pair.sites:
        until(lambda site=site: stored(site) >= bytes_ * 9 // 10, 15, f"{site.name} has stored {bytes_} bytes (not {stored(site)})")


class Restarts(unittest.TestCase):
    def test_what_was_sent_before_both_daemons_were_restarted_costs_next_to_nothing(self):
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


if __name__ == "__main__":
    unittest.main()
