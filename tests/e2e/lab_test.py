# SPDX-License-Identifier: Apache-2.0
"""The ground every other test stands on: the lab itself, and the bare line without any proxy."""

import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import iperf
import smb
import tcp
import web
from lab import CLIENT, CLIENT6, DATACENTER_SECOND, DATACENTER_WAN, SERVER, SERVER6, Lab, traces_of, until


def round_trips(lab, address=SERVER, count=3, size=56, node="client", patience=20):
    """In milliseconds; of packets that came back within `patience` seconds."""
    done = lab.run(node, "ping", "-n", "-c", count, "-i", "0.2", "-W", patience, "-s", size, address, check=False)
    return [float(found) for found in re.findall(r"time=([\d.]+) ms", done.stdout)]


def wait_shorter(lab, milliseconds, *where, **how):
    """The line is that short, although a busy machine wakes the emulator late, now and then."""
    until(lambda: min(round_trips(lab, *where, **how)) < milliseconds, what=f"a round trip of less than {milliseconds} ms")


class BareLine(unittest.TestCase):
    def test_bytes_arrive_intact_in_both_families(self):
        lab = self.enterContext(Lab())
        with tcp.Server(lab, tcp.report_digest) as server:
            for address in (SERVER, SERVER6):
                with self.subTest(address):
                    self.assertEqual(tcp.upload(lab, address, server.port, 20_000_000, seed=7),
                                     tcp.digest(20_000_000, seed=7))
        self.assertEqual([client[0] for client in server.clients], ["::ffff:" + CLIENT, CLIENT6])

    def test_half_close_and_reset_are_seen_at_the_other_end(self):
        lab = self.enterContext(Lab())
        here, there = tcp.pair(lab)
        here.send(b"question")
        here.end()
        self.assertEqual(there.receive_rest(), (b"question", "end"))
        there.send(b"answer")
        self.assertEqual(here.receive(6), b"answer")
        there.reset()
        self.assertEqual(here.receive_rest(), (b"", "reset"))

    def test_the_server_can_call_the_client(self):
        lab = self.enterContext(Lab())
        here, there = tcp.pair(lab, CLIENT6, node="server", to="client")
        here.send(b"over IPv6")
        self.assertEqual(there.receive(9), b"over IPv6")

    def test_no_packet_above_the_mtu_crosses_the_line(self):
        lab = self.enterContext(Lab())
        watcher = lab.start("wan", "tcpdump", "-n", "-i", "branch0", "greater", "1515")
        until(lambda: "listening on" in watcher.log(), what="tcpdump listens")
        with tcp.Server(lab, tcp.report_digest) as server:
            tcp.upload(lab, SERVER, server.port, 5_000_000, seed=1)
        watcher.signal(signal.SIGINT)
        watcher.wait()
        self.assertIn("\n0 packets captured", watcher.log())

    def test_client_and_server_use_the_requested_congestion_control(self):
        for choice in ("cubic", "bbr"):
            lab = self.enterContext(Lab(options=["--cc", choice]))
            for address in (SERVER, SERVER6):
                here, there = tcp.pair(lab, address)
                self.assertEqual((here.congestion_control(), there.congestion_control()), (choice, choice))
            self.assertEqual(lab.status()["nodes"]["server"]["congestion_control"], choice)

    def test_buffers_can_be_bounded(self):
        lab = self.enterContext(Lab(options=["--buffers", "64k"]))
        self.assertEqual(lab.status()["nodes"]["client"]["tcp_rmem"][2], 65536)
        self.assertEqual(lab.status()["nodes"]["branch"]["tcp_rmem"][2], 64 << 20)


