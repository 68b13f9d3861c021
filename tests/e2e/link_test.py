# SPDX-License-Identifier: Apache-2.0
"""The link itself: who may have it, and the fate of flows when it is cut, falls silent, or its peer restarts."""

import itertools
import threading
import time
import unittest

import tcp
from lab import BRANCH_WAN, BRANCH_WAN6, DATACENTER_WAN, DATACENTER_WAN6, SERVER, SERVER6, Lab, until
from pair import LINK_PORT, Pair, PairTest, link_cut_off


class Copies:
    """An upload and a download, one over each family, while the test does something to the link. Their bytes never
    crossed it before, so that all of them move."""

    seeds = itertools.count(1)

    def __init__(self, lab, size):
        self.lab, self.size = lab, size
        self.up, self.down = next(self.seeds), next(self.seeds)
        self.got = {}

    def __enter__(self):
        self.receiver = tcp.Server(self.lab, tcp.report_digest)
        self.source = tcp.Server(self.lab, tcp.sender(self.size, self.down))
        self.threads = [threading.Thread(target=self._run, args=task) for task in (
            ("up", tcp.upload, SERVER, self.receiver.port, self.size, self.up),
            ("down", tcp.download, SERVER6, self.source.port))]
        for thread in self.threads:
            thread.start()
        return self

    def _run(self, name, copy, *words):
        try:
            self.got[name] = copy(self.lab, *words)
        except OSError as error:
            self.got[name] = error

    def wait(self):
        for thread in self.threads:
            thread.join(120)
        return self.got

    def __exit__(self, *_):
        self.wait()
        self.receiver.close()
        self.source.close()

    def expected(self):
        return {"up": tcp.digest(self.size, self.up), "down": tcp.digest(self.size, self.down)}


class Keys(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab)
        self.branch, self.datacenter = self.pair.sites

    def start(self):
        for site in self.pair.sites:
            site.start()
            self.addCleanup(site.stop)

    def assert_no_link(self):
        for site in self.pair.sites:
            self.assertEqual(site.link()["state"], "never_up")
        with tcp.Server(self.lab, tcp.report_digest) as server:  # without it, flows are plain
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 1000, 1), tcp.digest(1000, 1))
        self.assertEqual(self.branch.reasons(), {"link_never_up": 1})

    def test_the_dialler_refuses_a_peer_with_another_key_and_both_sides_log_it(self):
        expected = self.branch.keygen("another")
        self.branch.settings["peer"][0]["fingerprint"] = expected
        self.start()
        self.branch.process.lines_with("link_failed", "peer=datacenter", self.datacenter.fingerprint, expected)
        self.datacenter.process.lines_with("link_refused", BRANCH_WAN, "code=rejected_by_peer")
        self.assertIn(self.datacenter.fingerprint, self.branch.link()["last_error"])
        self.assertIn(self.datacenter.fingerprint, self.branch.longhaul("status"))
        self.assert_no_link()

    def test_the_listener_refuses_an_unknown_key_and_both_sides_log_it(self):
        self.datacenter.settings["peer"][0]["fingerprint"] = self.datacenter.keygen("another")
        self.start()
        self.datacenter.process.lines_with("link_refused", BRANCH_WAN, "code=unknown_key", self.branch.fingerprint)
        self.branch.process.lines_with("link_failed", "peer=datacenter",
                      f"the peer rejected the key of this site, {self.branch.fingerprint}")
        self.assert_no_link()

    def refused(self):
        return sum(self.datacenter.status()["strangers"]["refused"].values())

    def test_strangers_without_a_key_or_without_tls_get_nothing_and_are_logged(self):
        self.start()
        self.pair.wait_link()
        for words, sent in (("openssl", "s_client", "-quiet", "-connect", f"{DATACENTER_WAN}:{LINK_PORT}"), ""), \
                (("openssl", "s_client", "-quiet", "-tls1_2", "-connect", f"{DATACENTER_WAN}:{LINK_PORT}"), ""), \
                (("nc", "-N", DATACENTER_WAN, str(LINK_PORT)), "GET / HTTP/1.0\r\n\r\n"):
            before = self.refused()
            self.lab.run("client", "timeout", "5", *words, check=False, text=sent)
            until(lambda: self.refused() > before, what=f"{words[0]} is refused")
        self.assertEqual(self.datacenter.link()["state"], "up")
        self.assertEqual(self.datacenter.link()["carriers_attached"], 1)


