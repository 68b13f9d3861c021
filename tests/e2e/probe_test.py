# SPDX-License-Identifier: Apache-2.0
"""longhaul-probe on paths whose every line is configured: its results are compared with the settings."""

import json
import math
import re
import signal
import unittest

from hops import FAR, FAR6, NEAR, NEAR6, PROBE, SERVER, SERVER6, Hops
from lab import long_test, until

LINES = (8e6, 1.0), (4e6, 3.0), (5e6, 0.5)  # bits per second, ms one way
SETTINGS = [f"{rate / 1e6:g}mbit delay={delay:g}ms" for rate, delay in LINES]


def measure(hops, *words):
    """The result of `path` to the server, as JSON."""
    return json.loads(hops.run("client", PROBE, "path", "--json", *words))


def all_but_one_in_a_thousand(trials, chance):
    """How many of them happen at least and at most, in all but a thousandth of all cases."""
    total, least = 0.0, None
    for count in range(trials + 1):
        total += math.comb(trials, count) * chance ** count * (1 - chance) ** (trials - count)
        if least is None and total > 0.0005:
            least = count
        if total > 0.9995:
            return least, count
    return least, trials


def measured(measure, is_good, times=6):
    """What `measure` finds: again where it is not good, because other work on the host delayed its packets. Lateness only
    ever adds, so the lines have these figures if one measurement says so."""
    for _ in range(times):
        found = measure()
        if is_good(found):
            break
    return found


def is_near(value, expected, share):
    return abs(value / expected - 1) <= share


def refused(hops, *words):
    """Exit code, output and the sentence of a run that cannot go well."""
    done = hops.run("client", PROBE, *words, check=False)
    return done.returncode, done.stdout, done.stderr


def start_agent(hops, node, *words):
    """Its port, once it listens."""
    agent = hops.start(node, PROBE, "agent", "--listen", "[::]:0", *words)
    return until(lambda: re.search(r"listens at \S+:(\d+),", agent.log()))[1]


class Path(unittest.TestCase):
    def test_path_and_order_of_the_hops_are_found_in_both_families_and_by_every_kind_of_probe(self):
        hops = self.enterContext(Hops())
        for words in ([SERVER], [SERVER6], [SERVER, "--by", "icmp"], [SERVER6, "--by", "tcp"]):
            with self.subTest(words):
                found = measure(hops, *words, "--sizes", "6", "--probes", "2")
                self.assertTrue(found["reached"])
                ends = [".1.2", ".2.2", ".3.2"] if "." in words[0] else [":1::2", ":2::2", ":3::2"]
                self.assertEqual(len(found["hops"]), 3)
                for hop, end in zip(found["hops"], ends):
                    self.assertTrue(hop["address"].endswith(end), hop)

    def test_links_are_measured_roughly_on_a_busy_machine_too(self):
        """The shape, not the digits: lateness only ever adds, and another test may run meanwhile."""
        hops = self.enterContext(Hops("2mbit delay=1ms", None, "1mbit delay=5ms"))
        found = measured(lambda: measure(hops, SERVER, "--sizes", "8", "--probes", "4"),
                         lambda found: is_near(found["links"][0]["capacity"]["bps"], 2e6, 0.4) and
                         is_near(found["links"][2]["capacity"]["bps"], 1e6, 0.4))
        first, second, third = found["links"]
        self.assertAlmostEqual(first["capacity"]["bps"] / 2e6, 1, delta=0.4)
        self.assertAlmostEqual(third["capacity"]["bps"] / 1e6, 1, delta=0.4)
        self.assertTrue(second["capacity"]["bps"] is None or second["capacity"]["bps"] > 5e6)
        self.assertAlmostEqual(first["delay_ms"], 1, delta=2)
        self.assertAlmostEqual(third["delay_ms"], 5, delta=2)

    def test_what_is_said_of_three_lines_is_consistent_for_every_kind_of_probe(self):
        """How exact it is on a quiet machine is measured by tests/bench/run probes."""
        hops = self.enterContext(Hops(*SETTINGS))
        # In IPv6 answers carry up to 1280 bytes, which leaves few sizes to tell the ways there and back apart.
        for words in ([SERVER, "--sizes", "20", "--probes", "6"],
                      [SERVER, "--by", "icmp", "--sizes", "20", "--probes", "6"],
                      [SERVER, "--by", "tcp", "--sizes", "20", "--probes", "6"],
                      [SERVER6, "--symmetric", "--sizes", "12", "--probes", "5"]):
            with self.subTest(words):
                def are_near(found):
                    return all(link["capacity"]["bps"] is not None and is_near(link["capacity"]["bps"], rate, 0.4)
                               for link, (rate, _) in zip(found["links"], LINES))

                found = measured(lambda: measure(hops, *words), are_near)
                self.assertTrue(are_near(found), found["links"])
                trips = [hop["least_rtt_ms"] for hop in found["hops"]]
                self.assertEqual(len(trips), len(LINES))
                for trip, link in zip(trips, found["links"]):
                    capacity = link["capacity"]
                    self.assertLessEqual(capacity["low"], capacity["bps"])
                    self.assertLessEqual(capacity["bps"], capacity["high"] or math.inf)
                # A packet to a host, and its answer, cross each line on the way.
                for count, trip in enumerate(trips, 1):
                    self.assertGreaterEqual(trip, 2 * sum(delay for _, delay in LINES[:count]))

    def test_loss_is_counted_and_put_where_it_is(self):
        losses = 0.01, 0.1, 0.04
        hops = self.enterContext(Hops(*(f"{rate}mbit delay={delay}ms a-to-b-loss={loss} seed=5"
                                        for rate, delay, loss in zip((50, 20, 30), (1, 3, 2), losses))))
        passes = [math.prod(1 - loss for loss in losses[:count]) for count in (1, 2, 3)]

        def lost_is_right(found):
            return all(least <= hop["sent"] - hop["answered"] <= most for hop, pass_ in zip(found["hops"], passes)
                       for least, most in [all_but_one_in_a_thousand(hop["sent"], 1 - pass_)])

        # An answer that is late counts as lost.
        found = measured(lambda: measure(hops, SERVER, "--sizes", "12", "--probes", "15", "--wait", "200ms"), lost_is_right)
        self.assertTrue(lost_is_right(found), found["hops"])
        # What is stated of a link is the difference of two hops, so it knows less.
        for link, loss in zip(found["links"], losses):
            self.assertLess(abs(link["loss"]["share"] - loss), 0.08)
        self.assertGreater(found["links"][1]["loss"]["share"], found["links"][0]["loss"]["share"])

    def test_a_router_that_answers_rarely_is_not_taken_for_a_lossy_one(self):
        hops = self.enterContext(Hops(answers_are_limited=True))
        found = measure(hops, SERVER, "--by", "icmp", "--sizes", "6", "--probes", "2", "--gap", "0", "--wait", "100ms")
        self.assertGreater(found["hops"][0]["sent"], found["hops"][0]["answered"])
        self.assertEqual(found["links"][0]["loss"]["low"], 0)

    @long_test
    def test_a_router_that_answers_rarely_is_asked_rarely(self):
        hops = self.enterContext(Hops(answers_are_limited=True))
        found = measure(hops, SERVER, "--by", "icmp", "--sizes", "6", "--probes", "2")
        self.assertTrue(found["hops"][0]["answers_are_limited"])
        self.assertEqual(found["hops"][0]["answered"], found["hops"][0]["sent"])


