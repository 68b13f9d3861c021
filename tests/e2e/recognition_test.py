# SPDX-License-Identifier: Apache-2.0
"""Which flows an application module is offered: by the ports of the configuration, and by the first bytes of a client."""

import unittest

import smb
import tcp
from lab import SERVER, Lab
from pair import Pair

PORT = 1445


class Recognition(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.smbd = smb.Smbd(self.lab, {"smb ports": f"445 {PORT}"})
        self.document = self.smbd.make("document", 3_000_000, seed=7)

    def flows_of_module(self, site):
        return sum(each["flows"] for each in site.status()["modules"] if each["module"] == "smb")

    def get(self, pair):
        """Whether the module had the flow; the bytes are compared in any case."""
        before = self.flows_of_module(pair.branch)
        self.assertEqual(self.smbd.get("document", "-p", PORT, "-m", "SMB3_11"), self.document)
        return self.flows_of_module(pair.branch) > before

    def test_a_server_at_another_port_is_found_by_its_port_or_by_its_clients_first_bytes(self):
        with Pair(self.lab) as pair:
            self.assertFalse(self.get(pair))
            pair.branch.settings["smb"] = {"ports": [445, PORT]}
            pair.branch.write()
            self.assertIn("[smb]", pair.branch.longhaul("reload"))
            self.assertTrue(self.get(pair))
            pair.branch.settings["smb"] = {"ports": [], "any_port": True}
            pair.branch.write()
            pair.branch.longhaul("reload")
            self.assertTrue(self.get(pair))
            # A server that speaks first, and a client of another protocol.
            with tcp.Server(self.lab, lambda connection: connection.send(b"220 ready\r\n")) as server:
                client = tcp.connect(self.lab, SERVER, server.port)
                self.assertEqual(client.receive(11), b"220 ready\r\n")
                client.close()
            with tcp.Server(self.lab, tcp.report_digest) as server:
                self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 500_000, 1), tcp.digest(500_000, 1))
            self.assertEqual(self.flows_of_module(pair.datacenter), 2)
            self.assertIn("smb: flows to port none, and to others", pair.branch.longhaul("check", pair.branch.file.name))


if __name__ == "__main__":
    unittest.main()
