# SPDX-License-Identifier: Apache-2.0
"""Five namespaces, the links and routes between them, and their kernel settings. What fills the wan node with life,
and when all this goes away again, is in lab.py."""

import contextlib
import json
import os
import pathlib

import namespaces
from failure import Failure, run

NODES = ("client", "branch", "wan", "datacenter", "server")
HOSTS = ("client", "server")  # not tuned for the proxies
PROXIES = ("branch", "datacenter")

# Pairs of ends: node, interface, addresses. LANs keep their offloads, as a network card would; the WAN's ends have
# none, so that what crosses the line are packets of at most the MTU with checksums.
LINKS = (
    (("client", "eth0", "10.10.1.2/24", "fd10:1::2/64"), ("branch", "lan0", "10.10.1.1/24", "fd10:1::1/64")),
    (("branch", "wan0", "10.10.100.1/24", "fd10:100::1/64"), ("wan", "branch0")),
    (("wan", "datacenter0"), ("datacenter", "wan0", "10.10.100.2/24", "fd10:100::2/64")),
    (("datacenter", "lan0", "10.10.2.1/24", "fd10:2::1/64"), ("server", "eth0", "10.10.2.2/24", "fd10:2::2/64")),
)
# The same for a second line beside the first. The hosts' routes know nothing of it: it carries what is sent to its own
# addresses, or what a caller routes there.
SECOND_LINKS = (
    (("branch", "wan1", "10.10.101.1/24", "fd10:101::1/64"), ("wan", "branch1")),
    (("wan", "datacenter1"), ("datacenter", "wan1", "10.10.101.2/24", "fd10:101::2/64")),
)
OFFLOADS = ("tx", "tso", "gso", "gro", "tx-udp-segmentation")

# A leased line has no address resolution, which would cost a round trip and could be lost. Node and address there.
WAN_MAC = {("branch", "wan0"): "02:10:64:00:00:01", ("datacenter", "wan0"): "02:10:64:00:00:02",
           ("branch", "wan1"): "02:10:65:00:00:01", ("datacenter", "wan1"): "02:10:65:00:00:02"}
WAN_NEIGHBOURS = (("branch", "wan0", "datacenter", "10.10.100.2", "fd10:100::2"),
                  ("datacenter", "wan0", "branch", "10.10.100.1", "fd10:100::1"))
SECOND_NEIGHBOURS = (("branch", "wan1", "datacenter", "10.10.101.2", "fd10:101::2"),
                     ("datacenter", "wan1", "branch", "10.10.101.1", "fd10:101::1"))

# Node, destinations, ways, and whether our congestion control applies. Not between the proxies' own addresses:
# there the daemon chooses it for each socket, and a route's would override that. It is the routes that say it,
# because the sysctl of a namespace takes only what the host's tcp_allowed_congestion_control lists, which is not
# ours to change.
ROUTES = (
    ("client", ("10.10.1.0/24", "fd10:1::/64"), ("dev eth0",) * 2, True),
    ("client", ("default", "default"), ("via 10.10.1.1", "via fd10:1::1"), True),
    ("branch", ("10.10.1.0/24", "fd10:1::/64"), ("dev lan0",) * 2, True),
    ("branch", ("10.10.100.0/24", "fd10:100::/64"), ("dev wan0",) * 2, False),
    ("branch", ("10.10.2.0/24", "fd10:2::/64"), ("via 10.10.100.2", "via fd10:100::2"), True),
    ("datacenter", ("10.10.2.0/24", "fd10:2::/64"), ("dev lan0",) * 2, True),
    ("datacenter", ("10.10.100.0/24", "fd10:100::/64"), ("dev wan0",) * 2, False),
    ("datacenter", ("10.10.1.0/24", "fd10:1::/64"), ("via 10.10.100.1", "via fd10:100::1"), True),
    ("server", ("10.10.2.0/24", "fd10:2::/64"), ("dev eth0",) * 2, True),
    ("server", ("default", "default"), ("via 10.10.2.1", "via fd10:2::1"), True),
)
SECOND_ROUTES = (
    ("branch", ("10.10.101.0/24", "fd10:101::/64"), ("dev wan1",) * 2, False),
    ("datacenter", ("10.10.101.0/24", "fd10:101::/64"), ("dev wan1",) * 2, False),
)
PROXY_BUFFER_BYTES = 64 << 20  # most that one connection of a proxy may use; the kernel grows to it as needed


