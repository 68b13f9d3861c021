# SPDX-License-Identifier: Apache-2.0
"""The pair in transparent mode on a long line, before real clients and servers that know nothing of it."""

import concurrent.futures
import time
import unittest

import smb
import tcp
import web
from lab import CLIENT, CLIENT6, SERVER, SERVER6
from pair import PairTest


class Transparent(PairTest):
    line = ("51.84mbit,100",)
    round_trip = 0.1

    def test_a_stream_crosses_intact_in_both_directions_and_both_families(self):
        size = 3_000_000

        def cross():
            for node, home, addresses in (("client", "server", (SERVER, SERVER6)), ("server", "client", (CLIENT, CLIENT6))):
                for address in addresses:
                    with self.subTest(node=node, address=address):
                        with tcp.Server(self.lab, tcp.report_digest, home) as server:
                            self.assertEqual(tcp.upload(self.lab, address, server.port, size, 1, node), tcp.digest(size, 1))
                        with tcp.Server(self.lab, tcp.sender(size, 2), home) as server:
                            self.assertEqual(tcp.download(self.lab, address, server.port, node), tcp.digest(size, 2))

        self.assertEqual(self.reasons_of(cross), {"optimised": 8})  # four began here, four there

    def test_the_server_sees_the_address_and_port_of_the_client(self):
        def look():
            for address, seen in ((SERVER, CLIENT), (SERVER6, CLIENT6)):
                with self.subTest(address):
                    here, there = tcp.pair(self.lab, address)
                    self.assertEqual(there.remote, here.local)
                    self.assertEqual(here.local[0], seen)
                    self.assertEqual(here.remote, (address, there.local[1]))

        self.assertEqual(self.reasons_of(look), {"optimised": 2})

    def test_nginx_and_curl(self):
        nginx = web.Nginx(self.lab)
        sha256 = nginx.put("file", 8_000_000)

        def fetch():
            for host in (SERVER, SERVER6):
                with self.subTest(host):
                    fetched = web.fetch(self.lab, "file", host=host)
                    self.assertEqual((fetched.status, fetched.sha256), (200, sha256))

        self.assertEqual(self.reasons_of(fetch), {"optimised": 2})

    def test_smbd_and_smbclient_copy_both_ways(self):
        smbd = smb.Smbd(self.lab)
        there = smbd.make("there", 4_000_000, seed=3)
        here = self.lab.scratch / "here"
        with open(here, "wb") as file:
            file.writelines(tcp.pieces(4_000_000, seed=4))

        def copy():
            self.assertEqual(smbd.get("there"), there)
            self.assertEqual(smbd.put(here, "copy"), web.sha256_of(here))

        # smbclient says that it could use several connections, and this server has addresses of both families.
        self.assertLessEqual(set(self.reasons_of(copy)), {"optimised", "smb_other_paths"})

    def test_a_thousand_short_connections_by_twenty_clients(self):
        def serve(connection):
            connection.send(connection.receive(100)[::-1] * 10)

        def call_fifty_times(client):
            for call in range(50):
                question = f"client {client} call {call} ".encode().ljust(100, b".")
                connection = tcp.connect(self.lab, SERVER, server.port)
                connection.send(question)
                self.assertEqual(connection.receive_rest(), (question[::-1] * 10, "end"))
                connection.close()

        def call_all():
            server.clients.clear()
            with concurrent.futures.ThreadPoolExecutor(20) as clients:
                for done in [clients.submit(call_fifty_times, client) for client in range(20)]:
                    done.result()
            self.assertEqual(len(server.clients), 1000)

        with tcp.Server(self.lab, serve) as server:
            self.assertEqual(self.reasons_of(call_all), {"optimised": 1000})

    def test_the_first_byte_comes_after_one_round_trip(self):
        def call():
            began = time.monotonic()
            connection = tcp.connect(self.lab, SERVER, server.port)
            connection.send(b"x")
            connection.receive(1)
            taken = time.monotonic() - began
            connection.close()
            return taken

        best = None

        def call_until_quick():
            nonlocal best
            best = call()
            for _ in range(60):  # a busy host makes many late; the bare line takes two round trips
                if best < 1.6 * self.round_trip:
                    break
                best = min(best, call())

        with tcp.Server(self.lab, tcp.echo) as server:
            self.assertEqual(set(self.reasons_of(call_until_quick)), {"optimised"})
        self.assertGreater(best, self.round_trip)
        self.assertLess(best, 1.6 * self.round_trip)


class Source(PairTest):
    """The client address that the server sees, as configured at the client's side."""

    branch_has = {"intercept": {"source": "proxy"}}

    def test_the_server_sees_the_far_proxy_where_source_is_proxy(self):
        for address, seen in ((SERVER, "10.10.2.1"), (SERVER6, "fd10:2::1")):
            here, there = tcp.pair(self.lab, address)
            here.send(b"from the proxy")
            self.assertEqual(there.receive(14), b"from the proxy")
            self.assertEqual(there.remote[0], seen)


if __name__ == "__main__":
    unittest.main()
