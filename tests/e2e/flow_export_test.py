# SPDX-License-Identifier: Apache-2.0
"""Flow records (IPFIX) as nfcapd stores them and as this file decodes them from the templates that were sent with
them, compared with what the clients sent."""

import hashlib
import random
import shutil
import socket
import struct
import unittest

import tcp
from lab import CLIENT, CLIENT6, SERVER, SERVER6, until
from pair import PairTest

PORT = 4739
OWN = {1: "wan", 2: "reason", 3: "peer", 4: "name", 5: "module"}
KNOWN = {8: "source", 27: "source", 12: "destination", 28: "destination", 7: "source_port", 11: "destination_port",
         61: "direction", 136: "end", 152: "from", 153: "until", 1: "lan", 23: "post", 148: "flow", 4: "protocol"}


class Decoder:
    """Of RFC 7011, as far as the messages of one exporter need it."""

    def __init__(self, enterprise):
        self.enterprise = enterprise
        self.templates = {}  # id: [(element, size, enterprise)]
        self.next = None     # sequence number
        self.records = []
        self.types = {}      # names of enterprise elements (RFC 5610)

    def message(self, data):
        version, length, _, sequence, self.domain = struct.unpack_from("!HHIII", data)
        assert (version, length) == (10, len(data)), (version, length, len(data))
        assert len(data) <= 1232
        assert self.next in (None, sequence), (self.next, sequence)
        at, count = 16, 0
        while at < length:
            kind, size = struct.unpack_from("!HH", data, at)
            body = data[at + 4:at + size]
            at += size
            if kind in (2, 3):
                self.read_templates(body, 4 if kind == 2 else 6)
            else:
                count += self.read_records(kind, body)
        self.next = sequence + count

    def read_templates(self, body, head):
        while body:
            number, count = struct.unpack_from("!HH", body)
            body, fields = body[head:], []
            for _ in range(count):
                element, size = struct.unpack_from("!HH", body)
                body, enterprise = body[4:], 0
                if element & 0x8000:
                    enterprise, body = struct.unpack_from("!I", body)[0], body[4:]
                fields.append((element & 0x7fff, size, enterprise))
            self.templates[number] = fields

    def read_records(self, number, body):
        count = 0
        while body:
            record = {}
            for element, size, enterprise in self.templates[number]:
                if size == 0xffff:
                    size, body = body[0], body[1:]
                value, body = body[:size], body[size:]
                record[enterprise, element] = value
            count += 1
            if (0, 303) in record:
                self.types[int.from_bytes(record[0, 303], "big")] = record[0, 341].decode()
            else:
                self.records.append(self.named(record))
        return count

    def named(self, record):
        named = {}
        for (enterprise, element), value in record.items():
            name = KNOWN[element] if enterprise == 0 else OWN[element]
            assert enterprise in (0, self.enterprise)
            if name in ("source", "destination"):
                named[name] = socket.inet_ntop(socket.AF_INET if len(value) == 4 else socket.AF_INET6, value)
            elif name in ("reason", "peer", "name", "module"):
                named[name] = value.decode()
            else:
                named[name] = int.from_bytes(value, "big")
        return named


class Collector:
    """A UDP socket in a node, read by the test. `next_port`: the port of another collector in that node; each
    message that is read is forwarded to it. (nfcapd can forward messages itself, but loses some that arrive together.)"""

    def __init__(self, lab, node, port, enterprise=32473, next_port=None):
        with lab.inside(node):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.socket.settimeout(0.1)
        self.next_port = next_port
        self.decoder = Decoder(enterprise)

    def receive(self):
        try:
            while True:
                message = self.socket.recv(65_536)
                self.decoder.message(message)
                if self.next_port:
                    self.socket.sendto(message, ("127.0.0.1", self.next_port))
        except TimeoutError:
            return self.decoder.records


def of(records, source, destination):
    return [record for record in records if (record["source"], record["destination"]) == (source, destination)]


def total(records, what):
    return sum(record[what] for record in records)


