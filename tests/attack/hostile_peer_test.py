# SPDX-License-Identifier: Apache-2.0
"""The attacks' own tool: a hostile peer that behaves is a peer."""

import unittest

import tcp
from hostile_peer import ANSWER, DATA, END, OPEN_CREDIT, HostilePeer, record
from lab import CLIENT, SERVER, Lab, until
from pair import Pair


class Tool(unittest.TestCase):
    def test_a_hostile_peer_that_behaves_has_its_flow_carried(self):
        lab = self.enterContext(Lab())
        pair = Pair(lab)
        pair.datacenter.start()
        self.addCleanup(pair.datacenter.stop)
        with tcp.Server(lab, tcp.echo) as server, HostilePeer(lab, pair.branch) as peer:
            peer.wait_for(OPEN_CREDIT)
            stream = peer.open((SERVER, server.port), client=(CLIENT, 40000), forward_credit=1024)
            peer.stream(stream, record(DATA, b"question") + record(END))
            until(lambda: record(DATA, b"question") + record(END) in peer.received(stream), what="the echo")
            self.assertEqual(peer.received(stream)[:4], record(ANSWER, b"\0\0"))
            self.assertEqual(pair.datacenter.link()["state"], "up")
