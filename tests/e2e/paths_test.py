# SPDX-License-Identifier: Apache-2.0
"""Several paths between the two daemons: IPv4 and IPv6 on one line, each of which can be cut without the other; or two
lines, for what flows ask for."""

import concurrent.futures
import itertools
import re
import time
import unittest

import tcp
from lab import DATACENTER_WAN, PATIENCE, SERVER, Lab, until
from link_test import Copies
from pair import Pair, path_roles, use_two_lines, use_two_paths, wait_paths
from udp_test import moved, rules

# Of the link alone, TCP included: what bypasses it has other addresses.
CUT_IPV4 = (f"chain out {{ type filter hook output priority 0; ip daddr {DATACENTER_WAN} drop; }}\n"
            f"chain in {{ type filter hook input priority 0; ip saddr {DATACENTER_WAN} drop; }}\n")


class Paths(unittest.TestCase):
    def start(self, policy):
        self.lab = self.enterContext(Lab("51.84mbit,40"))
        self.pair = self.enterContext(use_two_paths(Pair(self.lab), policy))
        self.branch, self.datacenter = self.pair.sites
        wait_paths(self.pair)

    def check_cut(self, policy, before, after):
        for _ in range(3):  # UDP gives way to TCP on a machine that stands still for a second: then in another lab
            self.start(policy)
            self.cut_under_a_transfer(before, after)
            if [site.link()["udp"]["fallbacks"] for site in self.pair.sites] == [0, 0]:
                return
        self.fail("UDP gave way to TCP each time")

    def cut_under_a_transfer(self, before, after):
        with Copies(self.lab, 12_000_000) as copies:
            moved(self.branch, 1_000_000)
            until(lambda: path_roles(self.branch) == before, what="the paths are used as configured")
            with rules(self.lab, "branch", CUT_IPV4):
                until(lambda: path_roles(self.branch) == after, what="the cut is noticed")
                self.assertEqual(copies.wait(), copies.expected())
                status = until(lambda: "path six: carries the link (no other path works)" in (said := self.branch.longhaul("status"))
                               and said, what="the status says so")
                self.assertIn('The path "four" to "datacenter" does not work', status)
                # The TCP connection was on the path that is cut; the other one takes its place.
                until(lambda: self.branch.link()["carriers_attached"] > 1, what="it is made again")
        for site in self.pair.sites:
            self.assertEqual(site.status()["flows"]["reset"], 0)
            self.assertTrue(site.process.lines_with("path_down"))
        until(lambda: path_roles(self.branch) == before, what="the path works again")

    def test_a_transfer_goes_on_over_the_other_path(self):
        self.check_cut("failover", {"four": "carries", "six": "standby"}, {"four": "none", "six": "carries"})

    def test_transfers_use_both_paths(self):
        self.start("sum")
        for _ in range(5):  # on a host that stands still for a moment a path is late, and the other one is used
            before = [path_bytes(site) for site in self.pair.sites]
            with Copies(self.lab, 12_000_000) as copies:
                self.assertEqual(copies.wait(), copies.expected())
            sent = [value - old[path] for site, old in zip(self.pair.sites, before) for path, value in path_bytes(site).items()]
            self.assertEqual(len(sent), 4)
            if min(sent) > 2_000_000:
                return
        self.fail(f"the paths have not shared the bytes: {sent}")

    def test_a_site_without_paths_uses_one_line(self):
        self.lab = self.enterContext(Lab("51.84mbit,40"))
        pair = Pair(self.lab)
        peer = pair.branch.settings["peer"][0]
        peer["path"] = [{"name": "four", "address": peer.pop("address")}]
        self.enterContext(pair)
        for site in pair.sites:
            until(lambda: site.link()["carrier"] == "udp", what=f"{site.name} sends over UDP")
            self.assertEqual(site.link()["paths"], [])
        self.assertTrue(pair.branch.process.lines_with("paths_not_agreed"))


