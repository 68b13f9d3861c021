# SPDX-License-Identifier: Apache-2.0
"""fail = "closed": whatever happens to a daemon, nothing of its clients' connections is seen on the WAN. The attacker
here is an observer on the WAN, who holds no key and may cut the line, and a peer with a valid key."""

import ctypes
import os
import unittest

import socks
import tcp
from lab import BRANCH, BRANCH6, SERVER, SERVER6, Lab, until
from pair import Pair, link_cut_off
from wan_capture import CANARY, Knocking, WanCapture, attempt

CLOSED = {"intercept": {"fail": "closed"}}
REFUSED = {"refused", "reset"}


def flood(connection):
    """A server that sends canaries until the connection breaks."""
    try:
        while True:
            connection.send(CANARY * 1000)
    except OSError as error:
        return error


def hold_main_thread(pid):
    """Stops a process's main thread alone, so that its watchdog sees a loop that stands still. Waits for its end."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for request in (0x4206, 0x4207):  # PTRACE_SEIZE, PTRACE_INTERRUPT
        if libc.ptrace(request, pid, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(pid, 0x40000000)  # __WALL: it stands
    return os.waitpid(pid, 0x40000000)[1]


class Door(unittest.TestCase):
    both = CLOSED
    branch = datacenter = None

    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.there = self.enterContext(tcp.Server(self.lab, tcp.echo)).port
        self.here = self.enterContext(tcp.Server(self.lab, tcp.echo, "client")).port
        self.wan = self.enterContext(WanCapture(self.lab))
        self.pair = Pair(self.lab, self.both, self.branch, self.datacenter)

    def start(self):
        self.enterContext(self.pair)

    def knocking(self):
        return Knocking(self.lab, self.there, self.here)

    def assert_nothing_outside_the_link(self):
        self.assertEqual(self.wan.outside_the_link()[:5], [])

    def assert_nothing_leaves_the_branch(self):
        """Beside what a server repeats of a connection that began before: no daemon runs on its side."""
        lines = self.wan.outside_the_link()
        self.assertEqual([line for line in lines if not line.startswith(("10.10.2.", "fd10:2:"))][:5], [])

    def assert_seen_outside_the_link(self):
        """The capture sees what there is to be seen."""
        self.assertTrue(any("canary" in line for line in self.wan.outside_the_link()))


class Closed(Door):
    def test_without_a_peer_no_packet_leaves_from_the_start(self):
        site = self.pair.branch
        with Knocking(self.lab, self.there) as knocking:
            knocking.until("answered")  # there is a way without us
            self.assert_seen_outside_the_link()
            site.start()
            self.addCleanup(site.stop)
            self.wan.outside_the_link()
            self.assertLessEqual(knocking.more(), REFUSED)
        self.assert_nothing_leaves_the_branch()

    def test_a_connection_older_than_the_daemon_is_refused_and_never_unencrypted(self):
        connections = [tcp.connect(self.lab, address, self.there) for address in (SERVER, SERVER6)]
        for connection in connections:
            connection.send(CANARY)
            self.assertEqual(connection.receive(len(CANARY)), CANARY)
        self.start()
        self.wan.outside_the_link()
        for connection in connections:
            connection.send(CANARY)
            self.assertEqual(connection.receive_rest(), (b"", "reset"))
        self.assert_nothing_outside_the_link()

    def test_while_the_link_is_cut_stopped_or_set_up_again(self):
        self.start()
        with self.knocking() as knocking:
            knocking.until("answered")
            with link_cut_off(self.lab, "drop"):
                until(lambda: self.pair.branch.link()["state"] != "up", what="the link is lost")
                self.assertLessEqual(knocking.more(), REFUSED)
            self.pair.wait_link()
            knocking.until("answered")
        self.assert_nothing_outside_the_link()

    def test_a_destination_that_refused_is_asked_again_over_the_link(self):
        self.start()
        with tcp.Listener(self.lab) as unused:
            port = unused.port
        for _ in range(3):
            for address in (SERVER, SERVER6):
                self.assertIn(attempt(self.lab, "client", address, port), REFUSED)
                until(lambda: self.pair.branch.status()["flows"]["live"] == 0, what="the refusal is known")
        self.assert_nothing_outside_the_link()
        with tcp.Server(self.lab, tcp.echo, port=port):
            for address in (SERVER, SERVER6):
                self.assertEqual(attempt(self.lab, "client", address, port), "answered")
        self.assert_nothing_outside_the_link()

    def test_a_destination_that_the_peer_may_not_dial(self):
        self.pair.datacenter.settings["link"]["allow"] = []
        self.start()
        with Knocking(self.lab, self.there) as knocking:
            self.assertLessEqual(knocking.more(), REFUSED)
        self.assertIn("peer_refused", self.pair.branch.reasons())
        self.assert_nothing_outside_the_link()

    def test_transport_off_at_the_other_site_or_at_this_one(self):
        self.start()
        with self.knocking() as knocking:
            for site in (self.pair.datacenter, self.pair.branch):
                knocking.until("answered")
                site.set(transport="off")
                knocking.until("reset")
                self.assertLessEqual(knocking.more(), REFUSED)
                site.set(transport="auto")
        self.assertIn("transport_off", self.pair.branch.reasons())
        self.assert_nothing_outside_the_link()

    def test_a_full_flow_table(self):
        self.pair.branch.settings["limits"] = {"flows": 1}
        self.start()
        held, other_end = tcp.pair(self.lab)
        held.send(CANARY)
        self.assertEqual(other_end.receive(len(CANARY)), CANARY)
        with Knocking(self.lab, self.there) as knocking:
            self.assertLessEqual(knocking.more(), REFUSED)
        self.assertGreater(self.pair.branch.status()["intercept"]["bypassed"]["flow_limit"], 0)
        self.assert_nothing_outside_the_link()

    def test_intercept_down(self):
        self.start()
        with self.knocking() as knocking:
            knocking.until("answered")
            for site in self.pair.sites:
                site.longhaul("intercept", "down")
            knocking.until("refused")
            self.assertEqual(knocking.more(), {"refused"})
            for site in self.pair.sites:
                site.longhaul("intercept", "up")
            knocking.until("answered")
        self.assert_nothing_outside_the_link()

    def ends(self, end, site):
        """Ends one daemon in the middle of connections in every direction, and starts it again."""
        self.start()
        with self.knocking() as knocking:
            knocking.until("answered")
            end(site)
            self.assertLessEqual(knocking.more(), REFUSED)
            site.start()
            self.pair.wait_link()
            knocking.until("answered", 60)
        self.assert_nothing_outside_the_link()

    def test_kill_9_of_this_side(self):
        self.ends(lambda site: site.kill(), self.pair.branch)

    def test_kill_9_of_the_other_side(self):
        self.ends(lambda site: site.kill(), self.pair.datacenter)

    def test_sigterm_and_restart_of_this_side(self):
        self.ends(lambda site: site.stop(), self.pair.branch)

    def test_sigterm_and_restart_of_the_other_side(self):
        self.ends(lambda site: site.stop(), self.pair.datacenter)

    def test_the_watchdogs_end(self):
        def stand_still(site):
            status = hold_main_thread(site.process.pid)
            site.process.clean_end = False
            site.process.popen.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(site.process.popen.returncode, 70)

        self.ends(stand_still, self.pair.branch)

    def test_both_sides_restart_again_and_again(self):
        self.start()
        with self.knocking() as knocking:
            for _ in range(3):
                for site in self.pair.sites:
                    knocking.until("answered", 60)
                    site.stop()
                    site.start()
        self.assert_nothing_outside_the_link()

    def test_data_of_a_server_does_not_leave_when_the_proxies_die(self):
        self.start()
        with tcp.Server(self.lab, flood) as server:
            connections = [tcp.connect(self.lab, address, server.port) for address in (SERVER, SERVER6)]
            for connection in connections:
                connection.receive(1 << 20)  # and then it reads no more
            for site in self.pair.sites:
                site.kill()
            for _ in connections:
                self.assertIsInstance(server.results.get(timeout=60), OSError)
        self.assert_nothing_outside_the_link()

    def test_a_client_that_sends_after_its_flow_was_reset(self):
        def reset_once_it_sends(connection):
            connection.receive(1)
            connection.reset()

        self.start()
        with tcp.Server(self.lab, reset_once_it_sends) as server:
            for address in (SERVER, SERVER6):
                connection = tcp.connect(self.lab, address, server.port)
                with self.assertRaises(OSError):
                    while True:
                        connection.send(CANARY)
        self.assert_nothing_outside_the_link()

    def test_fast_connect_off(self):
        """Elsewhere a server's first connection then goes out in the clear, to see whether the server answers."""
        self.pair.branch.settings["features"] = {"fast_connect": False}
        self.start()
        with self.knocking() as knocking:
            knocking.until("answered")
        self.assert_nothing_outside_the_link()

    def test_another_program_that_flushes_all_rules(self):
        self.start()
        site = self.pair.branch
        self.lab.run("branch", "nft", "flush", "ruleset")  # all but those with an owner, as a firewall's reload does
        until(lambda: "longhaul_closed_7650" in site.rules(), what="the table is put in again")
        until(lambda: "fail_closed_restored" in site.process.log(), what="it is logged")
        site.kill()
        with Knocking(self.lab, self.there) as knocking:
            self.assertEqual(knocking.more(), {"refused"})
        self.assert_nothing_outside_the_link()

    def test_a_daemon_that_cannot_start(self):
        site = self.pair.branch
        (site.folder / "branch.key").write_text("no key\n")
        site.write()
        self.assertEqual(site.longhaul("run", site.file, check=False).returncode, 1)
        with Knocking(self.lab, self.there) as knocking:
            self.assertEqual(knocking.more(), {"refused"})
        self.assert_nothing_outside_the_link()


