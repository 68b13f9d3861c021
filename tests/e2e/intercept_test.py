# SPDX-License-Identifier: Apache-2.0
"""Transparent mode without a link: one proxy in the path that takes flows, dials their servers and relays. What
the pair does with taken flows is tested elsewhere."""

import errno
import signal
import socket
import time
import unittest

import tcp
from lab import (BRANCH, BRANCH6, BRANCH_WAN, BUILD, CLIENT, CLIENT6, DATACENTER_WAN, SERVER, SERVER6, Lab, until)

INTERCEPTOR = BUILD / "tests" / "interceptor" / "interceptor"


def lan_of(lab, node, address):
    """The interface of a node that holds an address."""
    return lab.run(node, "ip", "-o", "addr", "show", "to", address).split()[1]


class Proxy:
    """The interceptor in a node, up when this returns."""

    def __init__(self, lab, *words, node="branch", interface=None, ready="up"):
        self.lab, self.node = lab, node
        interface = interface or lan_of(lab, node, BRANCH)
        self.process = lab.start(node, INTERCEPTOR, "--interface", interface, *words)
        self.wait_for(ready)

    def lines(self):
        return self.process.log().splitlines()

    def wait_for(self, start, count=1):
        until(lambda: len(self.said(start)) >= count or not self.process.is_running(), what=f"'{start}'")
        if len(self.said(start)) < count:
            raise AssertionError(f"ended without '{start}':\n{self.process.log()}")
        return self.said(start)[-1]

    def said(self, start):
        return [line for line in self.lines() if line.startswith(start)]

    def rules(self):
        return self.lab.run(self.node, "nft", "list", "ruleset")


def is_refused(lab, address, port):
    try:
        tcp.connect(lab, address, port).close()
    except OSError as error:
        return error.errno in (errno.ECONNREFUSED, errno.ECONNRESET)
    return False


