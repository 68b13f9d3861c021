# SPDX-License-Identifier: Apache-2.0
"""longhaul-ttcp between two hosts: sweeps, what is kept when they end early, a classic ttcp as peer, what the line counted."""

import csv
import json
import signal
import socket
import unittest

from lab import BUILD, PATIENCE, SERVER, SERVER6, Lab, until

TTCP = BUILD / "tools" / "ttcp" / "longhaul-ttcp"


class Receiver:
    """`longhaul-ttcp serve` in the server's node."""

    def __init__(self, lab):
        self.process = lab.start("server", TTCP, "serve", clean_end=True)
        until(lambda: "ready for sweeps" in self.process.log(), what="longhaul-ttcp serves")


def sweep(lab, *words, host=SERVER, check=True):
    """The JSON of a sweep from its own file, and its output."""
    file = lab.scratch / f"{next(lab.counter)}.json"
    done = lab.run("client", TTCP, "sweep", host, "--json", file, *words, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"sweep ended with {done.returncode}\n{done.stderr}")
    return json.loads(file.read_text()) if file.exists() else None, done


class Sweeps(unittest.TestCase):
    def test_a_sweep_over_a_line_gives_every_row_in_every_form_in_both_families(self):
        lab = self.enterContext(Lab("51.84mbit,10"))
        Receiver(lab)
        for host, trials in ((SERVER, 2), (SERVER6, 1)):
            text, table = lab.scratch / f"{host}.txt", lab.scratch / f"{host}.csv"
            report, done = sweep(lab, "-S", "512,4096", "--kinds", "tcp,udp,udp+12,udp+12+rtt", "-N", trials, "-L", "64KiB",
                                 "--rate", "20mbit", "--pause", "100ms", "--gap", "0", "-F", text, "--csv", table, host=host)
            self.assertTrue(report["complete"])
            self.assertEqual(report["to"], host)
            self.assertEqual(len(report["rows"]), 2 * 4 * trials)
            self.assertEqual(len(report["means"]), 4 * 2)
            for row in report["rows"]:
                with self.subTest(host=host, row=row):
                    self.assertEqual(row["bytes_sent"], 65536)
                    self.assertEqual(row["bytes_received"] + row["bytes_lost"], row["bytes_sent"])
                    self.assertGreater(row["bytes_received"], 0)
                    if row["protocol"] == "TCP":
                        self.assertEqual(row["percent_received"], 100)
                    if row["protocol"].endswith("+RTT"):
                        self.assertGreater(row["setup_seconds"], 0.0099)  # the line's round trip
                        self.assertGreater(row["seconds"], row["setup_seconds"])
                    if row["protocol"].startswith("UDP") and row["packet_bytes"] == 4096:
                        self.assertEqual(row["fragments_per_packet"], 3)
                        self.assertEqual(row["fragments_sent"], 3 * row["packets_sent"])
            self.assertEqual(len(list(csv.DictReader(table.open()))), 2 * 4 * trials + 4 * 2)
            lines = [line.split("\t") for line in text.read_text().splitlines() if not line.startswith("#")]
            self.assertEqual({len(line) for line in lines}, {13})
            self.assertEqual(len(lines), 1 + 2 * 4 * trials + 4 * 2)
            self.assertIn(f"{8 * trials}/{8 * trials}", done.stderr)

    def test_lost_packets_and_lost_end_marks_block_neither_side(self):
        lab = self.enterContext(Lab())
        Receiver(lab)
        for verdict in ("drop", "reject"):  # reject: the sender hears of it, and goes on
            lab.run("server", "nft", "add table inet lose; flush table inet lose; "
                    "add chain inet lose in { type filter hook input priority 0; }; "
                    f"add rule inet lose in meta l4proto udp {verdict}")
            report, done = sweep(lab, "-S", "1024", "-N", 1, "-L", "64KiB", "--pause", "50ms", "--silence", "300ms")
            self.assertTrue(report["complete"])
            self.assertEqual([(row["protocol"], row["percent_received"], row["ended_by"]) for row in report["rows"]],
                             [("TCP", 100, "close"), ("UDP", 0, "silence"), ("UDP+12", 0, "silence")])
            self.assertIn("a device on the path filters UDP", done.stderr)

    def test_an_interrupted_sweep_keeps_its_results_and_leaves_the_receiver_ready(self):
        lab = self.enterContext(Lab())
        receiver = Receiver(lab)
        file, text = lab.scratch / "half.json", lab.scratch / "half.txt"
        sender = lab.start("client", TTCP, "sweep", SERVER, "-S", "1024", "--kinds", "tcp", "-N", 1000, "-L", "64KiB",
                           "--json", file, "-F", text)
        until(lambda: "2/1000" in sender.log(), what="two tests are done")
        sender.signal(signal.SIGINT)
        self.assertEqual(sender.wait(), 130)
        report = json.loads(file.read_text())
        self.assertGreaterEqual(len(report["rows"]), 2)
        self.assertEqual((report["complete"], report["note"]), (False, "interrupted"))
        self.assertIn(f"interrupted after {len(report['rows'])} of 1000 tests; they are in {text}, {file}", sender.log())
        until(lambda: "ended early" in receiver.process.log(), what="the receiver saw it")
        report, _ = sweep(lab, "-S", "1024", "--kinds", "tcp", "-N", 1, "-L", "64KiB")
        self.assertTrue(report["complete"])

    def test_a_second_controller_is_told_to_wait_and_a_lost_receiver_is_named(self):
        lab = self.enterContext(Lab())
        receiver = Receiver(lab)
        first = lab.start("client", TTCP, "sweep", SERVER, "-S", "1024", "--kinds", "tcp", "-N", 1000, "-L", "64KiB")
        until(lambda: "1/1000" in first.log(), what="the first sweep runs")
        report, second = sweep(lab, check=False)
        self.assertEqual((report, second.returncode), (None, 1))
        self.assertIn("it is busy with another sweep", second.stderr)
        receiver.process.kill()
        self.assertEqual(first.wait(), 1)
        self.assertRegex(first.log(), r"after \d+ of 1000 tests; their means are above")
        _, third = sweep(lab, check=False)
        self.assertEqual(third.returncode, 1)
        self.assertIn(f"nothing listens at {SERVER} port 5010", third.stderr)


