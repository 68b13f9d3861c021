# SPDX-License-Identifier: Apache-2.0
"""A configuration that changes while the daemon runs, by `longhaul reload` and by SIGHUP."""

import hashlib
import signal
import sys
import threading
import unittest

import tcp
from lab import PATIENCE, SERVER, Lab, until
from pair import Pair


class Transfer:
    """An upload that runs in the block until `end()`, which gives what was sent and what the server says has come."""

    def __init__(self, lab, server):
        self.over = threading.Event()
        self.result = None
        self.thread = threading.Thread(target=self._run, args=(lab, server.port), daemon=True)

    def _run(self, lab, port):
        connection, sent, size = tcp.connect(lab, SERVER, port), hashlib.sha256(), 0
        for piece in tcp.pieces(sys.maxsize, 1):
            if self.over.is_set():
                break
            connection.send(piece)
            sent.update(piece)
            size += len(piece)
        connection.end()
        self.result = f"{size} {sent.hexdigest()}\n".encode(), connection.receive_rest()
        connection.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.over.set()
        self.thread.join(2 * PATIENCE)
        return self.result


class Reload(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab("51.84mbit,40"))

    def start(self, **changes):
        self.pair = self.enterContext(Pair(self.lab, **changes))
        self.branch, self.datacenter = self.pair.sites

    def reload(self, site, check=True):
        site.write()
        return site.longhaul("reload", check=check)

    def peer(self, site):
        return site.settings["peer"][0]

    def change_key(self, site, other):
        """The whole procedure, as the README has it. Returns when the old key is accepted nowhere."""
        old, new = self.peer(other)["fingerprint"], site.keygen("new")
        self.peer(other)["fingerprint"] = [old, new]
        self.assertIn(f"[[peer]] {site.name}: fingerprint", self.reload(other))
        attached = other.link()["carriers_attached"]
        site.settings["identity"] = {"certificate": "new.crt", "private_key": "new.key"}
        self.assertIn(new, self.reload(site))
        until(lambda: other.link()["carriers_attached"] > attached, what="a connection with the new key")
        self.pair.wait_link()
        self.peer(other)["fingerprint"] = new
        self.assertIn(f"[[peer]] {site.name}: fingerprint", self.reload(other))

    def test_both_keys_are_changed_under_a_running_transfer(self):
        for transport in ("auto", "tcp"):
            with self.subTest(transport=transport):
                lab = self.lab if transport == "auto" else self.enterContext(Lab("51.84mbit,40"))
                self.lab = lab
                self.start(both={"features": {"transport": transport}})
                with tcp.Server(lab, tcp.report_digest) as server, Transfer(lab, server) as transfer:
                    until(lambda: self.branch.link()["bytes_sent"] > 1_000_000, what="the transfer runs")
                    self.change_key(self.branch, self.datacenter)
                    self.change_key(self.datacenter, self.branch)
                    sent, came = transfer.end()
                    self.assertEqual(came, (sent, "end"))
                for site in self.pair.sites:
                    self.assertEqual(site.status()["flows"]["reset"], 0)
                    self.assertEqual(site.reasons(), {"optimised": 1})
                self.pair.stop()

    def test_a_mistake_in_the_file_changes_nothing_and_is_reported(self):
        self.start()
        self.branch.settings["peer"][0]["rate"] = "1parsec"
        said = self.reload(self.branch, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("rate cannot be \"1parsec\"", said.stderr)
        self.branch.settings["peer"][0]["rate"] = None
        self.branch.settings["identity"]["private_key"] = "nowhere.key"
        self.assertIn("nowhere.key", self.reload(self.branch, check=False).stderr)
        self.branch.settings["identity"]["private_key"] = "branch.key"
        self.branch.settings["dictionary"] = {"memory": 0}
        self.branch.settings["peer"][0]["networks"] = ["10.77.0.0/16"]
        said = self.reload(self.branch, check=False)
        self.assertIn("[dictionary] cannot be changed while the daemon runs", said.stderr)
        self.assert_carried()
        self.branch.process.lines_with("reload_refused")
        self.assertEqual(self.branch.link()["carriers_attached"], 1)

    def assert_carried(self, reason="optimised"):
        before = self.branch.reasons().get(reason, 0)
        with tcp.Server(self.lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 100_000, 3), tcp.digest(100_000, 3))
        self.assertEqual(self.branch.reasons()[reason], before + 1)

    def test_rules_networks_and_limits_change_for_new_flows(self):
        self.start()
        here, there = tcp.pair(self.lab)
        here.send(b"before")
        self.assertEqual(there.receive(6), b"before")
        networks = self.peer(self.branch)["networks"]
        self.peer(self.branch)["networks"] = ["10.77.0.0/16"]
        self.assertEqual(self.reload(self.branch), "changed [[peer]] datacenter: networks\n")
        self.assert_carried("no_peer_for_network")
        self.peer(self.branch)["networks"] = networks
        self.branch.settings["rule"] = [{"features": {"transport": "off"}}]
        self.reload(self.branch)
        self.assert_carried("transport_off")
        self.branch.settings["rule"] = None
        self.branch.settings["limits"] = {"flows": 1}
        self.reload(self.branch)
        optimised = self.branch.reasons()["optimised"]
        with tcp.Server(self.lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 100_000, 3), tcp.digest(100_000, 3))
        # The rules let it bypass the daemon, unless it was under way before they knew.
        bypassed = self.branch.status()["intercept"]["bypassed"]["flow_limit"]
        self.assertEqual(bypassed + self.branch.reasons().get("flow_limit", 0), 1)
        self.assertEqual(self.branch.reasons()["optimised"], optimised)
        there.send(b"after")
        self.assertEqual(here.receive(5), b"after")
        self.assertEqual(self.branch.link()["carriers_attached"], 1)
        here.close()
        there.close()

    def test_a_peer_is_removed_and_added_by_a_signal(self):
        self.start()
        here, there = tcp.pair(self.lab)
        here.send(b"x")
        self.assertEqual(there.receive(1), b"x")
        peers, self.datacenter.settings["peer"] = self.datacenter.settings["peer"], []
        self.datacenter.write()
        self.datacenter.process.signal(signal.SIGHUP)
        until(lambda: not self.datacenter.status()["links"], what="the peer is removed")
        self.assertEqual(here.receive_rest()[1], "reset")
        self.branch.wait_link("down")
        until(lambda: "rejected the key" in (self.branch.link()["last_error"] or ""), what="the reason")
        self.datacenter.settings["peer"] = peers
        self.datacenter.write()
        self.datacenter.process.signal(signal.SIGHUP)
        until(lambda: self.datacenter.status()["links"], what="the peer is added")
        self.pair.wait_link()
        self.assert_carried()
        there.close()

    def test_a_key_that_is_withdrawn_ends_the_link_at_once(self):
        self.start()
        self.peer(self.datacenter)["fingerprint"] = self.datacenter.keygen("another")
        self.reload(self.datacenter)
        self.branch.wait_link("down")
        self.assertNotEqual(self.datacenter.link()["state"], "up")
        self.peer(self.datacenter)["fingerprint"] = self.branch.fingerprint
        self.reload(self.datacenter)
        self.pair.wait_link()

    def test_a_reload_needs_the_token(self):
        self.start()
        (self.branch.folder / "state" / "control.token").rename(self.branch.folder / "hidden")
        self.assertEqual(self.branch.ask("POST", "/v1/reload")[0], 401)
