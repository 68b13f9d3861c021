# SPDX-License-Identifier: Apache-2.0
"""The UDP carrier between the two daemons: what it carries on lossy lines, what happens when it is blocked, cut,
moved or switched off in the middle of a transfer, and what strangers cost."""

import contextlib
import os
import random
import socket
import time
import unittest

import tcp
from lab import BRANCH_WAN, DATACENTER_WAN, DATACENTER_WAN6, PATIENCE, SERVER, Lab, until
from link_test import Copies
from pair import LINK_PORT, Pair


@contextlib.contextmanager
def rules(lab, node, body, table="disturb"):
    lab.run(node, "nft", "-f", "-", text=f"table inet {table} {{\n{body}\n}}\n")
    try:
        yield
    finally:
        lab.run(node, "nft", "delete", "table", "inet", table)


UDP_OUT = f"chain out {{ type filter hook output priority 0; udp dport {LINK_PORT} drop; }}\n"
UDP_IN = f'chain in {{ type filter hook input priority 0; iifname != "lo" udp sport {LINK_PORT} drop; }}\n'


def wait_carrier(sites, carrier, seconds=PATIENCE):
    for site in sites:
        until(lambda: site.link()["carrier"] == carrier, seconds, f"{site.name} sends on {carrier}")


def moved(site, size):
    """Returns when the link of the site has moved so many bytes more."""
    before = site.link()["bytes_sent"]
    until(lambda: site.link()["bytes_sent"] > before + size, what=f"{size} bytes move")