class Cut(PairTest):
    line = ("51.84mbit,100",)

    def assert_link_is_as_new(self):
        before = self.branch.reasons()
        with tcp.Server(self.lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 100_000, 3), tcp.digest(100_000, 3))
        self.assertEqual(self.reasons_given(before), {"optimised": 1})

    def test_flows_resume_without_losing_a_byte_when_the_connection_is_cut(self):
        resets = [site.status()["flows"]["reset"] for site in self.pair.sites]
        here, there = tcp.pair(self.lab)  # for both cuts; each has copies of its own, whatever its recovery takes
        for _ in range(2):
            here.send(b"before")
            self.assertEqual(there.receive(6), b"before")
            with Copies(self.lab, 8_000_000) as copies:
                before = self.branch.link()
                until(lambda: self.branch.link()["bytes_sent"] > before["bytes_sent"] + 1_000_000, what="bytes move")
                with link_cut_off(self.lab, "reject with tcp reset"):
                    self.branch.wait_link("down")
                    here.send(b"meanwhile")
                self.branch.wait_link()
                # UDP may be heard again before TCP has been dialled.
                until(lambda: self.branch.link()["carriers_attached"] > before["carriers_attached"], what="TCP is connected again")
                self.assertEqual(copies.wait(), copies.expected())
            self.assertEqual(there.receive(9), b"meanwhile")
            there.send(b"after")
            self.assertEqual(here.receive(5), b"after")
        here.close()
        there.close()
        self.assertEqual([site.status()["flows"]["reset"] for site in self.pair.sites], resets)
        self.assert_link_is_as_new()

    def test_a_line_that_is_cut_for_five_seconds_delays_flows_and_loses_none(self):
        with Copies(self.lab, 8_000_000) as copies:
            moved = self.branch.link()
            until(lambda: self.branch.link()["bytes_sent"] > moved["bytes_sent"] + 1_000_000, what="bytes move")
            self.lab.link("51.84mbit,100,1")
            died = time.monotonic()
            for site in self.pair.sites:
                site.wait_link("silent", 20)  # after 1 s; the rest is for a busy machine, and less than what ends a link
            self.assertIn("link_silent", self.branch.longhaul("why", f"10.10.1.2-{SERVER}:80"))
            time.sleep(max(0, died + 5 - time.monotonic()))
            self.lab.link("51.84mbit,100")
            self.assertEqual(copies.wait(), copies.expected())
        self.pair.wait_link()
        self.assert_link_is_as_new()

    def test_new_flows_bypass_a_link_that_has_fallen_silent(self):
        before = self.branch.reasons()
        here, there = tcp.pair(self.lab)
        here.send(b"before")
        self.assertEqual(there.receive(6), b"before")
        with tcp.Server(self.lab, tcp.echo) as server, link_cut_off(self.lab, "drop"):
            self.branch.wait_link("silent")  # after 3 s where nothing waits to be sent
            connection = tcp.connect(self.lab, SERVER, server.port)
            connection.send(b"past")
            self.assertEqual(connection.receive(4), b"past")
            connection.close()
            here.send(b"in between")
        self.assertEqual(self.reasons_given(before), {"optimised": 1, "link_silent": 1})
        self.branch.wait_link()
        self.assertEqual(there.receive(10), b"in between")
        there.send(b"after")
        self.assertEqual(here.receive(5), b"after")
        here.close()
        there.close()


