# SPDX-License-Identifier: Apache-2.0
"""Port forwards and SOCKS5: for clients that are configured to use the proxy."""

import concurrent.futures
import unittest

import socks
import tcp
import web
from lab import BRANCH, BRANCH6, SERVER, SERVER6
from pair import NETWORKS, PairTest

FORBIDDEN = "10.99.0.1"  # behind the peer as the branch has it, and not in the datacenter's `allow`


class Explicit(PairTest):
    line = ("51.84mbit,20",)
    branch_has = {
        "forward": [{"listen": f"{BRANCH}:8080", "to": f"{SERVER}:80"},
                    {"listen": f"[{BRANCH6}]:8080", "to": f"[{SERVER6}]:80"},
                    {"listen": f"{BRANCH}:8081", "to": "web.far:80"},
                    {"listen": f"{BRANCH}:8082", "to": f"{SERVER}:82"},  # without a listener
                    {"listen": f"{BRANCH}:9000", "to": f"{SERVER}:9000"}],
        "socks": {"listen": "[::]:1080"},
    }

    @classmethod
    def prepare(cls):
        cls.branch.settings["peer"][0]["networks"] = NETWORKS["datacenter"] + ["10.99.0.0/16"]
        cls.datacenter.hosts = {"web.far": SERVER, "web6.far": SERVER6, "own.far": "127.0.0.1"}

    def setUp(self):
        self.before = self.branch.reasons()

    def test_forwards_and_socks_reach_addresses_and_names_of_the_far_side(self):
        nginx = web.Nginx(self.lab)
        sha256 = nginx.put("file", 1_000_000)
        numbers, names = ["--socks5", f"{BRANCH}:1080"], ["--socks5-hostname", f"{BRANCH}:1080"]
        ways = [([], BRANCH, 8080), ([], BRANCH6, 8080), ([], BRANCH, 8081),
                (numbers, SERVER, 80), (numbers, SERVER6, 80), (names, "web.far", 80), (names, "web6.far", 80),
                (["--socks5-hostname", f"[{BRANCH6}]:1080"], "web.far", 80)]
        for options, host, port in ways:
            with self.subTest(" ".join([*options, host, str(port)])):
                fetched = web.fetch(self.lab, "file", *options, host=host, port=port)
                self.assertEqual((fetched.status, fetched.sha256), (200, sha256))
        self.assertEqual(self.reasons_given(self.before), {"optimised": len(ways)})

    def test_all_three_modes_work_at_once(self):
        size = 2_000_000
        with tcp.Server(self.lab, tcp.report_digest, port=9000) as server, \
                concurrent.futures.ThreadPoolExecutor(6) as clients:

            def by_socks(seed):
                connection, answer = socks.connect(self.lab, (BRANCH, 1080), (SERVER6, 9000))
                self.assertEqual(answer, "succeeded")
                connection.send_made(size, seed)
                connection.end()
                return connection.receive_rest()[0].decode().split()[1]

            def by_forward(seed):
                return tcp.upload(self.lab, BRANCH, 9000, size, seed).sha256

            def transparently(seed):
                return tcp.upload(self.lab, SERVER, 9000, size, seed).sha256

            sent = [(clients.submit(way, seed), seed) for seed, way in
                    enumerate((by_socks, by_forward, transparently) * 2)]
            for answer, seed in sent:
                self.assertEqual(answer.result(), tcp.digest(size, seed).sha256)
            self.assertEqual(len(server.clients), 6)
        self.assertEqual(self.reasons_given(self.before), {"optimised": 6})

    def test_socks_replies_match_the_outcome(self):
        with tcp.Listener(self.lab) as unused:
            closed = unused.port
        cases = [((SERVER, closed), "refused"), ((SERVER6, closed), "refused"), (("10.10.2.77", 80), "host unreachable"),
                 ((FORBIDDEN, 80), "not allowed"), (("own.far", 80), "not allowed"),
                 (("nowhere.far", 80), "host unreachable")]
        for to, truth in cases:
            with self.subTest(to):
                connection, answer = socks.connect(self.lab, (BRANCH, 1080), to)
                self.assertEqual(answer, truth)
                self.assertEqual(connection.receive_rest()[0], b"")
        # The second time the branch tries by itself, and what it says is as true.
        self.assertEqual(socks.connect(self.lab, (BRANCH, 1080), (SERVER, closed))[1], "refused")

    def test_a_refused_forward_is_reset(self):
        here = tcp.connect(self.lab, BRANCH, 8082)
        here.send(b"question")
        self.assertEqual(here.receive_rest(), (b"", "reset"))


if __name__ == "__main__":
    unittest.main()