class Ports:
    """An upload and a download at ports of their own, which rules can name."""

    seeds = itertools.count(1000)

    def __init__(self, test, lab, size):
        self.lab, self.size = lab, size
        self.up, self.down = next(self.seeds), next(self.seeds)
        self.sink = test.enterContext(tcp.Server(lab, tcp.report_digest))
        self.source = test.enterContext(tcp.Server(lab, tcp.sender(size, self.down)))
        self.numbers = [self.sink.port, self.source.port]

    def rule(self, **features):
        return {"to_ports": self.numbers, "features": features}

    def copy(self):
        """Both at once; every byte is compared."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            up = pool.submit(tcp.upload, self.lab, SERVER, self.sink.port, self.size, self.up)
            down = pool.submit(tcp.download, self.lab, SERVER, self.source.port)
            got = up.result(), down.result()
        if got != (tcp.digest(self.size, self.up), tcp.digest(self.size, self.down)):
            raise AssertionError(f"WRONG BYTES: {got}")


def path_bytes(site):
    """Sent so far on each path, as the metrics have it."""
    found = re.findall(r'^longhaul_path_bytes_total\{(.*)\} (\S+)$', site.get("/metrics"), re.M)
    return {re.search(r'path="(\w+)"', labels)[1]: float(value) for labels, value in found
            if 'direction="sent"' in labels}


class Rules(unittest.TestCase):
    """The peer's policy is not that of all flows. The rules are the branch's; the datacenter, which sends the downloads,
    has none."""

    def start(self, policy, lines, rules):
        self.lab = self.enterContext(Lab(lines[0], second=lines[1]))
        ports = {name: Ports(self, self.lab, size) for name, (size, _) in rules.items()}
        branch = {"rule": [ports[name].rule(paths=use) for name, (_, use) in rules.items() if use]}
        whole = {"compression": False, "dedup_memory": False, "dedup_disk": False}  # bytes that crossed before cross again
        pair = Pair(self.lab, both={"features": whole}, branch=branch)
        self.pair = self.enterContext(use_two_lines(pair, policy, ("25mbit", "25mbit")))
        wait_paths(self.pair)
        return ports.values()

    def check(self, move, holds):
        """`move` copies files; `holds` says whether {path: bytes} sent meanwhile is right, which it must be at both
        sites. On a host that stands still for a moment a path is late, and its flows use the other one: then again,
        for as long as other tests wait."""
        tries_until = time.monotonic() + PATIENCE
        while True:
            before = [path_bytes(site) for site in self.pair.sites]
            move()
            sent = [{path: value - old[path] for path, value in path_bytes(site).items()}
                    for site, old in zip(self.pair.sites, before)]
            if all(map(holds, sent)):
                return
            if time.monotonic() > tries_until:
                self.fail(f"the bytes are on other paths: {sent}")

    def asked_for(self, ports):
        """What a flow to the first of the ports shows at both sites."""
        connection = tcp.connect(self.lab, SERVER, ports.sink.port)
        try:
            return [until(lambda: self.flows_to(site, ports), what=f"{site.name} has the flow")[0]["features"]["paths"]
                    for site in self.pair.sites]
        finally:
            connection.end()
            connection.receive_rest()
            connection.close()

    @staticmethod
    def flows_to(site, ports):
        return site.flows(f"?port={ports.sink.port}")

    def test_flows_use_the_paths_that_their_rule_names(self):
        size = 4_000_000
        usual, best, all_lines = self.start("failover", ("25mbit,80", "25mbit,20"),
                                            {"usual": (size, None), "best": (size, "best"), "sum": (size, "sum")})
        for ports, use, used, other in ((usual, "auto", "first", "second"), (best, "best", "second", "first")):
            with self.subTest(use):
                self.assertEqual(self.asked_for(ports), [use, use])
                self.check(ports.copy, lambda sent: sent[used] > size and sent[other] < size / 4)
        self.assertEqual(self.asked_for(all_lines), ["sum", "sum"])
        self.check(all_lines.copy, lambda sent: min(sent.values()) > size / 4)
        # What rules ask for changes nothing for all others.
        until(lambda: path_roles(self.pair.branch) == {"first": "carries", "second": "standby"},
              what="the peer's policy is in force")

    def test_a_flow_stays_on_one_line_beside_another_that_uses_both(self):
        small, large = 4_000_000, 12_000_000
        usual, ruled = self.start("sum", ("25mbit,80", "25mbit,80"), {"usual": (small, None), "ruled": (large, "failover")})

        def together():
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                for copy in [pool.submit(ports.copy) for ports in (usual, ruled)]:
                    copy.result()

        # What is on the second line is of the other flow alone, with headers; half of both would be twice as much.
        self.check(together, lambda sent: sent["first"] > large and small / 4 < sent["second"] < small * 5 / 4)


class Restart(unittest.TestCase):
    @staticmethod
    def file(site):
        return site.folder / "state" / "paths"

    def remembered(self, site):
        """{name of the line: bits a second}."""
        if not self.file(site).exists():
            return {}
        rows = [row.split(" ") for row in self.file(site).read_text().splitlines()[1:-1]]
        self.assertTrue(all(row[0].startswith("sha256:") for row in rows))
        return {row[4]: 8 * int(row[1]) for row in rows}

    def test_the_measured_rates_of_all_lines_survive_a_restart(self):
        lab = self.enterContext(Lab("25mbit,20", second="25mbit,40"))
        pair = use_two_lines(Pair(lab), "sum")

        def run(size):
            with pair:
                wait_paths(pair)
                if size:
                    with Copies(lab, size) as copies:
                        self.assertEqual(copies.wait(), copies.expected())

        measured = []
        for _ in range(5):  # a busy machine may measure one line only
            run(8_000_000)
            measured = [self.remembered(site) for site in pair.sites]
            if all(len(rates) == 2 for rates in measured):
                break
        for rates in measured:
            self.assertEqual(set(rates), {"first", "second"})
        run(0)
        self.assertEqual([self.remembered(site) for site in pair.sites], measured)  # nothing new was learnt
        for site in pair.sites:
            self.assertNotIn("warn paths", site.process.log())
            self.file(site).write_text(self.file(site).read_text().replace("first", "other"))
        run(8_000_000)
        for site in pair.sites:
            site.process.lines_with("warn paths", "damaged")
            self.assertEqual(set(self.remembered(site)), {"first", "second"})


if __name__ == "__main__":
    unittest.main()