class Dialling(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab("51.84mbit,20"))

    def connections(self):
        lines = self.lab.run("datacenter", "ss", "-Htn", "state", "established",
                             f"( sport = :{LINK_PORT} or dport = :{LINK_PORT} )").splitlines()
        return len(lines)

    def copy(self, size=1_000_000):
        with tcp.Server(self.lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, size, 1), tcp.digest(size, 1))

    def test_the_link_crosses_ipv6(self):
        pair = Pair(self.lab, datacenter={"link": {"listen": f"[::]:{LINK_PORT}"}})
        pair.branch.settings["peer"][0]["address"] = f"[{DATACENTER_WAN6}]:{LINK_PORT}"
        self.enterContext(pair)
        self.copy()
        self.assertEqual(pair.branch.reasons(), {"optimised": 1})
        self.assertEqual(pair.branch.link()["remote_address"], f"[{DATACENTER_WAN6}]:{LINK_PORT}")
        self.assertTrue(pair.datacenter.link()["remote_address"].startswith(f"[{BRANCH_WAN6}]:"))

    def test_if_both_sides_dial_one_link_remains(self):
        pair = Pair(self.lab, branch={"link": {"listen": f"0.0.0.0:{LINK_PORT}"}})
        pair.datacenter.settings["peer"][0]["address"] = f"{BRANCH_WAN}:{LINK_PORT}"
        for attempt in range(3):
            with self.subTest(attempt=attempt), pair:
                until(lambda: self.connections() == 1, what="one connection is left")
                settled = [site.link()["carriers_attached"] for site in pair.sites]
                self.copy()
                time.sleep(1)  # for what should not come
                self.assertEqual(self.connections(), 1)
                self.assertEqual([site.link()["carriers_attached"] for site in pair.sites], settled)
                self.assertEqual([site.link()["state"] for site in pair.sites], ["up", "up"])
                self.assertEqual(pair.branch.reasons(), {"optimised": 1})
                self.assertLessEqual(max(settled), 2)

    def test_a_peer_that_comes_back_as_another_process_resets_its_flows_and_has_its_link_again(self):
        pair = self.enterContext(Pair(self.lab))
        for end in ("kill", "stop"):
            for site in pair.sites:
                with self.subTest(end=end, site=site.name):
                    here, there = tcp.pair(self.lab)
                    here.send(b"question")
                    self.assertEqual(there.receive(8), b"question")
                    getattr(site, end)()
                    site.start()
                    pair.wait_link()
                    for connection in (here, there):
                        self.assertEqual(connection.receive_rest(), (b"", "reset"))
                    before = pair.branch.reasons()
                    self.copy()
                    self.assertEqual(pair.branch.reasons()["optimised"], before.get("optimised", 0) + 1)

    def test_a_link_that_came_back_still_notices_silence(self):
        pair = self.enterContext(Pair(self.lab))
        pair.datacenter.stop()
        pair.branch.wait_link("down")
        time.sleep(3.5)  # until the timers of the session that ended have run out
        pair.datacenter.start()
        pair.wait_link()
        self.lab.link("51.84mbit,20,1")
        for site in pair.sites:
            site.wait_link("silent")

    def test_a_daemon_that_starts_before_its_peer_finds_it(self):
        pair = Pair(self.lab)
        pair.branch.start()
        self.addCleanup(pair.branch.stop)
        until(lambda: pair.branch.link()["last_error"], what="the first attempt fails")
        self.assertIn("Connection refused", pair.branch.link()["last_error"])
        self.copy()
        self.assertEqual(pair.branch.reasons(), {"link_never_up": 1})
        pair.datacenter.start()
        self.addCleanup(pair.datacenter.stop)
        pair.wait_link()
        self.assertIsNone(pair.branch.link()["last_error"])
        self.copy()
        self.assertEqual(pair.branch.reasons(), {"link_never_up": 1, "optimised": 1})


if __name__ == "__main__":
    unittest.main()
