# SPDX-License-Identifier: Apache-2.0
"""A server that is far from its site's proxy: a line of longhaul-wan inside the server's node, between its network card and an
interface of its own that has its address."""

import contextlib

from lab import BUILD, SERVER, until

GATEWAY = "10.10.2.1"


@contextlib.contextmanager
def far_server(lab, round_trip_ms):
    """IPv4 only. Sockets that the server makes meanwhile are behind the line."""
    emulator, control = BUILD / "tools" / "wan" / "longhaul-wan", lab.scratch / "behind.sock"
    steps = ["link add line0 type veth peer name host0", "address delete %s/24 dev eth0" % SERVER,
             "address add %s/24 dev host0" % SERVER, "link set line0 up", "link set host0 up",
             f"route replace default via {GATEWAY} dev host0"]
    # Other interfaces of the node must not answer for the address.
    lab.run("server", "sysctl", "-q", "-w", "net.ipv4.conf.eth0.arp_ignore=8", "net.ipv4.conf.line0.arp_ignore=8", check=False)
    lab.run("server", "ip", "-batch", "-", text="\n".join(steps) + "\n")
    lab.run("server", "sysctl", "-q", "-w", "net.ipv4.conf.eth0.arp_ignore=8", "net.ipv4.conf.line0.arp_ignore=8")
    for interface in ("host0", "line0", "eth0"):  # the line carries whole packets with checksums
        lab.run("server", "ethtool", "-K", interface, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
    lab.run("datacenter", "ethtool", "-K", "lan0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
    lab.run("datacenter", "ip", "neighbour", "flush", "dev", "lan0")
    process = lab.start("server", emulator, "run", "--a", "eth0", "--b", "line0", "--delay", f"{round_trip_ms / 2:g}ms",
                        "--control", control)
    until(lambda: lab.run("server", emulator, "stats", "--control", control, check=False).returncode == 0, what="the line is up")
    lab.run("datacenter", "ping", "-c", 1, "-W", 5, SERVER)
    try:
        yield
    finally:
        process.stop()