class BadUse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hops = cls.enterClassContext(Hops())

    def rules(self, node, hook, rule):
        """Rules for nft, until the test is over."""
        self.hops.run(node, "nft", f"add table ip f; add chain ip f c {{ type filter hook {hook} priority 0; }}; "
                      f"add rule ip f c {rule}")
        self.addCleanup(self.hops.run, node, "nft", "delete table ip f")

    def test_a_filter_on_the_way_is_gone_round_or_named(self):
        self.rules("far", "forward", "meta l4proto { udp, icmp } drop")
        few = ["--sizes", "6", "--probes", "2", "--wait", "150ms"]
        # What is later than that, on a busy machine, is no answer.
        code, out, _ = measured(lambda: refused(self.hops, "path", "--json", SERVER, *few), lambda found: '"TCP"' in found[1])
        self.assertEqual((code, json.loads(out)["by"]), (0, "TCP"))
        code, out, error = measured(lambda: refused(self.hops, "path", SERVER, "--by", "udp", *few), lambda found: FAR in found[1])
        self.assertEqual(code, 1)
        self.assertIn(f"{SERVER} does not answer (UDP)", out)
        self.assertIn(FAR, out)
        self.assertIn("try another kind with --by", out)

    def test_a_filter_that_reports_itself_is_named(self):
        self.rules("near", "forward", "meta l4proto udp reject with icmp type admin-prohibited")
        code, out, error = refused(self.hops, "path", SERVER, "--by", "udp", "--sizes", "6", "--probes", "2")
        self.assertEqual(code, 1)
        self.assertIn(f"{NEAR} (hop 2) reports that a firewall prohibits these probes", out)

    def test_missing_hosts_names_and_privileges_each_get_a_sentence(self):
        code, _, error = refused(self.hops, "path", "10.99.0.1")
        self.assertEqual(code, 1)
        self.assertIn("no route to 10.99.0.1", error)
        code, _, error = refused(self.hops, "path", "10.20.1.77", "--wait", "100ms")
        self.assertEqual(code, 1)
        self.assertIn("no answers from the path to 10.20.1.77", error)
        code, _, error = refused(self.hops, "path", "no.such.name.invalid")
        self.assertEqual(code, 1)
        self.assertIn("'no.such.name.invalid' has no address", error)
        done = self.hops.run("client", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PROBE, "path",
                        SERVER, check=False)
        if "Permission denied" not in done.stderr:  # the build folder may be root's alone
            self.assertEqual(done.returncode, 1)
            self.assertIn("run it as root", done.stderr)

    def test_an_interrupted_run_says_so_and_ends(self):
        probe = self.hops.start("client", PROBE, "path", SERVER, "--repeat", "0", "--sizes", "6", "--probes", "2")
        # Two, since there is nothing to say over the time of one, which is all there is if the signal is quick.
        until(lambda: probe.log().count("95 % confidence intervals") >= 2, what="two measurements are done")
        probe.signal(signal.SIGINT)
        self.assertEqual(probe.wait(), 130)
        self.assertIn("over ", probe.log())

    def test_a_line_that_becomes_slower_and_one_that_is_away_for_a_while_are_seen_over_time(self):
        hops = self.enterContext(Hops(None, "4mbit delay=2ms", None))
        probe = hops.start("client", PROBE, "path", SERVER, "--repeat", "0", "--sizes", "8", "--probes", "3", "--wait", "200ms")
        until(lambda: probe.log().count("95 % confidence intervals") >= 1, what="a measurement is done")
        hops.set_line(2, "rate=1mbit")
        done = probe.log().count("95 % confidence intervals")
        until(lambda: probe.log().count("95 % confidence intervals") >= done + 2, what="one is done on the slower line")
        hops.ip("client", "link set to-near down")
        until(lambda: "not measured: " in probe.log(), what="the outage is told")
        self.assertTrue(probe.is_running())
        probe.signal(signal.SIGINT)
        self.assertEqual(probe.wait(), 130)
        said = re.search(r"over (\d+) measurements, .*, of which (\d+) failed", probe.log())
        self.assertGreaterEqual(int(said[1]), 4)
        self.assertGreaterEqual(int(said[2]), 1)
        row = re.search(r"^2 .*$", probe.log()[said.end():], re.M)[0]
        least, _, most = (float(number) * {"k": 1e3, "M": 1e6}[unit] for number, unit in re.findall(r"([\d.]+) (.)bit/s", row))
        self.assertLess(least, 2e6)  # the line had 1 and 4 Mbit/s; late packets make it look slower, never faster
        self.assertGreater(most, 2e6)