class FlowExport(PairTest):
    branch_has = {"export": {"ipfix": f"collector.test:{PORT}", "ipfix_active_timeout": 1}}
    datacenter_has = {"export": {"ipfix": f"127.0.0.1:{PORT}", "ipfix_enterprise": 4242, "ipfix_active_timeout": 3600}}
    ports = set()

    @classmethod
    def prepare(cls):
        cls.branch.hosts = {"collector.test": "127.0.0.1"}
        cls.at_branch = Collector(cls.lab, "branch", PORT)
        cls.stored = cls.lab.scratch / "nfcapd"
        has_nfcapd = shutil.which("nfcapd") is not None
        cls.at_datacenter = Collector(cls.lab, "datacenter", PORT, 4242, PORT + 1 if has_nfcapd else None)
        if not has_nfcapd:
            return
        cls.stored.mkdir()
        nfcapd = cls.lab.start("datacenter", "nfcapd", "-w", cls.stored, "-p", PORT + 1, "-b", "127.0.0.1", "-t", 2)
        cls.addClassCleanup(nfcapd.kill)  # after a signal it sometimes waits for ever
        until(lambda: f":{PORT + 1} " in cls.lab.run("datacenter", "ss", "-uln"), what="nfcapd listens")

    def upload(self, host, data):
        """Gives the server's port, which no earlier one had: records are found by it."""
        with tcp.Server(self.lab, tcp.report_digest) as server:
            if server.port in self.ports:
                return self.upload(host, data)
            self.ports.add(server.port)
            client = tcp.connect(self.lab, host, server.port)
            client.send(data)
            client.end()
            answer, _ = client.receive_rest()
            client.close()
        self.assertEqual(answer.decode(), f"{len(data)} {hashlib.sha256(data).hexdigest()}\n")
        return server.port

    def records(self, collector, port):
        """Of the flows to that port of a server: a client may have used the same number."""
        ends = (("source", "source_port"), ("destination", "destination_port"))
        return [record for record in collector.receive()
                if any(record[end] in (SERVER, SERVER6) and record[number] == port for end, number in ends)]

    def ended(self, collector, port):
        """Both directions of the flow to that port, when their last records are there."""
        def last():
            records = self.records(collector, port)
            return len([record for record in records if record["end"] == 3]) == 2 and records
        return until(last, what="the records of the flow")

    def test_each_flow_is_reported_with_its_bytes_and_its_reason_by_both_sites(self):
        for client, host, data in ((CLIENT, SERVER, bytes(300_000)), (CLIENT6, SERVER6, random.Random(1).randbytes(200_000))):
            port = self.upload(host, data)
            for site, collector, ingress in ((self.branch, self.at_branch, client), (self.datacenter, self.at_datacenter, host)):
                records = self.ended(collector, port)
                counted = site.get(f"/v1/flows/{records[0]['flow']}")
                for record in records:
                    self.assertEqual((record["reason"], record["peer"], record["module"], record["protocol"]),
                                     ("optimised", "datacenter" if site is self.branch else "branch", "", 6))
                    self.assertEqual(record["post"], record["wan"])
                    self.assertEqual(record["direction"], 0 if record["source"] == ingress else 1)
                    self.assertLessEqual(record["from"], record["until"])
                away = [record for record in records if record["direction"] == 0]
                home = [record for record in records if record["direction"] == 1]
                self.assertEqual({"lan_in": total(away, "lan"), "wan_out": total(away, "wan"),
                                  "lan_out": total(home, "lan"), "wan_in": total(home, "wan")}, counted["bytes"])
                up = of(records, client, host)
                self.assertEqual(total(up, "lan"), len(data))
                if not any(data):
                    self.assertLess(total(up, "wan"), len(data) // 2)
        for collector in (self.at_branch, self.at_datacenter):
            self.assertEqual(collector.decoder.types[2], "flowReason")
        self.assertNotEqual(self.at_branch.decoder.domain, self.at_datacenter.decoder.domain)
        self.assertEqual(self.datacenter.status()["exports"]["ipfix"]["dropped_records"], 0)

    def test_a_live_flow_is_reported_before_it_ends_and_never_twice(self):
        with tcp.Server(self.lab, tcp.report_digest) as server:
            client = tcp.connect(self.lab, SERVER, server.port)

            def up():
                return of(self.records(self.at_branch, server.port), CLIENT, SERVER)

            client.send(b"first")
            until(lambda: total(up(), "lan") == 5, what="a report of the live flow")
            self.assertEqual({record["end"] for record in up()}, {2})
            client.send(b"second")
            client.end()
            client.receive_rest()
            client.close()
        self.ended(self.at_branch, server.port)
        self.assertEqual(total(up(), "lan"), 11)

    def test_the_reason_of_a_flow_that_bypasses_the_link_is_reported(self):
        self.branch.set(transport="off")
        try:
            port = self.upload(SERVER, bytes(1000))
        finally:
            self.branch.set(transport="auto")
        records = self.ended(self.at_branch, port)
        self.assertEqual({(record["reason"], record["peer"]) for record in records}, {("transport_off", "")})
        self.assertEqual(total(of(records, CLIENT, SERVER), "wan"), 1000)

    def test_a_collector_that_starts_again_is_sent_the_templates(self):
        def failures():
            return self.branch.status()["exports"]["ipfix"]["failures"]

        self.at_branch.socket.close()
        before = failures()
        self.upload(SERVER, b"refused")
        until(lambda: self.upload(SERVER, b"also refused") and failures() > before, what="the daemon learns that nothing listens")
        type(self).at_branch = Collector(self.lab, "branch", PORT)
        port = self.upload(SERVER, b"taken")
        self.assertEqual(total(of(self.ended(self.at_branch, port), CLIENT, SERVER), "lan"), 5)

    @unittest.skipUnless(shutil.which("nfcapd"), "nfdump is not installed")
    def test_nfcapd_stores_the_same_bytes_and_misses_no_message(self):
        sizes = {SERVER: 70_000, SERVER6: 60_000}
        ports = {self.upload(host, random.Random(2).randbytes(size)): host for host, size in sizes.items()}

        def rows():
            """From files that are complete."""
            self.at_datacenter.receive()
            if not list(self.stored.glob("nfcapd.2*")):
                return []
            table = self.lab.run("datacenter", "nfdump", "-R", self.stored, "-6", "-q", "-N", "-o", "fmt:%sa %sp %da %dp %byt %obyt")
            return [row for row in map(str.split, table.splitlines()) if len(row) == 6]  # without "No matching flows"

        until(lambda: len({row[3] for row in rows()} & {str(port) for port in ports}) == 2, what="nfcapd has stored the records")
        for port, host in ports.items():
            up = [row for row in rows() if row[2:4] == [host, str(port)]]
            sent = total(of(self.ended(self.at_datacenter, port), CLIENT if host == SERVER else CLIENT6, host), "wan")
            self.assertEqual([row[4:] for row in up], [[str(sizes[host]), str(sent)]])
        self.assertIn("Sequence failures: 0", self.lab.run("datacenter", "nfdump", "-R", self.stored, "-I"))


if __name__ == "__main__":
    unittest.main()