class Command(Door):
    """What lifts the closing: the command for it, or a configuration without fail = closed."""

    def test_the_command_opens_it_while_the_daemon_is_dead_and_the_next_start_closes_it(self):
        self.start()
        site = self.pair.branch
        self.assertIn("longhaul fail-closed remove", self.lab.run("branch", "nft", "list", "ruleset"))
        site.stop()
        self.pair.datacenter.stop()
        self.assertIn("counter packets", site.longhaul("fail-closed", "print", site.file))
        with Knocking(self.lab, self.there) as knocking:
            self.assertEqual(knocking.more(), {"refused"})
            self.assert_nothing_outside_the_link()
            self.assertIn("unencrypted", site.longhaul("fail-closed", "remove", site.file))
            self.assertEqual(site.rules(), "")
            self.assertIn("not installed", site.longhaul("fail-closed", "remove", site.file))
            self.pair.datacenter.longhaul("fail-closed", "remove", self.pair.datacenter.file)
            knocking.until("answered")
            self.assert_seen_outside_the_link()
            self.assertIn("is installed", site.longhaul("fail-closed", "install", site.file))
            knocking.until("refused")
            self.wan.outside_the_link()
            site.longhaul("fail-closed", "remove", site.file)
            knocking.until("answered")
            site.start()
            # The other site is open still, and its server would go on repeating what was not acknowledged.
            self.pair.datacenter.longhaul("fail-closed", "install", self.pair.datacenter.file)
            self.wan.outside_the_link()
            self.assertLessEqual(knocking.more(), REFUSED)
        self.assert_nothing_outside_the_link()

    def test_the_command_opens_it_while_the_daemon_runs_and_closes_it_again(self):
        site = self.pair.branch
        site.start()
        self.addCleanup(site.stop)
        self.assertEqual(site.status()["fail_closed"]["state"], "enforced")
        with Knocking(self.lab, self.there) as knocking:
            self.assertLessEqual(knocking.more(), REFUSED)
            site.longhaul("fail-closed", "remove", site.file)
            knocking.until("answered")
            self.assertIn("lifted by command", site.longhaul("status"))
            held = tcp.connect(self.lab, SERVER, self.there)  # past the link, by the daemon
            held.send(CANARY)
            self.assertEqual(held.receive(len(CANARY)), CANARY)
            site.longhaul("fail-closed", "install", site.file)
            self.assertEqual(held.receive_rest(), (b"", "reset"))
            until(lambda: site.status()["flows"]["live"] == 0, what="flows past the link are cut")
            knocking.until("reset")
            self.wan.outside_the_link()
            self.assertLessEqual(knocking.more(), REFUSED)
        self.assert_nothing_outside_the_link()

    def test_a_configuration_that_closes_nothing_opens_it_at_the_next_start_or_reload(self):
        for reloads in (False, True):
            with self.subTest(reloads=reloads):
                site = self.pair.branch
                site.settings["intercept"]["fail"] = "closed"
                site.start()
                self.assertIn("longhaul_closed_7650", site.rules())
                site.settings["intercept"]["fail"] = "open"
                if reloads:
                    site.write()
                    site.longhaul("reload")
                else:
                    site.kill()
                    site.start()
                until(lambda: "fail_closed_removed" in site.process.log(), what="it is logged")
                self.assertNotIn("longhaul_closed_7650", site.rules())
                self.assertEqual(attempt(self.lab, "client", SERVER, self.there), "answered")
                site.stop()

    def test_reload_closes_it(self):
        site = self.pair.branch
        site.settings["intercept"]["fail"] = "open"
        site.start()
        self.addCleanup(site.stop)
        held = tcp.connect(self.lab, SERVER, self.there)
        held.send(CANARY)
        self.assertEqual(held.receive(len(CANARY)), CANARY)
        site.settings["intercept"]["fail"] = "closed"
        site.write()
        site.longhaul("reload")
        self.assertEqual(held.receive_rest(), (b"", "reset"))
        until(lambda: not any(map(self.connections, ("branch", "server"))), what="its connection with the server has ended, too")
        self.wan.outside_the_link()
        with Knocking(self.lab, self.there) as knocking:
            self.assertLessEqual(knocking.more(), REFUSED)
        self.assert_nothing_outside_the_link()

    def connections(self, node):
        """Those with the server that still have something to say: in TIME_WAIT they have not."""
        lines = self.lab.run(node, "ss", "-Htan", f"( sport = :{self.there} or dport = :{self.there} )").splitlines()
        return [line for line in lines if line.split()[0] not in ("LISTEN", "TIME-WAIT")]

    def test_rules_of_a_killed_daemon_are_removed_at_a_start_on_another_port(self):
        site = self.pair.branch
        site.start()
        site.kill()
        self.assertIn("0x4c481de2", self.lab.run("branch", "ip", "rule"))
        site.settings["intercept"]["port"] = 7651
        site.start()
        self.addCleanup(site.stop)
        for family in ("-4", "-6"):
            rules = self.lab.run("branch", "ip", family, "rule")
            self.assertNotIn("0x4c481de2", rules)  # port 7650
            self.assertIn("0x4c481de3", rules)
        self.assertNotIn("longhaul_closed_7650", site.rules())
        self.assertIn("longhaul_closed_7651", site.rules())


