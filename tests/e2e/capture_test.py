# SPDX-License-Identifier: Apache-2.0
"""The dissector of examples/wireshark in tshark, on what tcpdump captures of the link: headers without keys; with the key
log, the very bytes that a client sent, over both carriers and over two paths."""

import pathlib
import random
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import unittest

import tcp
from lab import BRANCH_WAN, BRANCH_WAN6, CLIENT, REPOSITORY, SERVER, Lab, until
from pair import Pair, use_two_paths, wait_paths

SCRIPT = REPOSITORY / "examples" / "wireshark" / "longhaul.lua"
MARK = b"no host on the path may read this"
DATA, END = 2, 5


def varint(data, at):
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at:at + size], "big") & (1 << 8 * size - 2) - 1, at + size


def plain_bytes(records):
    """Of the DATA records; the first record is OPEN."""
    at, plain = 0, b""
    while at < len(records):
        kind = records[at]
        size, at = varint(records, at + 1)
        if kind == DATA:
            plain += records[at:at + size]
        at += size
    return plain


@unittest.skipUnless(shutil.which("tshark") and shutil.which("tcpdump"), "tshark or tcpdump is not installed")
class Capture(unittest.TestCase):
    def capture(self, lab, features, policy=None, size=100_000):
        """Captures an upload of random bytes and MARK by the branch: file, key log, bytes, the server's port. With a policy
        over two paths."""
        data = random.Random(1).randbytes(size) + MARK
        both = {"features": {**features, "compression": False, "dedup_memory": False, "dedup_disk": False}}
        pair = Pair(lab, both=both, branch={"link": {"key_log": "link.keys"}})
        if policy:
            use_two_paths(pair, policy, rate="10mbit")
        file = lab.scratch / "link.pcap"
        watcher = lab.start("branch", "tcpdump", "-i", "any", "-s", 0, "-U", "-B", 65536, "-Z", "root", "-w", file,
                            "port 7600 or udp port 9")
        until(lambda: "listening on" in watcher.log(), what="tcpdump listens")
        with pair:
            if features["transport"] == "udp":
                until(lambda: pair.branch.link()["carrier"] == "udp", what="the link uses UDP")
            if policy:
                wait_paths(pair)
            with tcp.Server(lab, tcp.report_digest) as server:
                client = tcp.connect(lab, SERVER, server.port)
                client.send(data)
                client.end()
                client.receive_rest()
                client.close()
            pair.wait_flows()
            problems = pair.branch.status()["verdict"]["problems"]
            self.assertTrue(any("key_log" in problem["sentence"] for problem in problems), problems)
        # tcpdump drops what it has not read from the kernel when it is stopped; a packet behind the others shows that it has.
        lab.run("branch", "bash", "-c", "echo -n the-capture-ends-here > /dev/udp/127.0.0.1/9")
        until(lambda: b"the-capture-ends-here" in file.read_bytes(), what="tcpdump has written all packets")
        watcher.stop()
        self.assertNotIn(MARK, file.read_bytes())
        keys = pair.branch.folder / "state" / "link.keys"
        self.assertEqual(stat.S_IMODE(keys.stat().st_mode), 0o600)
        self.assertIn("[link] key_log is set", pair.branch.longhaul("check", pair.branch.file))
        return file, keys, data, server.port

    def tshark(self, lab, file, *words, keys=None):
        with_keys = ("-o", f"tls.keylog_file:{keys}", "-o", f"longhaul.key_log:{keys}") if keys else ()
        return lab.run("branch", "tshark", "-n", "-X", f"lua_script:{SCRIPT}", "-r", file, *with_keys, *words, seconds=120)

    def check(self, lab, file, keys, data, port):
        """The records with the key log, and the client's bytes put together from the frames."""
        fields = ("-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "separator=|")
        sent = f"longhaul.stream && (ip.src == {BRANCH_WAN} || ipv6.src == {BRANCH_WAN6})"
        shown = self.tshark(lab, file, "-Y", sent, *fields, "-e", "longhaul.stream",
                            "-e", "longhaul.offset", "-e", "longhaul.payload", "-e", "longhaul.record", keys=keys)
        pieces, records = {}, ""
        for line in shown.splitlines():
            streams, offsets, payloads, named = line.split("|", 3)
            records += named + "\n"
            streams, offsets, payloads = (text.split(",") for text in (streams, offsets, payloads))
            self.assertEqual(len(streams), len(payloads))
            for stream, offset, payload in zip(streams, offsets, payloads):
                if stream == "1":
                    # A part sent again may be shorter than before: it filled the room left in a packet, and the rest of
                    # it was acknowledged meanwhile.
                    pieces[int(offset)] = max(pieces.get(int(offset), b""), bytes.fromhex(payload), key=len)
        whole = b""
        for offset, piece in sorted(pieces.items()):
            self.assertLessEqual(offset, len(whole))
            whole += piece[len(whole) - offset:]
        self.assertEqual(plain_bytes(whole), data)
        self.assertIn(f"OPEN to {SERVER}:{port} for {CLIENT}:", records)
        self.assertIn("END, 0 bytes", records)
        self.assertEqual(sum(map(int, re.findall(r"DATA, (\d+) bytes", records))), len(data))
        answers = self.tshark(lab, file, "-Y", "longhaul.record contains ANSWER", "-T", "fields", "-e", "longhaul.record", keys=keys)
        self.assertIn("ANSWER connected", answers)
        self.assertNotIn("Lua Error", self.tshark(lab, file, "-V", keys=keys))

    def test_over_tcp_the_key_log_shows_the_very_bytes(self):
        lab = self.enterContext(Lab())
        file, keys, data, port = self.capture(lab, {"transport": "tcp"})
        self.check(lab, file, keys, data, port)
        self.assertEqual(self.tshark(lab, file, "-Y", "longhaul.frame").strip(), "")

    def test_over_udp_the_key_log_shows_the_very_bytes_and_no_key_shows_headers(self):
        lab = self.enterContext(Lab())
        file, keys, data, port = self.capture(lab, {"transport": "udp"})
        self.check(lab, file, keys, data, port)
        # Without keys: packets, and nothing in them.
        headers = self.tshark(lab, file, "-Y", "longhaul_udp", "-T", "fields", "-e", "longhaul_udp.connection",
                              "-e", "longhaul_udp.number", "-e", "longhaul.frame")
        self.assertEqual(len({line.split("\t")[0].split(",")[0] for line in headers.splitlines()}), 2)
        self.assertEqual({line.split("\t")[2] for line in headers.splitlines()}, {""})
        self.assertNotIn("Malformed", self.tshark(lab, file, "-V", keys=keys))

    def test_over_two_paths_the_records_of_a_stream_are_put_together(self):
        for _ in range(5):  # on a busy machine a path may fail for as long as the upload takes
            lab = self.enterContext(Lab("51.84mbit,40"))
            file, keys, data, port = self.capture(lab, {"transport": "udp"}, policy="sum", size=1_000_000)
            self.check(lab, file, keys, data, port)
            packets = [len(self.tshark(lab, file, "-Y", f"longhaul.stream == 1 && {ends}", "-T", "fields", "-e", "frame.number",
                                       keys=keys).splitlines())
                       for ends in (f"ip.src == {BRANCH_WAN}", f"ipv6.src == {BRANCH_WAN6}")]
            if min(packets) > 100:
                break
        self.assertGreater(min(packets), 100, packets)
        hellos = self.tshark(lab, file, "-Y", "longhaul.frame == 1", "-T", "fields", "-e", "longhaul.details", keys=keys)
        self.assertEqual(hellos.count("path four, path six"), 2)


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
class GoldenPackets(unittest.TestCase):
    """Both ciphers, both directions, a changed key, and several packets in one datagram."""

    def test_each_packet_is_decrypted(self):
        golden = dict(re.findall(r"^(\w+): (\w+)$", (REPOSITORY / "tests/proxy/link/golden/packets.txt").read_text(), re.M))
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, cipher in (("aes", "AES_128_GCM"), ("chacha", "CHACHA20_POLY1305")):
            packets = [bytes.fromhex(golden[f"{side}_{name}_packet_{i}"]) for side in ("dialler", "acceptor") for i in (0, 1)]
            with open(folder / "link.pcap", "wb") as file:
                file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))  # raw IP
                for datagram in (*packets, packets[0] + packets[1]):
                    udp = struct.pack("!HHHH", 7600, 7600, 8 + len(datagram), 0) + datagram
                    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 0x0a000001, 0x0a000002) + udp
                    file.write(struct.pack("<IIII", 0, 0, len(ip), len(ip)) + ip)
            keys = folder / "keys"
            keys.write_text("".join(f"LONGHAUL_UDP_SECRET {golden[side + '_id']} {cipher} {golden[side + '_secret']} {'0c' * 16} {side}\n"
                                    for side in ("dialler", "acceptor")))
            shown = subprocess.run(["tshark", "-n", "-X", f"lua_script:{SCRIPT}", "-r", folder / "link.pcap", "-o",
                                    f"longhaul.key_log:{keys}", "-T", "fields", "-e", "longhaul.frame", "-e", "longhaul.details"],
                                   capture_output=True, text=True, check=True, timeout=60).stdout
            self.assertEqual(shown.splitlines(), ["0x08\t1"] * 4 + ["0x08,0x08\t1,1"])


if __name__ == "__main__":
    unittest.main()
