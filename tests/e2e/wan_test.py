# SPDX-License-Identifier: Apache-2.0
"""longhaul-wan between real hosts: lines that change by schedule, and queues that are managed. What each decides is
tested in tests/tools/wan; here, that every byte arrives meanwhile and that the counters agree with the hosts."""

import json
import re
import unittest

import tcp
from lab import BUILD, SERVER, Lab, until

WAN = BUILD / "tools" / "wan" / "longhaul-wan"
SIZE = 4_000_000


class Line:
    """longhaul-wan with words of the test's own in the place of a lab's bridge."""

    def __init__(self, lab, *words):
        for end in ("branch0", "datacenter0"):
            lab.run("wan", "ip", "link", "set", end, "nomaster")
        self.lab = lab
        self.socket = lab.scratch / "line.sock"
        self.process = lab.start("wan", WAN, "run", "--a", "branch0", "--b", "datacenter0", "--control", self.socket, *words,
                                 clean_end=True)
        self.stats("--wait", "30")

    def stats(self, *words):
        return json.loads(self.lab.run("wan", WAN, "stats", "--control", self.socket, *words))


class WanTest(unittest.TestCase):
    def upload(self, lab, server, seed=1, size=SIZE):
        self.assertEqual(tcp.upload(lab, SERVER, server.port, size, seed=seed), tcp.digest(size, seed=seed))

    def check_counters(self, stats):
        """Every packet that came in has gone one way or another."""
        for direction in ("a_to_b", "b_to_a"):
            counted = stats[direction]
            gone = sum(counted[name] for name in ("packets_out", "lost", "dropped_queue", "policed", "cut", "packets_inside"))
            self.assertEqual(counted["packets_in"], gone - counted["duplicated"], counted)
            self.assertLessEqual(counted["dropped_early"], counted["dropped_queue"], counted)
            for fault in ("oversized", "send_failed", "dropped_memory"):
                self.assertEqual(counted[fault], 0, counted)


