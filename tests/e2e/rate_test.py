# SPDX-License-Identifier: Apache-2.0
"""The limits set by an operator's `rate` and `total_rate`: IP bytes on the line, as the emulator counts them."""

import time
import unittest

import tcp
from lab import SERVER, Lab
from pair import Pair


class Rate(unittest.TestCase):
    def seconds_to_upload(self, change, size):
        lab = self.enterContext(Lab("100mbit,20"))
        pair = Pair(lab)
        change(pair.branch.settings)
        self.enterContext(pair)
        with tcp.Server(lab, tcp.report_digest) as receiver:
            began = time.monotonic()
            self.assertEqual(tcp.upload(lab, SERVER, receiver.port, size, 1), tcp.digest(size, 1))
            return time.monotonic() - began

    def check(self, change):
        size, bits = 3_000_000, 8e6
        least = size * 8 / bits
        seconds = self.seconds_to_upload(change, size)
        self.assertGreater(seconds, 0.9 * least)

    def test_the_rate_of_a_peer_bounds_what_is_sent_to_it(self):
        self.check(lambda settings: settings["peer"][0].update(rate="8mbit"))

    def test_the_total_rate_bounds_all_peers(self):
        self.check(lambda settings: settings["link"].update(total_rate="8mbit"))


if __name__ == "__main__":
    unittest.main()