class Network:
    def __init__(self, name):
        self.name = name

    def namespace(self, node):
        return f"{self.name}-{node}"

    def _file(self, node):
        return pathlib.Path("/run/netns", self.namespace(node))

    def inside(self, node, *words):
        """A command in a node; with its own /sys, so that tools which look there see the node's interfaces."""
        return ("ip", "netns", "exec", self.namespace(node), *words)

    def nodes(self):
        """Those that exist: a network whose making was cut off has not all of them."""
        return [node for node in NODES if self._file(node).exists()]

    def pids(self):
        """Every process inside."""
        ours = set()
        for node in self.nodes():
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                ours.add(namespaces.identity(self._file(node)))
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc") if ours else ()):
            with contextlib.suppress(OSError):  # it has ended
                if namespaces.identity(f"/proc/{pid}/ns/net") in ours:
                    found.add(int(pid))
        return found

    def remove(self):
        if nodes := self.nodes():
            run("ip", "-batch", "-", stdin="".join(f"netns delete {self.namespace(node)}\n" for node in nodes))

    # -- making it

    def make(self, cc, proxy_cc, buffers, mtu, bridge, second):
        """`bridge`: a line without limits; `second`: another line beside the first."""
        links = LINKS + (SECOND_LINKS if second else ())
        routes = ROUTES + (SECOND_ROUTES if second else ())
        neighbours = WAN_NEIGHBOURS + (SECOND_NEIGHBOURS if second else ())
        run("ip", "-batch", "-", stdin="".join(f"netns add {self.namespace(node)}\n" for node in NODES))
        for node in NODES:
            self._set_sysctls(node, buffers)
        run("ip", "-batch", "-", stdin="".join(
            f"link add {left[1]} netns {self.namespace(left[0])} type veth peer name {right[1]} netns {self.namespace(right[0])}\n"
            for left, right in links))
        for node in NODES:
            four, six = self._interfaces(node, links, mtu)
            self._add_routes(node, routes, cc if node in HOSTS else proxy_cc, four, six)
            self._add_neighbours(node, neighbours, four)
            if bridge and node == "wan":
                four += ["link add line0 type bridge", "link set branch0 master line0",
                         "link set datacenter0 master line0", "link set line0 up"]
            run("ip", "-n", self.namespace(node), "-batch", "-", stdin="\n".join(four) + "\n")
            if six:  # a batch is of one family
                run("ip", "-6", "-n", self.namespace(node), "-batch", "-", stdin="\n".join(six) + "\n")

    def _interfaces(self, node, links, mtu):
        four, six = ["link set lo up"], []
        for link in links:
            for end, interface, *addresses in link:
                if end != node:
                    continue
                if "wan" in (link[0][0], link[1][0]):
                    self._switch_offloads_off(node, interface)
                if mac := WAN_MAC.get((node, interface)):
                    four.append(f"link set {interface} address {mac}")
                for address in addresses:
                    duplicates = " nodad" if ":" in address else ""  # duplicate address detection would delay the address
                    four.append(f"address add {address} dev {interface} noprefixroute{duplicates}")
                four.append(f"link set {interface} mtu {mtu} up")
        return four, six

    def _add_routes(self, node, routes, cc, four, six):
        for end, destinations, ways, ours in routes:
            if end == node:
                for batch, destination, way in zip((four, six), destinations, ways):
                    batch.append(f"route add {destination} {way}" + (f" congctl {cc}" if ours else ""))

    def _add_neighbours(self, node, neighbours, four):
        for end, interface, neighbour, *addresses in neighbours:
            if end == node:
                four += [f"neighbour replace {address} dev {interface} lladdr {WAN_MAC[neighbour, interface]} "
                         "nud permanent" for address in addresses]

    def _switch_offloads_off(self, node, interface):
        words = [word for offload in OFFLOADS for word in (offload, "off")]
        with self._in(node):
            run("ethtool", "-K", interface, *words)

    def _set_sysctls(self, node, buffers):
        values = {"net.ipv4.tcp_no_metrics_save": "1",  # else one test's end is the next one's start
                  "net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0",
                  "net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.default.disable_ipv6": "0",
                  "net.ipv6.conf.default.accept_dad": "0", "net.ipv6.conf.default.router_solicitations": "0"}
        if node in PROXIES:
            values |= {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1",
                       "net.ipv4.tcp_rmem": f"4096 131072 {PROXY_BUFFER_BYTES}",
                       "net.ipv4.tcp_wmem": f"4096 16384 {PROXY_BUFFER_BYTES}"}
        if node == "wan":  # a cable has no addresses
            values |= {"net.ipv6.conf.default.disable_ipv6": "1"}
        if node in HOSTS and buffers:
            least = min(4096, buffers)
            values |= {"net.ipv4.tcp_rmem": f"{least} {min(131072, buffers)} {buffers}",
                       "net.ipv4.tcp_wmem": f"{least} {min(16384, buffers)} {buffers}"}
        with self._in(node):
            for name, value in values.items():
                try:
                    pathlib.Path("/proc/sys", *name.split(".")).write_text(value, encoding="ascii")
                except OSError as error:
                    raise Failure(f"cannot set {name} to {value} in {node}: {error.strerror}") from None

    def _in(self, node):
        return namespaces.inside(self._file(node))

    # -- looking at it

    def facts(self, node):
        """As the kernel has them now."""
        buffers = run(*self.inside(node, "sysctl", "-n", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")).splitlines()
        addresses = {}
        for interface in self._ask(node, "address", "show"):
            found = [f"{a['local']}/{a['prefixlen']}" for a in interface["addr_info"] if a["scope"] == "global"]
            if found:
                addresses[interface["ifname"]] = found
        routes = self._ask(node, "-4", "route", "show") + self._ask(node, "-6", "route", "show")
        chosen = {metric["congestion"] for route in routes for metric in route.get("metrics", [])
                  if "congestion" in metric}
        return {"addresses": addresses, "congestion_control": " ".join(sorted(chosen)) or None,
                "tcp_rmem": [int(value) for value in buffers[0].split()],
                "tcp_wmem": [int(value) for value in buffers[1].split()]}

    def _ask(self, node, *words):
        family = [word for word in words if word.startswith("-")]
        rest = [word for word in words if not word.startswith("-")]
        return json.loads(run("ip", *family, "-n", self.namespace(node), "-j", *rest) or "[]")
