# SPDX-License-Identifier: Apache-2.0
"""Flows whose reader has stopped: what else can happen to them meanwhile still does."""

import unittest

import tcp
from lab import Lab
from pair import Pair


def fill(connection, quiet_seconds=1.0):
    """Sends until nothing more is taken for a while."""
    connection.socket.settimeout(quiet_seconds)
    try:
        while True:
            connection.socket.sendall(bytes(tcp.PIECE))
    except TimeoutError:
        pass


class HeldBack(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab(options=["--buffers", "256k"]))
        self.pair = self.enterContext(Pair(self.lab, both={"limits": {"memory": "16MiB"}, "log": {"level": "info"}}))

    def test_a_client_reset_is_handled_although_its_server_does_not_read(self):
        here, there = tcp.pair(self.lab)
        fill(here)
        here.reset()
        self.pair.branch.wait_flows(0, 40)
        self.pair.datacenter.wait_flows(0, 40)
        self.assertEqual(there.receive_rest()[1], "reset")

    def test_a_server_reset_is_handled_although_its_client_does_not_read(self):
        here, there = tcp.pair(self.lab)
        fill(there)
        there.reset()
        self.pair.datacenter.wait_flows(0, 40)
        self.pair.branch.wait_flows(0, 40)
        self.assertEqual(here.receive_rest()[1], "reset")


if __name__ == "__main__":
    unittest.main()
