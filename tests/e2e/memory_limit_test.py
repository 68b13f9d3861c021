# SPDX-License-Identifier: Apache-2.0
"""The path of flows while the memory cap leaves no room, and afterwards."""

import unittest

import smb
import smb_client
import smb_work
import tcp
import web
from lab import CLIENT, SERVER, Lab, until
from pair import Pair

MIB = 1 << 20
UNREAD = 2_000_000  # more than the cap's share and the buffers of two systems hold of one reader


class MemoryLimit(unittest.TestCase):
    def setUp(self):
        # Small buffers of sockets, so that what a reader does not take is the proxy's to hold.
        self.lab = self.enterContext(Lab(options=["--buffers", "256k"]))
        self.smbd = smb.Smbd(self.lab)
        self.pair = self.enterContext(Pair(self.lab, branch={"limits": {"memory": "16MiB"}}))
        self.branch = self.pair.branch

    def memory(self):
        memory = self.branch.status()["memory"]
        self.assertEqual(memory["limit_bytes"], 16 * MIB)
        self.assertLessEqual(memory["bytes"], 16 * MIB)
        self.assertLessEqual(memory["ahead_bytes"], 8 * MIB)
        return memory

    def test_new_flows_bypass_the_link_while_stalled_readers_hold_the_memory(self):
        nginx = web.Nginx(self.lab)
        page, document = nginx.put("page", 3_000_000), self.smbd.make("document", 6_000_000, seed=3)
        client = self.enterContext(smb_client.connect(self.lab, self.smbd, "3.1.1"))
        file = self.enterContext(client.open("document"))
        content = [file.read(at, 60_000) for at in range(0, 1_200_000, 60_000)]
        server = self.enterContext(tcp.Server(self.lab, tcp.sender(UNREAD, 4)))
        stalled = []

        def unread_bytes_hold_it():
            # Not only while the buffers of sockets are being filled.
            self.looks = self.looks + 1 if self.memory()["is_short"] else 0
            if self.looks == 0:
                stalled.append(tcp.connect(self.lab, SERVER, server.port))
            return self.looks >= 50

        # New ones, HTTP and SMB: the bare line, and why. Buffers of sockets may grow after a while, so there is room for a
        # moment.
        for _ in range(5):
            self.looks = 0
            until(unread_bytes_hold_it, what="unread bytes hold the memory")
            before = self.branch.reasons()
            self.assertEqual(web.fetch(self.lab, "page").sha256, page)
            self.assertEqual(self.smbd.get("document", "-m", "SMB3_11"), document)
            self.assertEqual(self.smbd.get("document", "-m", "NT1"), document)
            now = self.branch.reasons()
            new = {code: now[code] - before.get(code, 0) for code in now if now[code] != before.get(code, 0)}
            if set(new) == {"memory_limit"}:
                break
        self.assertEqual(set(new), {"memory_limit"})
        self.assertGreaterEqual(new["memory_limit"], 3)
        why = self.branch.longhaul("why", f"{CLIENT}-{SERVER}:80")
        self.assertIn("The memory limit is reached", why)
        self.assertIn("raise [limits] memory", why)
        # One that was there goes on over the link.
        content += [file.read(at, 60_000) for at in range(1_200_000, 6_000_000, 60_000)]
        self.assertEqual(smb_work.sha256(b"".join(content)), document)
        self.memory()

        # They read on: nothing is lost, and there is room again.
        expected = tcp.digest(UNREAD, 4)
        for connection in stalled:
            self.assertEqual(connection.digest_rest(), expected)
            connection.close()
        until(lambda: not self.memory()["is_short"], what="there is room again")
        before = self.branch.reasons()
        self.assertEqual(web.fetch(self.lab, "page").sha256, page)
        self.assertEqual(self.smbd.get("document", "-m", "SMB3_11"), document)
        now = self.branch.reasons()
        self.assertEqual({code for code in now if now[code] != before.get(code, 0)}, {"optimised"})


if __name__ == "__main__":
    unittest.main()