class Schedules(WanTest):
    def line(self, lab, text):
        (lab.scratch / "changes").write_text(text)
        return Line(lab, "--schedule", lab.scratch / "changes")

    def test_a_schedule_cuts_and_changes_a_line_under_transfers_again_and_again(self):
        lab = self.enterContext(Lab())
        line = self.line(lab, "# fails over\n0 rate=20mbit delay=5ms\n800ms cut=on\n1.2 cut=off delay=20ms rate=10mbit\nrepeat 2s\n")
        delays = set()
        with tcp.Server(lab, tcp.report_digest) as server:
            for seed in range(1, 20):
                self.upload(lab, server, seed)
                stats = line.stats()
                delays.add(stats["a_to_b"]["line"]["delay_ms"])
                if stats["a_to_b"]["cut"] > 0:
                    break
        self.assertGreater(stats["a_to_b"]["cut"], 0)
        until(lambda: delays.add(line.stats()["b_to_a"]["line"]["delay_ms"]) or delays >= {5, 20}, what="both delays")
        self.assertEqual(delays, {5, 20})
        self.check_counters(line.stats())

    def test_a_schedule_that_has_ended_leaves_its_last_settings_in_force(self):
        lab = self.enterContext(Lab())
        line = self.line(lab, "0 rate=1mbit\n10ms delay=30ms a-to-b-loss=0.5%\n")
        until(lambda: line.stats()["a_to_b"]["line"]["delay_ms"] == 30, what="the last step")
        ping = lab.run("client", "ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", SERVER, check=False).stdout
        trips = [float(found) for found in re.findall(r"time=([\d.]+) ms", ping)]
        self.assertGreaterEqual(min(trips), 60)
        lab.run("wan", WAN, "set", "--control", line.socket, "rate=20mbit")
        line_now = line.stats()["a_to_b"]["line"]
        self.assertEqual((line_now["rate_bits"], line_now["delay_ms"], line_now["loss"]), (20_000_000, 30, 0.005))
        with tcp.Server(lab, tcp.report_digest) as server:
            self.upload(lab, server)

    def test_traces_of_radio_links_carry_transfers_intact(self):
        for kind in ("lte", "5g", "starlink", "wifi"):
            with self.subTest(kind):
                lab = self.enterContext(Lab())
                line = self.line(lab, lab.run("wan", WAN, "trace", kind, "--seed", "3", "--seconds", "20"))
                with tcp.Server(lab, tcp.report_digest) as server:
                    self.upload(lab, server, size=1_000_000)
                self.check_counters(line.stats())

    def test_a_wrong_schedule_is_refused_with_its_line(self):
        lab = self.enterContext(Lab())
        (lab.scratch / "wrong").write_text("0 rate=1mbit\n1 speed=2\n")
        run = [WAN, "run", "--a", "branch0", "--b", "datacenter0", "--schedule"]
        done = lab.run("wan", *run, lab.scratch / "wrong", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("line 2: unknown setting \"speed\"", done.stderr)
        done = lab.run("wan", *run, lab.scratch / "absent", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot read", done.stderr)


class ManagedQueues(WanTest):
    LINE = "20mbit,20"
    QUEUE = "queue=500ms"

    def reset(self, lab):
        """What was on the line at that time would come out without having come in."""
        until(lambda: not any(lab.stats(reset=True)[way]["packets_inside"] for way in ("a_to_b", "b_to_a")),
              what="the line is empty")

    def in_ce(self, lab):
        """Packets that came to the server marked."""
        names, values = [line.split() for line in lab.run("server", "cat", "/proc/net/netstat").splitlines()
                         if line.startswith("IpExt:")]
        return int(values[names.index("InCEPkts")])

    def test_each_kind_drops_before_its_queue_is_full_and_every_byte_arrives(self):
        lab = self.enterContext(Lab(self.LINE, self.QUEUE))
        with tcp.Server(lab, tcp.report_digest) as server:
            for kind in ("codel", "fq_codel", "pie", "red"):
                with self.subTest(kind):
                    lab.link(self.LINE, self.QUEUE, f"aqm={kind}")
                    for _ in range(5):  # a busy host may not fill the queue
                        self.reset(lab)
                        self.upload(lab, server)
                        stats = lab.stats()
                        if stats["a_to_b"]["dropped_early"] > 0:
                            break
                    self.assertEqual(stats["a_to_b"]["line"]["aqm"], kind)
                    self.assertGreater(stats["a_to_b"]["dropped_early"], 0)
                    self.assertEqual(stats["a_to_b"]["marked"], 0)
                    self.check_counters(stats)

    def test_with_ecn_packets_are_marked_instead_and_the_server_sees_each_mark(self):
        lab = self.enterContext(Lab(self.LINE, self.QUEUE))
        for node in ("client", "server"):
            lab.run(node, "sysctl", "-q", "-w", "net.ipv4.tcp_ecn=1")
        with tcp.Server(lab, tcp.report_digest) as server:
            for kind in ("codel", "fq_codel", "pie", "red"):
                with self.subTest(kind):
                    lab.link(self.LINE, self.QUEUE, f"aqm={kind}", "ecn=on")
                    for _ in range(5):  # a busy host may not fill the queue
                        self.reset(lab)
                        before = self.in_ce(lab)
                        self.upload(lab, server)
                        stats = lab.stats()
                        if stats["a_to_b"]["marked"] > 0:
                            break
                    self.assertGreater(stats["a_to_b"]["marked"], 0)
                    self.assertEqual(self.in_ce(lab) - before, stats["a_to_b"]["marked"])
                    self.check_counters(stats)
            lab.link(self.LINE, self.QUEUE)  # and drop-tail again
            self.reset(lab)
            self.upload(lab, server)
            self.assertEqual(lab.stats()["a_to_b"]["marked"], 0)

    def test_a_queue_whose_management_changes_under_a_transfer_loses_nothing_uncounted(self):
        lab = self.enterContext(Lab(self.LINE, self.QUEUE))
        with tcp.Server(lab, tcp.report_digest) as server:
            line = Changing(lab, self.LINE, self.QUEUE)
            for seed in (1, 2):
                here = tcp.connect(lab, SERVER, server.port)
                for piece in tcp.pieces(SIZE, seed):
                    here.send(piece)
                    line.next()
                here.end()
                report = here.receive_rest()[0]
                self.assertIn(tcp.digest(SIZE, seed).sha256.encode(), report)
        self.check_counters(lab.stats())

    def test_a_policer_drops_what_exceeds_it(self):
        lab = self.enterContext(Lab(self.LINE, "policer=8mbit,64KiB"))
        with tcp.Server(lab, tcp.report_digest) as server:
            self.upload(lab, server)
        stats = lab.stats()
        self.assertGreater(stats["a_to_b"]["policed"], 0)
        self.check_counters(stats)


class Changing:
    def __init__(self, lab, *line):
        self.lab, self.line, self.step = lab, line, 0

    def next(self):
        kinds = ("codel", "off", "fq_codel", "red", "pie")
        self.lab.link(*self.line, f"aqm={kinds[self.step % len(kinds)]}", f"ecn={('on', 'off')[self.step % 2]}")
        self.step += 1


if __name__ == "__main__":
    unittest.main()