class Parts(Door):
    """A rule closes some flows and leaves the others open; names and explicit listeners are no way around it."""

    both = None

    def setUp(self):
        super().setUp()
        self.other = self.enterContext(tcp.Server(self.lab, tcp.echo)).port
        for site in self.pair.sites:
            site.settings["rule"] = [{"to_ports": [self.there], "fail": "closed"}]

    def test_a_rule_closes_a_port_and_nothing_else(self):
        self.start()
        for site in self.pair.sites:
            site.kill()
        # First what must not be seen: the end of an open flow may come late.
        for address in (SERVER, SERVER6):
            self.assertEqual(attempt(self.lab, "client", address, self.there), "refused")
            self.assert_nothing_outside_the_link()
        for address in (SERVER, SERVER6):
            self.assertEqual(attempt(self.lab, "client", address, self.other), "answered")
            self.assert_seen_outside_the_link()

    def test_a_rule_opens_a_port_where_all_else_is_closed(self):
        for site in self.pair.sites:
            site.settings["intercept"]["fail"] = "closed"
            site.settings["rule"] = [{"to_ports": [self.other], "fail": "open"}]
        self.start()
        for site in self.pair.sites:
            site.kill()
        # First what must not be seen: the end of an open flow may come late.
        for address in (SERVER, SERVER6):
            self.assertEqual(attempt(self.lab, "client", address, self.there), "refused")
            self.assert_nothing_outside_the_link()
        for address in (SERVER, SERVER6):
            self.assertEqual(attempt(self.lab, "client", address, self.other), "answered")
            self.assert_seen_outside_the_link()

    def test_explicit_listeners_refuse(self):
        site = self.pair.branch
        site.hosts = {"files.corp": SERVER}
        site.settings["rule"] = [{"to_networks": ["10.10.2.0/24", "fd10:2::/64"], "fail": "closed"}]
        site.settings["socks"] = {"listen": f"{BRANCH}:1080"}
        site.settings["forward"] = [{"listen": f"{BRANCH}:9000", "to": f"{SERVER}:{self.there}"},
                                    {"listen": f"[{BRANCH6}]:9000", "to": f"[{SERVER6}]:{self.there}"},
                                    {"listen": f"{BRANCH}:9001", "to": f"files.corp:{self.there}"}]
        site.start()
        self.addCleanup(site.stop)
        for address, port in ((BRANCH, 9000), (BRANCH6, 9000), (BRANCH, 9001)):
            self.assertEqual(attempt(self.lab, "client", address, port), "reset")
        for host in (SERVER, SERVER6, "files.corp"):
            connection, answer = socks.connect(self.lab, (BRANCH, 1080), (host, self.there))
            connection.close()
            self.assertEqual(answer, "not allowed")
        self.assert_nothing_outside_the_link()


if __name__ == "__main__":
    unittest.main()