class EmulatedLine(unittest.TestCase):
    def test_the_round_trip_has_the_configured_value_from_the_first_packet(self):
        for address in (SERVER, SERVER6):
            # A busy machine wakes the emulator when it can. But not every first packet is late by a second trip, as it would
            # be if it waited for an address to be resolved.
            for _ in range(6):
                with Lab("51.84mbit,100") as lab:
                    found = round_trips(lab, address)
                self.assertEqual(len(found), 3)
                self.assertGreaterEqual(min(found), 100)
                if found[0] < 190:
                    break
            self.assertLess(found[0], 190)

    def test_the_line_changes_while_it_runs(self):
        lab = self.enterContext(Lab("51.84mbit,100"))
        lab.link("51.84mbit,20")
        wait_shorter(lab, 100)
        lab.link("51.84mbit,20", "a-to-b-loss=1")
        self.assertEqual(round_trips(lab, patience=1), [])
        lab.link("51.84mbit,20")
        wait_shorter(lab, 100)

    def test_a_second_line_has_settings_and_counters_of_its_own(self):
        lab = self.enterContext(Lab("51.84mbit,2", second="51.84mbit,60"))
        self.assertGreaterEqual(min(round_trips(lab, DATACENTER_SECOND, node="branch")), 60)
        wait_shorter(lab, 60, DATACENTER_WAN, node="branch")
        lab.link("51.84mbit,2", "a-to-b-loss=1", which="second")
        self.assertEqual(round_trips(lab, DATACENTER_SECOND, node="branch", patience=1), [])
        self.assertEqual(len(round_trips(lab, DATACENTER_WAN, node="branch")), 3)
        self.assertEqual(len(round_trips(lab)), 3)
        self.assertGreaterEqual(lab.stats(which="second")["a_to_b"]["lost"], 3)
        self.assertEqual(lab.stats()["a_to_b"]["lost"], 0)

    def test_a_lab_with_one_line_has_no_second_one(self):
        lab = self.enterContext(Lab("51.84mbit,2"))
        with self.assertRaisesRegex(AssertionError, "one line"):
            lab.link("51.84mbit,2", which="second")

    def test_a_transfer_is_no_faster_than_the_line(self):
        lab = self.enterContext(Lab("10mbit,20"))
        with tcp.Server(lab, tcp.report_digest) as server:
            began = time.monotonic()
            self.assertEqual(tcp.upload(lab, SERVER, server.port, 2_500_000, seed=1), tcp.digest(2_500_000, seed=1))
            seconds = time.monotonic() - began
        self.assertGreater(seconds, 2.0)

    def test_the_line_counts_all_packets(self):
        lab = self.enterContext(Lab("51.84mbit,2"))
        lab.stats(reset=True)
        self.assertEqual(len(round_trips(lab, count=5, size=972)), 5)
        counted = lab.stats()
        for direction in ("a_to_b", "b_to_a"):
            # 1000 bytes each: 20 IP, 8 ICMP, 972 data. IPv6 tells its multicast groups by itself, some 100 bytes.
            self.assertEqual(counted[direction]["ip_bytes_out"] // 1000, 5)
            self.assertEqual(counted[direction]["oversized"], 0)

    def test_bytes_arrive_intact_over_a_lossy_line(self):
        lab = self.enterContext(Lab("51.84mbit,10,0.01"))
        with tcp.Server(lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(lab, SERVER6, server.port, 3_000_000, seed=2), tcp.digest(3_000_000, seed=2))
        self.assertGreater(lab.stats()["a_to_b"]["lost"], 0)

    def test_one_packet_can_be_lost(self):
        lab = self.enterContext(Lab("51.84mbit,2"))
        for attempt in range(1, 6):  # the kernels' own packets, of their neighbours, may come before an answer
            lab.lose(b_to_a=1)
            answered = len(round_trips(lab, count=5, patience=3))
            counted = lab.stats()
            self.assertEqual((counted["a_to_b"]["lost"], counted["b_to_a"]["lost"]), (0, attempt))
            if answered == 4:
                break
        self.assertEqual(answered, 4)
        with self.assertRaisesRegex(AssertionError, "b-to-a=many"):
            lab.command("lose", "b-to-a=many")

    def test_packets_can_be_larger_than_usual(self):
        lab = self.enterContext(Lab("51.84mbit,2", options=["--mtu", "9000"]))
        for address, headers in ((SERVER, 28), (SERVER6, 48)):
            done = lab.run("client", "ping", "-n", "-c", "1", "-W", "5", "-M", "do", "-s", 9000 - headers, address)
            self.assertIn(" 1 received", done)
        self.assertEqual(lab.stats()["a_to_b"]["oversized"], 0)

    def test_an_invalid_line_is_refused_with_a_sentence(self):
        lab = self.enterContext(Lab("51.84mbit,10"))
        for line in ("51.84mbit", "fast,10", "1mbit,soon", "1mbit,10,often"):
            with self.subTest(line), self.assertRaisesRegex(AssertionError, "tools/lab: |longhaul-wan: "):
                lab.link(line)
        self.assertEqual(lab.status()["line"]["rate"], "51.84mbit")


class Counterparts(unittest.TestCase):
    def test_nginx_serves_curl_in_both_families(self):
        lab = self.enterContext(Lab())
        nginx = web.Nginx(lab)
        sha256 = nginx.put("file", 3_000_000)
        for host in (SERVER, SERVER6):
            fetched = web.fetch(lab, "file", host=host)
            self.assertEqual((fetched.status, fetched.size, fetched.sha256), (200, 3_000_000, sha256))
        self.assertEqual(web.fetch(lab, "no-such-file").status, 404)

    def test_smbd_serves_smbclient_both_ways(self):
        lab = self.enterContext(Lab())
        smbd = smb.Smbd(lab)
        sha256 = smbd.make("file", 3_000_000)
        for dialect in ("NT1", "SMB3_11"):
            with self.subTest(dialect):
                self.assertEqual(smbd.get("file", "-m", dialect), sha256)
                self.assertEqual(smbd.put(smbd.share / "file", "copy", "-m", dialect), sha256)

    def test_iperf3_measures(self):
        lab = self.enterContext(Lab())
        self.assertGreater(iperf.Iperf3(lab).received_bits_per_second(seconds=1), 10e6)


class Cleanliness(unittest.TestCase):
    def test_a_lab_leaves_nothing_behind(self):
        with Lab() as lab:
            lab.start("server", "sleep", "1000")
            (lab.scratch / "file").write_text("goes too")
            self.assertNotEqual(traces_of(lab.name), [])
        self.assertEqual(traces_of(lab.name), [])

    def test_a_lab_goes_down_when_its_holder_is_killed(self):
        holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True,
                                  cwd=pathlib.Path(__file__).parent)
        name, sleeper = holder.stdout.readline().split()
        sleeping = os.pidfd_open(int(sleeper))
        holder.kill()
        holder.communicate()
        until(lambda: not traces_of(name), what=f"{name} is gone")
        self.assertTrue(select.select([sleeping], [], [], tcp.PATIENCE)[0], "what ran in the lab has ended")
        os.close(sleeping)

    def test_up_cleans_up_after_a_killed_up(self):
        with Lab() as lab:
            os.remove(f"/run/longhaul-lab/{lab.name}/state.json")  # as if `up` had not come to its end
            lab.run("client", "ip", "link", "delete", "eth0")
            lab.command("up", "--no-emulator", "--with-pid", str(os.getpid()))
            lab.run("client", "ping", "-c1", SERVER, cwd="/")
        self.assertEqual(traces_of(lab.name), [])

    def test_labs_do_not_see_each_other(self):
        first, second = self.enterContext(Lab()), self.enterContext(Lab())
        with tcp.Listener(first) as listener:
            tcp.connect(first, SERVER, listener.port).close()
            with self.assertRaises(ConnectionRefusedError):
                tcp.connect(second, SERVER, listener.port)

    def test_a_lab_in_use_is_not_replaced_by_accident(self):
        lab = self.enterContext(Lab())
        lab.start("branch", "sleep", "1000")
        with self.assertRaisesRegex(AssertionError, "is already up"):
            lab.command("up", "--no-emulator")
        self.assertIn("branch", json.loads(lab.command("status", "--json"))["nodes"])


HOLDER = """
import time
from lab import Lab
with Lab() as lab:
    print(lab.name, lab.start("branch", "sleep", "1000").pid, flush=True)
    time.sleep(1000)
"""


if __name__ == "__main__":
    unittest.main()