class Udp(unittest.TestCase):
    def start(self, line, *settings, **changes):
        self.lab = self.enterContext(Lab(line, *settings))
        self.pair = self.enterContext(Pair(self.lab, **changes))
        self.branch, self.datacenter = self.pair.sites

    def start_on_udp(self, line, *settings, **changes):
        self.start(line, *settings, **changes)
        wait_carrier(self.pair.sites, "udp")

    def fallbacks(self):
        return [site.link()["udp"]["fallbacks"] for site in self.pair.sites]

    def over_udp(self, act):
        """Acts until UDP has carried all of it: on a machine that stands still for a second it gives way to TCP, and comes back."""
        for _ in range(5):
            wait_carrier(self.pair.sites, "udp", 2 * PATIENCE)
            before = self.fallbacks()
            act()
            if self.fallbacks() == before:
                return
        self.fail(f"UDP gave way to TCP each time: {self.fallbacks()}")

    def copy(self, size):
        with Copies(self.lab, size) as copies:
            self.assertEqual(copies.wait(), copies.expected())

    def assert_no_flow_was_reset(self):
        self.assertEqual([site.status()["flows"]["reset"] for site in self.pair.sites], [0, 0])

    def check_loss(self, line):
        self.start_on_udp(line)
        self.over_udp(lambda: self.copy(8_000_000))
        for site in self.pair.sites:
            udp = site.link()["udp"]
            self.assertGreater(udp["packets_lost"], 0)
            self.assertGreater(udp["bytes_sent"], 8_000_000)
        self.assert_no_flow_was_reset()

    def test_a_transfer_over_udp_is_whole_at_one_percent_loss(self):
        self.check_loss("51.84mbit,100,0.01")

    def test_a_transfer_over_udp_is_whole_at_ten_percent_loss(self):
        self.check_loss("51.84mbit,100,0.1")

    def test_bursts_of_loss_reordering_and_copies_change_no_byte(self):
        self.start_on_udp("51.84mbit,100,0.01", "burst-loss=0.002,0.2", "reorder=2%", "duplicate=2%", "jitter=1ms")
        self.over_udp(lambda: self.copy(6_000_000))
        for site in self.pair.sites:
            self.assertGreater(site.link()["udp"]["packets_dropped"], 0)  # the copies

    def test_damaged_packets_are_dropped_and_sent_again(self):
        self.start_on_udp("51.84mbit,50")
        # With the checksum switched off, so that the damage reaches the daemon.
        one_of_twenty = f"udp dport {LINK_PORT} numgen random mod 20 == 0"
        damage = (f"chain in {{ type filter hook prerouting priority -300; {one_of_twenty} "
                  "@th,256,8 set 0x55 udp checksum set 0; }")
        with rules(self.lab, "datacenter", damage):
            self.over_udp(lambda: self.copy(4_000_000))
        self.assertGreater(self.datacenter.link()["udp"]["packets_dropped"], 50)
        self.assertEqual(self.branch.link()["udp"]["packets_dropped"], 0)
        self.assert_no_flow_was_reset()

    def test_a_replayed_capture_changes_nothing(self):
        self.start_on_udp("51.84mbit,20")
        ip_packets = socket.htons(0x0800)
        with self.lab.inside("datacenter"):
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, ip_packets)
            tap.bind(("wan0", 0x0800))
            tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        with self.lab.inside("branch"):
            replayer = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        with tap, replayer:
            tap.settimeout(0.2)
            here, there = tcp.pair(self.lab)

            def send():
                here.send_made(500_000, 7)
                self.assertEqual(there.receive(500_000), b"".join(tcp.pieces(500_000, 7)))

            self.over_udp(send)
            captured = []
            with contextlib.suppress(TimeoutError):
                while len(captured) < 300:
                    packet = tap.recv(65535)
                    if packet[9] == socket.IPPROTO_UDP and packet[22:24] == LINK_PORT.to_bytes(2, "big"):
                        captured.append(packet)
            self.assertGreater(len(captured), 100)
            before = self.datacenter.link()["udp"]["packets_dropped"]

            def replayed():
                for packet in captured:
                    replayer.sendto(packet, (DATACENTER_WAN, 0))
                    time.sleep(0.0005)  # the line's queue is not what is tested
                return self.datacenter.link()["udp"]["packets_dropped"] >= before + 2 * len(captured)

            until(replayed, what="as many copies are dropped as two captures have")
            here.send(b"after")
            self.assertEqual(there.receive(5), b"after")
            wait_carrier([self.datacenter], "udp")
        self.assert_no_flow_was_reset()

    def test_udp_crosses_ipv6(self):
        lab = self.enterContext(Lab("51.84mbit,20,0.01"))
        pair = Pair(lab, datacenter={"link": {"listen": f"[::]:{LINK_PORT}"}})
        pair.branch.settings["peer"][0]["address"] = f"[{DATACENTER_WAN6}]:{LINK_PORT}"
        self.enterContext(pair)
        wait_carrier(pair.sites, "udp")
        self.assertEqual(pair.branch.link()["remote_address"], f"[{DATACENTER_WAN6}]:{LINK_PORT}")
        with Copies(lab, 4_000_000) as copies:
            self.assertEqual(copies.wait(), copies.expected())

    def test_a_restarted_daemon_begins_at_the_measured_rate(self):
        self.start_on_udp("51.84mbit,100")
        with Copies(self.lab, 12_000_000) as copies:
            self.assertEqual(copies.wait(), copies.expected())
        self.pair.stop()
        self.pair.start()
        wait_carrier(self.pair.sites, "udp")
        for site in self.pair.sites:  # nothing was sent yet; the first packets of an unknown line go at 192 Mbit/s
            self.assertLess(site.link()["udp"]["pacing_rate_bits"], 1.3 * 51.84e6)
            self.assertEqual(site.link()["udp"]["rate"]["law"], "measured")
        with Copies(self.lab, 2_000_000) as copies:
            self.assertEqual(copies.wait(), copies.expected())

    def test_udp_that_fails_during_a_transfer_is_abandoned_and_tried_again(self):
        self.start_on_udp("51.84mbit,100")
        with Copies(self.lab, 16_000_000) as copies:
            moved(self.branch, 1_000_000)
            before = self.fallbacks()
            with rules(self.lab, "branch", UDP_OUT + UDP_IN):
                wait_carrier(self.pair.sites, "tcp")
                self.assertEqual(copies.wait(), copies.expected())
                for site, old in zip(self.pair.sites, before):
                    self.assertLessEqual(site.link()["udp"]["fallbacks"], old + 1)  # none if it had given way a moment before
        self.assertGreater(min(self.fallbacks()), 0)
        self.assert_no_flow_was_reset()
        for site in self.pair.sites:
            site.process.lines_with("link_path_changed")
            self.assertEqual(site.link()["carriers_attached"], 1)
        self.assertEqual(self.branch.link()["state"], "up")
        wait_carrier(self.pair.sites, "udp", 2 * PATIENCE)

    def check_one_direction(self, direction):
        self.start_on_udp("51.84mbit,50")
        with Copies(self.lab, 8_000_000) as copies:
            moved(self.branch, 500_000)
            with rules(self.lab, "branch", direction):
                wait_carrier(self.pair.sites, "tcp")
                self.assertEqual(copies.wait(), copies.expected())
        self.assert_no_flow_was_reset()

    def test_if_udp_fails_towards_the_acceptor_both_sides_abandon_it(self):
        self.check_one_direction(UDP_OUT)

    def test_if_udp_fails_towards_the_dialler_both_sides_abandon_it(self):
        self.check_one_direction(UDP_IN)

    def test_tcp_carries_if_udp_is_blocked_from_the_start(self):
        lab = self.enterContext(Lab("51.84mbit,20"))
        with rules(lab, "branch", UDP_OUT + UDP_IN):
            pair = self.enterContext(Pair(lab))
            with Copies(lab, 1_000_000) as copies:
                self.assertEqual(copies.wait(), copies.expected())
            for site in pair.sites:
                self.assertEqual(site.link()["carrier"], "tcp")
            until(lambda: pair.branch.link()["udp"]["state"] == "failed", what="UDP is given up for now")
            for site, words in ((pair.branch, "does not answer over UDP"), (pair.datacenter, "no UDP packet received yet")):
                until(lambda site=site, words=words: words in site.longhaul("status"), what=f"the status of {site.name} says so")
        wait_carrier(pair.sites, "udp", 2 * PATIENCE)

    def test_transport_changes_while_a_transfer_runs(self):
        self.start_on_udp("51.84mbit,50,0.001")

        def change():
            for transport, carrier in (("tcp", "tcp"), ("udp", "udp"), ("tcp", "tcp"), ("auto", "udp")):
                before = self.branch.link()["bytes_sent"]
                with Copies(self.lab, 4_000_000) as copies:
                    until(lambda: self.branch.link()["bytes_sent"] > before + 500_000, what="the transfer has begun")
                    self.branch.longhaul("set", f"transport={transport}")
                    wait_carrier(self.pair.sites, carrier, 2 * PATIENCE)
                    self.assertEqual(copies.wait(), copies.expected())

        self.over_udp(change)  # none of the changes counts as a fallback
        self.assert_no_flow_was_reset()
        # Either side's word is enough.
        self.datacenter.set(transport="tcp")
        wait_carrier(self.pair.sites, "tcp")

    def test_the_diallers_port_may_change_during_a_flow(self):
        self.start_on_udp("51.84mbit,50")
        port = int(self.datacenter.link()["udp"]["remote_address"].rpartition(":")[2])
        # As a NAT that forgot the flow: another source port, and the answers to it find back. Without connection
        # tracking, which would go on with what it knows; and where packets come in, for there they are whole: one that
        # is still to be segmented has no checksum yet that could be changed.
        there = f"chain in {{ type filter hook prerouting priority -300; udp dport {LINK_PORT} udp sport set 40001; }}"
        back = (f"chain in {{ type filter hook prerouting priority -300; udp sport {LINK_PORT} udp dport 40001 "
                f"udp dport set {port}; }}")
        with Copies(self.lab, 8_000_000) as copies:
            moved(self.branch, 1_000_000)
            with rules(self.lab, "branch", back), rules(self.lab, "datacenter", there):
                until(lambda: self.datacenter.link()["udp"]["remote_address"] == f"{BRANCH_WAN}:40001",
                      what="the datacenter follows")
                self.assertEqual(copies.wait(), copies.expected())
        self.assertEqual([site.link()["carriers_attached"] for site in self.pair.sites], [1, 1])
        self.assert_no_flow_was_reset()

    def test_a_peer_that_is_killed_while_udp_carries_comes_back_on_udp(self):
        self.start_on_udp("51.84mbit,20")
        for site in reversed(self.pair.sites):
            with self.subTest(site.name):
                here, there = tcp.pair(self.lab)
                here.send(b"question")
                self.assertEqual(there.receive(8), b"question")
                site.kill()
                site.start()
                self.pair.wait_link()
                for connection in (here, there):
                    self.assertEqual(connection.receive_rest(), (b"", "reset"))
                wait_carrier(self.pair.sites, "udp")
                with Copies(self.lab, 1_000_000) as copies:
                    self.assertEqual(copies.wait(), copies.expected())

    def test_udp_continues_without_the_control_connection_and_then_uses_new_keys(self):
        for _ in range(3):  # UDP gives way on a machine that stands still for a second: then in another lab
            self.start_on_udp("51.84mbit,50")
            self.cut_the_control_connection()
            if self.fallbacks() == [0, 0]:
                return
        self.fail("UDP gave way each time")

    def cut_the_control_connection(self):
        only_tcp = f"""
            chain out {{ type filter hook output priority 0; tcp dport {LINK_PORT} reject with tcp reset; }}
            chain in {{ type filter hook input priority 0; iifname != "lo" tcp sport {LINK_PORT} drop; }}"""
        here, there = tcp.pair(self.lab)
        time.sleep(0.5)  # what TCP carried is acknowledged: anything that it sends now is answered with a reset
        with rules(self.lab, "branch", only_tcp):
            # Keep-alive notices: nothing else is said on that connection.
            for site in self.pair.sites:
                until(lambda: "link_tcp_lost" in site.process.log(), what=f"{site.name} misses the connection")
            here.send(b"question")
            self.assertEqual(there.receive(8), b"question")
            with Copies(self.lab, 4_000_000) as copies:
                self.assertEqual(copies.wait(), copies.expected())
            for site in self.pair.sites:
                until(lambda: (site.link()["carrier"], site.link()["state"]) == ("udp", "up"), what=f"{site.name} is up on UDP")
        for transfer in range(2):  # under the old keys, and under the new ones
            with Copies(self.lab, 4_000_000) as copies:
                self.assertEqual(copies.wait(), copies.expected())
            if transfer == 0:
                until(lambda: self.branch.link()["carriers_attached"] >= 2, what="the connection is back")
        there.send(b"answer")
        self.assertEqual(here.receive(6), b"answer")
        wait_carrier(self.pair.sites, "udp")
        self.assert_no_flow_was_reset()

    def test_a_control_connection_with_data_in_flight_is_known_to_be_dead(self):
        """The kernel sends no keep-alives on it, and by itself repeats the data for a quarter of an hour."""
        self.start_on_udp("51.84mbit,40")
        only_tcp = (f"chain out {{ type filter hook output priority 0; tcp dport {LINK_PORT} drop; }}\n"
                    f'chain in {{ type filter hook input priority 0; iifname != "lo" tcp sport {LINK_PORT} drop; }}')
        before = [site.link()["bytes_sent"] for site in self.pair.sites]
        with Copies(self.lab, 4_000_000) as copies, rules(self.lab, "branch", only_tcp):
            # A flow of which nothing has come yet would be taken back, and bypass the link.
            until(lambda: all(site.link()["bytes_sent"] > old + 300_000 for site, old in zip(self.pair.sites, before)),
                  what="bytes move in both directions")
            # Without UDP for a moment, TCP is asked whether it works.
            with rules(self.lab, "branch", UDP_OUT + UDP_IN, table="udp_too"):
                time.sleep(0.7)
            until(lambda: "link_tcp_lost" in self.branch.process.log(), what="the branch misses the connection")
            self.assertEqual(copies.wait(), copies.expected())
        until(lambda: self.branch.link()["carriers_attached"] >= 2, what="the connection is back")
        self.assert_no_flow_was_reset()

    def test_strangers_get_no_answer_and_cost_little(self):
        self.start_on_udp("51.84mbit,20")
        seed = int(os.environ.get("LONGHAUL_SEED", "1"))
        source = random.Random(seed)
        packets = [source.randbytes(source.randint(0, 1400)) for _ in range(500)]
        packets += [b"\x40" + packet[:200] for packet in packets]

        def cpu_seconds():
            with open(f"/proc/{self.datacenter.process.pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        with self.lab.inside("server"):  # the line does not bound what comes from here
            stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        lines = self.datacenter.process.log().splitlines()
        idle, began = cpu_seconds(), time.monotonic()
        time.sleep(2)
        idle = (cpu_seconds() - idle) / (time.monotonic() - began)
        before, began, count = cpu_seconds(), time.monotonic(), 30_000
        for i in range(count):
            with contextlib.suppress(OSError):
                stranger.sendto(packets[i % len(packets)], (DATACENTER_WAN, LINK_PORT))
            if i % 50 == 0:
                time.sleep(max(0, began + i / 10_000 - time.monotonic()))
        seconds = time.monotonic() - began
        busy = (cpu_seconds() - before) / seconds
        print(f"seed {seed}: {count / seconds:.0f} packets/s from a stranger: {100 * busy:.1f} % of a core, "
              f"without {100 * idle:.1f} %")
        stranger.setblocking(False)
        with self.assertRaises(BlockingIOError):
            stranger.recv(2000)
        stranger.close()
        link = self.datacenter.link()
        self.assertEqual((link["carriers_attached"], link["udp"]["packets_dropped"]), (1, 0))
        # Of the link itself there may be a few lines, if the machine stood still meanwhile.
        said = self.datacenter.process.log().splitlines()[len(lines):]
        self.assertEqual([line for line in said if SERVER in line], [])
        self.assertLess(len(said), 50)
        wait_carrier(self.pair.sites, "udp")
        with Copies(self.lab, 1_000_000) as copies:
            self.assertEqual(copies.wait(), copies.expected())


if __name__ == "__main__":
    unittest.main()
