# SPDX-License-Identifier: Apache-2.0
"""A rogue with a valid key opens as many flows as the datacenter accepts. Before flows were shared no other peer had
any left."""

import tcp
from hostile_peer import ANSWER, OPEN_CREDIT, record
from lab import SERVER, until
from rogue import BesiegedTest

MOST = 80
CONNECTED = record(ANSWER, b"\0\0")


class PeerFlows(BesiegedTest):
    changes = {"limits": {"flows": MOST}}

    def test_a_peer_that_opens_all_flows_leaves_the_others_their_share(self):
        with tcp.Server(self.lab, tcp.echo) as server, self.besieged.rogue() as rogue:
            rogue.wait_for(OPEN_CREDIT)
            streams = [rogue.open((SERVER, server.port)) for _ in range(2 * MOST)]
            until(lambda: all(rogue.received(stream)[:1] == bytes([ANSWER]) for stream in streams), what="the answers")
            held = sum(rogue.received(stream)[:len(CONNECTED)] == CONNECTED for stream in streams)
            self.assertGreaterEqual(held, MOST // 2)
            for number in range(3):
                self.besieged.check_transfer(self, 20_000, seed=number)
            self.check_served()