class Options(unittest.TestCase):
    """One path for all: a plain one, and a server that an agent and another listener run on."""

    @classmethod
    def setUpClass(cls):
        cls.hops = cls.enterClassContext(Hops())
        cls.agent = start_agent(cls.hops, "server")

    def options(self, *words, host=SERVER):
        done = self.hops.run("client", PROBE, "options", host, self.agent, "--json", *words, check=False)
        found = json.loads(done.stdout)
        # A script need not read what was found to learn that something was.
        self.assertEqual(done.returncode, 1 if found["changes"] or found["remarks"] else 0)
        return found

    def strip(self, node, what="to-server", option="window"):
        self.hops.run(node, "nft", "add table inet m; add chain inet m c { type filter hook forward priority 0; }; "
                      f"add rule inet m c oifname {what} tcp flags & syn == syn reset tcp option {option}")
        self.addCleanup(self.hops.run, node, "nft", "delete table inet m", check=False)

    def test_offered_options_arrive_on_a_transparent_path(self):
        for host in (SERVER, SERVER6):
            with self.subTest(host):
                found = self.options("--agent", f":{self.agent}", host=host)
                self.assertEqual(found["changes"], [])
                self.assertEqual(found["remarks"], [])
                self.assertEqual([station["agent"] for station in found["stations"]], [False, False, False, True])
                self.assertIsNotNone(found["answer"]["window_scale"])

    def test_a_middlebox_that_strips_window_scale_is_found_and_named(self):
        self.strip("near", "to-far")
        for host, near, far in ((SERVER, NEAR, FAR), (SERVER6, NEAR6, FAR6)):
            for words in ([], ["--agent", f":{self.agent}"]):
                with self.subTest(words, host=host):
                    found = self.options(*words, host=host)
                    self.assertEqual([change["option"] for change in found["changes"]], ["window scale"])
                    self.assertEqual(found["changes"][0]["after"], "gone")
                    self.assertIn(near, found["changes"][0]["where"])
                    self.assertIn(far, found["changes"][0]["where"])

    def test_other_options_that_a_middlebox_strips_are_named_too(self):
        self.strip("near", "to-far", "sack-perm")
        self.strip("far", "to-server", "timestamp")
        found = self.options("--agent", f":{self.agent}")
        self.assertEqual({change["option"]: FAR in change["where"] and NEAR in change["where"] for change in found["changes"]},
                         {"SACK": True, "timestamps": False})

    def test_an_agent_shows_on_which_side_of_the_last_router_an_option_is_removed(self):
        self.strip("far", "to-server")
        there = self.options("--agent", f":{self.agent}")
        self.assertIn("(the agent)", there["changes"][0]["where"])
        self.hops.run("far", "nft", "delete table inet m")
        self.strip("far", "to-near")
        back = self.options("--agent", f":{self.agent}")
        self.assertEqual(back["changes"], [])
        self.assertIn("on the way back", back["remarks"][0])

    def test_a_server_that_does_not_offer_it_is_named_and_no_middlebox(self):
        self.hops.sysctl("server", **{"net.ipv4.tcp_window_scaling": 0})
        self.addCleanup(self.hops.sysctl, "server", **{"net.ipv4.tcp_window_scaling": 1})
        found = self.options("--agent", f":{self.agent}")
        self.assertEqual(found["changes"], [])
        self.assertIn("tcp_window_scaling is 0", found["remarks"][0])

    def test_a_missing_host_and_a_missing_agent_get_a_sentence(self):
        done = self.hops.run("client", PROBE, "options", SERVER, "9", check=False)
        self.assertIn("nothing listens on port 9", done.stdout)
        done = self.hops.run("client", PROBE, "tcp", f"{SERVER}:9", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("start `longhaul-probe agent` there", done.stderr)


class Host(unittest.TestCase):
    def test_the_advice_for_a_host_limited_to_64_kilobytes_works(self):
        hops = self.enterContext(Hops())
        words = [PROBE, "host", "--rtt", "100", "--rate", "51.84mbit", "--json"]
        hops.sysctl("client", **{"net.ipv4.tcp_rmem": "4096 65536 65536", "net.ipv4.tcp_wmem": "4096 16384 65536"})
        done = hops.run("client", *words, check=False)
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        self.assertEqual(found["path"]["window_needed_bytes"], 648_000)
        changes = [one for one in found["path"]["findings"] if one["verdict"] == "change"]
        self.assertEqual([one["setting"] for one in changes], ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"])
        for one in changes:
            hops.run("client", "sh", "-c", one["command"])
        self.assertTrue(json.loads(hops.run("client", *words))["right"])
        self.assertIn("OK: nothing here limits the window",
                      hops.run("client", PROBE, "host", "--rtt", "100", "--rate", "51.84mbit"))


class Tcp(unittest.TestCase):
    def test_rfc_6349_figures_between_two_hosts_and_between_neighbours(self):
        hops = self.enterContext(Hops(None, "10mbit delay=10ms queue=128KiB", None))
        ports = {node: start_agent(hops, node, "--may-dial") for node in ("near", "far", "server")}
        found = measured(lambda: json.loads(hops.run("client", PROBE, "tcp", f"{SERVER}:{ports['server']}", "--time", "1s",
                                                     "--json", "--direction", "there"))["there"],
                         lambda found: is_near(found["capacity_bps"], 10e6, 0.2) and found["efficiency"] > 0.5)
        self.assertAlmostEqual(found["capacity_bps"] / 10e6, 1, delta=0.2)
        self.assertGreater(found["base_rtt_ms"], 19)
        self.assertGreater(found["transfer_time_ratio"], 0.95)
        self.assertGreater(found["efficiency"], 0.5)
        self.assertLessEqual(found["efficiency"], 1)
        pairs = measured(lambda: json.loads(hops.run("client", PROBE, "neighbours", f"{NEAR}:{ports['near']}",
                                                     f"{FAR}:{ports['far']}", f"{SERVER}:{ports['server']}", "--time", "300ms",
                                                     "--json"))["pairs"],
                         lambda pairs: is_near(pairs[0]["there"]["capacity_bps"], 10e6, 0.3) and
                         pairs[1]["there"]["capacity_bps"] > 30e6)
        self.assertAlmostEqual(pairs[0]["there"]["capacity_bps"] / 10e6, 1, delta=0.3)
        self.assertGreater(pairs[1]["there"]["capacity_bps"], 30e6)
        # An absent agent is a finding, and does not hide the results of the others.
        done = hops.run("client", PROBE, "neighbours", f"{NEAR}:{ports['near']}", f"{FAR}:9", f"{SERVER}:{ports['server']}",
                        f"{FAR}:{ports['far']}", "--time", "300ms", "--json", check=False)
        self.assertEqual(done.returncode, 1)
        first, second, third = json.loads(done.stdout)["pairs"]
        self.assertIn("trouble", first)
        self.assertIn("trouble", second)
        self.assertGreater(third["there"]["capacity_bps"], 0)
        self.assertIn(f"{FAR}:9", done.stderr)