class Intercept(unittest.TestCase):
    def test_the_server_sees_the_clients_address_and_port_over_both_families(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab, "--source", "client")
        for client, server in (CLIENT, SERVER), (CLIENT6, SERVER6):
            here, there = tcp.pair(lab, server)
            self.assertEqual(here.local[0], client)
            self.assertEqual(there.remote, here.local)
            self.assertEqual(here.remote[0], server)
            here.send(b"question")
            here.end()
            self.assertEqual(there.receive_rest(), (b"question", "end"))
            there.send(b"answer")
            there.end()
            self.assertEqual(here.receive_rest(), (b"answer", "end"))
        self.assertEqual(len(proxy.said("carried ")), 2)

    def test_megabytes_cross_the_relay_unchanged(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        with tcp.Server(lab, tcp.report_digest) as server:
            for address in SERVER, SERVER6:
                self.assertEqual(tcp.upload(lab, address, server.port, 30_000_000, 7), tcp.digest(30_000_000, 7))
        self.assertEqual(len(proxy.said("carried ")), 2)

    def test_a_reset_crosses_as_a_reset_both_ways(self):
        lab = self.enterContext(Lab())
        Proxy(lab)
        here, there = tcp.pair(lab)
        here.send(b"x")
        there.receive(1)
        here.reset()
        self.assertEqual(there.receive_rest()[1], "reset")
        here, there = tcp.pair(lab)
        here.send(b"x")
        there.receive(1)
        there.reset()
        self.assertEqual(here.receive_rest()[1], "reset")

    def test_after_kill_9_no_rule_is_left_and_a_new_flow_reaches_the_server(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        self.assertIn("tproxy", proxy.rules())
        with tcp.Server(lab, tcp.echo) as server:
            for address in SERVER, SERVER6:
                tcp.connect(lab, address, server.port).close()
            proxy.wait_for("carried ", 2)
            proxy.process.kill()
            for address in SERVER, SERVER6:
                connection = tcp.connect(lab, address, server.port)
                connection.send(b"x")
                self.assertEqual(connection.receive(1), b"x")
                connection.close()
            self.assertNotIn("longhaul", proxy.rules())
            # What is left of the routing is taken over by the next daemon, and taken out when that one ends.
            again = Proxy(lab)
            tcp.connect(lab, SERVER, server.port).close()
            again.wait_for("carried ")
            again.process.stop()
        self.assertEqual(again.rules(), "")
        self.assertNotIn("fwmark", lab.run("branch", "ip", "rule"))
        self.assertNotIn("fwmark", lab.run("branch", "ip", "-6", "rule"))

    def test_a_blocked_loop_ends_the_process_and_new_flows_reach_the_server(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        with tcp.Server(lab, tcp.echo) as server:
            proxy.process.signal(signal.SIGUSR2)
            self.assertEqual(proxy.process.wait(), 70)
            self.assertIn("was blocked", proxy.process.log())
            tcp.connect(lab, SERVER, server.port).close()
        self.assertNotIn("longhaul", proxy.rules())

    def test_a_process_that_was_stopped_and_continued_is_not_ended(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        proxy.process.signal(signal.SIGSTOP)
        time.sleep(1.5)  # the event is that nothing happens
        proxy.process.signal(signal.SIGCONT)
        tcp.pair(lab)
        proxy.wait_for("carried ")

    def test_flows_that_began_before_stay_plain_and_live(self):
        lab = self.enterContext(Lab())
        here, there = tcp.pair(lab)
        proxy = Proxy(lab)
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        there.send(b"answer")
        self.assertEqual(here.receive(6), b"answer")
        self.assertEqual(proxy.said("carried "), [])

    def test_down_lets_new_flows_bypass_and_keeps_existing_ones(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        here, there = tcp.pair(lab)
        proxy.wait_for("carried ")
        proxy.process.signal(signal.SIGUSR1)
        proxy.wait_for("diverting")
        plain, plain_there = tcp.pair(lab)
        for one, other in (here, there), (plain, plain_there):
            one.send(b"x")
            self.assertEqual(other.receive(1), b"x")
            other.send(b"y")
            self.assertEqual(one.receive(1), b"y")
        self.assertEqual(len(proxy.said("carried ")), 1)
        proxy.process.signal(signal.SIGUSR1)
        proxy.wait_for("up", 2)
        tcp.pair(lab)
        proxy.wait_for("carried ", 2)

    def test_a_server_that_refuses_causes_one_reset_and_then_answers_itself(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        with tcp.Listener(lab) as listener:
            port = listener.port
        for address in SERVER, SERVER6:
            self.assertTrue(tcp.is_reset(lab, address, port))  # taken: connects, then learns
        proxy.wait_for("failed ", 2)
        for address, name in (SERVER, "refused4"), (SERVER6, "refused6"):
            until(lambda: f"{address} . {port}" in lab.run("branch", "nft", "list", "set", "inet", "longhaul_7650",
                                                           name), what="the refused server in the set")
            self.assertTrue(is_refused(lab, address, port))
        self.assertEqual(len(proxy.said("failed ")), 2)

    def test_a_refused_client_gets_the_servers_own_answer_from_the_same_port(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        with tcp.Listener(lab) as listener:
            port = listener.port

        def call(seconds=20):
            with lab.inside("client"):
                sock = socket.socket()
            sock.settimeout(seconds)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((CLIENT, 40126))
            sock.connect((SERVER, port))
            return tcp.Connection(sock)

        try:
            connection = call()
            self.assertEqual(connection.receive_rest(), (b"", "reset"))
            connection.close()
        except ConnectionResetError:
            pass  # on a busy machine the reset can come before connect() has returned
        until(lambda: f"{SERVER} . {port}" in lab.run("branch", "nft", "list", "set", "inet", "longhaul_7650", "refused4"),
              what="the refused server in the set")
        with tcp.Server(lab, tcp.echo, port=port):  # which listens now
            connection = call()
            connection.send(b"past the proxy")
            self.assertEqual(connection.receive(14), b"past the proxy")
            connection.close()
        self.assertEqual(proxy.said("carried "), [])

    def test_without_fast_connect_only_servers_that_answered_are_intercepted(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab, "--slow-connect")
        with tcp.Listener(lab) as unused:
            closed = unused.port
        with tcp.Server(lab, tcp.echo) as server:
            for address in SERVER, SERVER6:
                self.assertTrue(is_refused(lab, address, closed))
                self.assertTrue(is_refused(lab, address, closed))
                first = tcp.connect(lab, address, server.port)
                self.assertEqual(len(proxy.said("carried ")), int(address == SERVER6))
                first.close()
                tcp.connect(lab, address, server.port).close()
                proxy.wait_for("carried ", 1 + int(address == SERVER6))
        self.assertEqual(proxy.said("failed "), [])

    def test_the_proxys_own_addresses_and_other_interfaces_are_never_intercepted(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        for address in BRANCH, BRANCH6, BRANCH_WAN:
            tcp.pair(lab, address, to="branch")
        tcp.pair(lab, CLIENT, node="server", to="client")  # comes in from the WAN
        self.assertTrue(is_refused(lab, BRANCH, 7650))  # listens on loopback only
        self.assertEqual(proxy.said("carried "), [])

    def test_a_client_port_that_is_reused_at_once_is_intercepted_again(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        # The server ends first: the proxy's socket towards the client is the one that stays in TIME_WAIT, and only
        # the tproxy rule can let a new connection through it.
        with tcp.Server(lab, lambda connection: connection.send(b"x")) as server:
            for turn in range(3):
                with lab.inside("client"):
                    sock = socket.socket()
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    sock.bind((CLIENT, 40123))
                    sock.connect((SERVER, server.port))
                connection = tcp.Connection(sock)
                self.assertEqual(connection.receive_rest(), (b"x", "end"))
                connection.close()
                proxy.wait_for("ended ", turn + 1)
                self.assertIn("40123", lab.run("branch", "ss", "-Htan", "state", "time-wait"))
        self.assertEqual(len(proxy.said("carried ")), 3)

    def test_two_servers_see_the_same_client_port_at_the_same_time(self):
        lab = self.enterContext(Lab())
        Proxy(lab, "--source", "client")
        with tcp.Listener(lab) as one, tcp.Listener(lab) as two:
            for listener in one, two:
                with lab.inside("client"):
                    sock = socket.socket()
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    sock.bind((CLIENT, 40124))
                    sock.connect((SERVER, listener.port))
                self.addCleanup(sock.close)
                self.assertEqual(listener.accept().remote, (CLIENT, 40124))

    def test_auto_uses_the_proxys_address_if_answers_to_the_client_do_not_return(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab, "--source", "auto")
        # The server's answers to the client's network go nowhere; those to the proxy come back.
        lab.run("server", "ip", "route", "replace", "blackhole", "10.10.1.0/24")
        with tcp.Listener(lab) as listener:

            def seconds():
                began = time.monotonic()
                tcp.connect(lab, SERVER, listener.port)
                self.assertEqual(listener.accept().remote[0], BRANCH_WAN)
                return time.monotonic() - began

            patient = seconds()
            self.assertIn("fallback", proxy.wait_for("carried "))
            # What was learned is used: no other waits so long, but for what a busy machine delays.
            self.assertTrue(any(seconds() < patient / 2 for _ in range(8)))

    def test_the_far_side_can_use_clients_addresses_without_interception(self):
        lab = self.enterContext(Lab())
        Proxy(lab, "--divert", ready="diverting")
        tcp.pair(lab)
        # A socket in the branch with the client's address, as a dialler makes it: its answers come back to it.
        with tcp.Listener(lab) as listener:
            with lab.inside("branch"):
                sock = socket.socket()
            sock.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
            sock.settimeout(tcp.PATIENCE)
            sock.bind((CLIENT, 40125))
            sock.connect((SERVER, listener.port))
            there = listener.accept()
            self.assertEqual(there.remote, (CLIENT, 40125))
            there.send(b"x")
            self.assertEqual(sock.recv(1), b"x")
            sock.close()

    def test_no_rule_matches_a_packet_after_a_clean_end(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        self.assertIn("socket transparent", proxy.rules())
        proxy.process.stop()
        self.assertEqual(proxy.rules(), "")

    def test_check_names_missing_requirements_and_the_command_that_fixes_them(self):
        lab = self.enterContext(Lab())
        words = [INTERCEPTOR, "--check", "--interface", lan_of(lab, "branch", BRANCH)]
        self.assertEqual(lab.run("branch", *words), "")
        lab.run("branch", "sysctl", "-qw", "net.ipv4.ip_forward=0")
        self.assertIn("| sysctl -w net.ipv4.ip_forward=1", lab.run("branch", *words))
        lab.run("branch", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        without_root = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"]
        self.assertIn("needs root or CAP_NET_ADMIN", lab.run("branch", *without_root, *words, cwd="/"))
        failed = lab.run("branch", *without_root, INTERCEPTOR, "--interface", "lo", check=False, cwd="/")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("transparent sockets need root or CAP_NET_ADMIN", failed.stdout)

    def test_a_second_daemon_on_the_same_port_reports_that_the_port_is_in_use(self):
        lab = self.enterContext(Lab())
        proxy = Proxy(lab)
        second = lab.run("branch", INTERCEPTOR, "--interface", "lo", check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another program already listens on port 7650", second.stdout)
        tcp.pair(lab)
        proxy.wait_for("carried ")