class Classic(unittest.TestCase):
    """The peer speaks as any ttcp has since 1984: a bare stream; datagrams between marks of four bytes."""

    def setUp(self):
        self.lab = self.enterContext(Lab())

    def receiver(self, *words):
        process = self.lab.start("server", TTCP, "-r", *words)
        until(lambda: "port=" in process.log(), what="ttcp -r listens")
        return process

    def test_a_classic_sender_is_received_over_tcp_and_udp(self):
        with self.lab.inside("client"):
            stream = socket.socket()
            datagrams = socket.socket(type=socket.SOCK_DGRAM)
        over_tcp = self.receiver("-s")
        with stream:
            stream.connect((SERVER, 5001))
            stream.sendall(bytes(300_000))
        self.assertEqual(over_tcp.wait(), 0)
        self.assertIn("ttcp-r: 300000 bytes in ", over_tcp.log())
        over_udp = self.receiver("-s", "-u")
        with datagrams:
            datagrams.connect((SERVER, 5001))
            for packet in (bytes(4), *[bytes(1000)] * 20, *[bytes(4)] * 5):
                try:
                    datagrams.send(packet)
                except ConnectionRefusedError:
                    self.assertEqual(len(packet), 4)  # the first end mark was enough for it
        self.assertEqual(over_udp.wait(), 0)
        self.assertIn("ttcp-r: 20000 bytes in ", over_udp.log())

    def test_a_classic_receiver_hears_a_stream_and_marks_around_datagrams(self):
        with self.lab.inside("server"):
            listener = socket.create_server(("", 5001))
            datagrams = socket.socket(type=socket.SOCK_DGRAM)
        datagrams.bind(("", 5001))
        listener.settimeout(PATIENCE)
        datagrams.settimeout(PATIENCE)
        sender = self.lab.start("client", TTCP, "-t", "-s", "-l1000", "-n", 300, "-fm", SERVER)
        with listener, listener.accept()[0] as stream:
            stream.settimeout(PATIENCE)
            found = b"".join(iter(lambda: stream.recv(65536), b""))
        self.assertEqual((sender.wait(), len(found)), (0, 300_000))
        self.assertIn("Mbit/sec +++", sender.log())
        sender = self.lab.start("client", TTCP, "-t", "-s", "-u", "-l1000", "-n20", SERVER)
        with datagrams:
            sizes = [len(datagrams.recv(65536)) for _ in range(1 + 20 + 5)]
        self.assertEqual(sizes, [4] + [1000] * 20 + [4] * 5)
        self.assertEqual(sender.wait(), 0)

    def test_lost_end_marks_end_by_silence(self):
        with self.lab.inside("client"):
            datagrams = socket.socket(type=socket.SOCK_DGRAM)
        receiver = self.receiver("-s", "-u", "--silence", "200ms")
        with datagrams:
            datagrams.connect((SERVER, 5001))
            datagrams.send(bytes(1000))
        self.assertEqual(receiver.wait(), 0)
        self.assertIn("the end marks are considered lost", receiver.log())
        self.assertIn("ttcp-r: 1000 bytes in ", receiver.log())

    def test_standard_input_becomes_standard_output(self):
        receiver = self.lab.start("server", "sh", "-c", f"{TTCP} -r > copy")
        until(lambda: "port=" in receiver.log(), what="ttcp -r listens")
        text = "".join(f"line {number}\n" for number in range(100_000))
        self.lab.run("client", TTCP, "-t", SERVER, text=text)
        self.assertEqual(receiver.wait(), 0)
        self.assertTrue((self.lab.scratch / "copy").read_text() == text)


class OnALine(unittest.TestCase):
    """How close its rates are to those of iperf3 is measured by tests/bench/run probes."""

    def test_what_ttcp_counts_is_what_the_line_delivered_and_no_faster(self):
        rate = 20e6
        lab = self.enterContext(Lab("20mbit,10"))
        Receiver(lab)
        for kind, size, words in (("tcp", 8192, []), ("udp", 1024, ["--rate", "30mbit"])):  # more than the line takes
            with self.subTest(kind):
                for _ in range(6):  # a receiver that stands still for a moment misses packets, or begins to count late
                    lab.stats(reset=True)
                    report, _ = sweep(lab, "-S", size, "--kinds", kind, "-N", 1, "-L", "2MiB", *words)
                    row = report["rows"][0]
                    delivered = lab.stats()["a_to_b"]["ip_bytes_out"]
                    if row["bytes_received"] > 0.8 * delivered and 1e6 * row["mbit_per_second"] < 1.02 * rate:
                        break
                self.assertLess(row["bytes_received"], delivered)
                # Headers take a twentieth; TCP may send something twice, and the two talk about the sweep.
                self.assertGreater(row["bytes_received"], 0.8 * delivered)
                self.assertAlmostEqual(8e-6 * row["bytes_received"] / row["seconds"], row["mbit_per_second"], delta=0.01)
                self.assertLess(1e6 * row["mbit_per_second"], 1.02 * rate)  # the kernel reads the first bytes a little late


if __name__ == "__main__":
    unittest.main()
