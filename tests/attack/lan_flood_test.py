# SPDX-License-Identifier: Apache-2.0
"""A host on the LAN that begins connections and never completes them (forged SYNs), and one that has thousands and
leaves them idle. Another host of the LAN is served all the while."""

import contextlib
import ipaddress
import pathlib
import random
import socket
import struct
import sys
import threading
import time
import unittest

import tcp
from lab import BRANCH, BRANCH6, CLIENT, CLIENT6, SERVER, SERVER6, Lab, long_test, until
from pair import Pair

MANY = pathlib.Path(__file__).with_name("many_connections.py")
TRANSFER = 20_000
CALLS = 40
FORGED_BEFORE = 10_000  # the queue of half-open connections has room for 4096


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def syn(source, destination, port):
    """An IP packet with the first segment of a connection, as Linux would send it."""
    source, destination = ipaddress.ip_address(source).packed, ipaddress.ip_address(destination).packed
    options = bytes.fromhex("020405b4 0402 080a 00000001 00000000 01 030307".replace(" ", ""))
    head = struct.pack(">HHIIBBHHH", random.randrange(1024, 65536), port, random.getrandbits(32), 0, 10 << 4, 2, 64240,
                       0, 0) + options
    pseudo = source + destination + struct.pack(">II", len(head), 6) if len(source) == 16 else \
        source + destination + struct.pack(">HH", 6, len(head))
    head = head[:16] + struct.pack(">H", checksum(pseudo + head)) + head[18:]
    if len(source) == 16:
        return struct.pack(">IHBB", 6 << 28, len(head), 6, 64) + source + destination + head
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(head), random.getrandbits(16), 0, 64, 6, 0) + source + destination
    return ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + head


class Flood:
    """Sends 2,000 forged SYNs a second, or as many as the machine has time for, from the client's interface until
    the end of the context. `source()` gives the address of each."""

    RATE = 2000

    def __init__(self, lab, source, to, port):
        self.source, self.to, self.port = source, to, port
        self.sent = 0
        self.stop = threading.Event()
        interface = "eth0"
        with lab.inside("client"):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.bind((interface, 0))
        ours = self.socket.getsockname()[4]
        family = "-6" if ":" in to else "-4"
        gateway = BRANCH6 if family == "-6" else BRANCH
        lab.run("client", "ping", "-c1", "-W5", gateway)
        said = lab.run("client", "ip", family, "neighbour", "show", gateway).split()
        gateway_mac = bytes.fromhex(said[said.index("lladdr") + 1].replace(":", ""))
        self.head = gateway_mac + ours + (b"\x86\xdd" if family == "-6" else b"\x08\x00")
        self.thread = threading.Thread(target=self._send, daemon=True)

    def _send(self):
        began = time.monotonic()
        while not self.stop.is_set():
            due = int((time.monotonic() - began) * self.RATE)
            if due - self.sent > self.RATE:  # the machine was busy: no burst to make up for it
                began = time.monotonic() - self.sent / self.RATE
                continue
            for _ in range(due - self.sent):
                with contextlib.suppress(BlockingIOError, OSError):
                    self.socket.send(self.head + syn(self.source(), self.to, self.port))
                self.sent += 1
            time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.socket.close()


def within(network, but=()):
    network = ipaddress.ip_network(network)

    def source():
        while (address := network[random.randrange(1, network.num_addresses - 1)]) in but:
            pass
        return str(address)

    return source


class HalfOpen(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = self.enterContext(Pair(self.lab))
        self.branch = self.pair.branch

    def served_beside(self, source, server_address):
        """An honest client's connections are all optimised, and each byte crosses, while the flood goes on."""
        with tcp.Server(self.lab, tcp.report_digest) as server, Flood(self.lab, source, server_address,
                                                                      server.port) as flood:
            until(lambda: flood.sent >= FORGED_BEFORE, 120, "the flood")
            for call in range(CALLS):
                digest = tcp.upload(self.lab, server_address, server.port, TRANSFER, call)
                self.assertEqual(digest, tcp.digest(TRANSFER, call))
                self.assertTrue(flood.thread.is_alive())
        self.assertEqual(self.branch.reasons().get("optimised"), CALLS)
        self.assertEqual(self.branch.status()["flows"]["reset"], 0)

    def test_forged_syns_from_the_hosts_of_the_lan_disturb_no_other_host(self):
        ours = {ipaddress.ip_address(address) for address in (CLIENT, BRANCH)}
        self.served_beside(within("10.10.1.0/24", ours), SERVER)

    def test_forged_syns_of_ipv6_hosts_disturb_no_other_host(self):
        # As many neighbours as a LAN has: the kernel's table of neighbours is another matter.
        ours = {ipaddress.ip_address(address) for address in (CLIENT6, BRANCH6)}
        self.served_beside(within("fd10:1::/120", ours), SERVER6)

    def test_forged_syns_from_anywhere_disturb_no_other_host(self):
        self.lab.run("branch", "ip", "route", "add", "172.16.0.0/12", "via", CLIENT)
        self.served_beside(within("172.16.0.0/12"), SERVER)

    def test_forged_syns_from_one_address_disturb_no_other_host(self):
        self.served_beside(lambda: "10.10.1.66", SERVER)


class Idle(unittest.TestCase):
    HOST = "10.10.1.66"
    PORTS = (9001, 9002)

    def test_a_host_with_2000_idle_connections_of_512_allowed_is_never_reset_and_disturbs_no_other(self):
        self.check(1_000, {"flows_per_source": 512, "new_flows_per_source": 5_000})

    @long_test
    def test_a_host_with_20000_idle_connections_is_never_reset_and_disturbs_no_other(self):
        self.check(10_000, {})

    def check(self, connections, limits):
        """So many connections to each of two servers; by default 4,096 of a host may use the link."""
        lab = self.enterContext(Lab())
        lab.run("client", "ip", "address", "add", f"{self.HOST}/24", "dev", "eth0")
        branch = self.enterContext(Pair(lab, both={"log": {"level": "info"}, "limits": limits})).branch
        servers = [lab.start("server", sys.executable, MANY, "accept", port, connections) for port in self.PORTS]
        until(lambda: all("listening" in server.log() for server in servers), what="the servers listen")
        hosts = [lab.start("client", sys.executable, MANY, "hold", self.HOST, SERVER, port, connections)
                 for port in self.PORTS]
        for process, said in (*((host, "held") for host in hosts), *((server, "accepted") for server in servers)):
            until(lambda p=process, words=f"{said} {connections}": words in p.log() or not p.is_running(), 300,
                  f"{connections} connections")
            self.assertIn(said, process.log())
        of_host = branch.reasons()
        self.assertLessEqual(of_host["optimised"], limits.get("flows_per_source", 4096))
        with tcp.Server(lab, tcp.report_digest) as server:
            for call in range(CALLS):
                self.assertEqual(tcp.upload(lab, SERVER, server.port, TRANSFER, call), tcp.digest(TRANSFER, call))
        self.assertEqual(branch.reasons()["optimised"], of_host["optimised"] + CALLS)
        for process in (*hosts, *servers):
            self.assertNotIn("ended", process.log())
        status = branch.status()
        self.assertEqual(status["flows"]["reset"], 0)
        # Relayed if they came before the packet rules knew the host, else not seen by the daemon at all.
        self.assertGreater(of_host.get("source_limit", 0) + status["intercept"]["bypassed"]["source_limit"], 0)


if __name__ == "__main__":
    unittest.main()
