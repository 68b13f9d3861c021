# SPDX-License-Identifier: Apache-2.0
"""A SOCKS5 client that returns the replies it received (RFC 1928), which curl does only in part."""

import ipaddress
import struct

import tcp

REPLIES = {0: "succeeded", 1: "general failure", 2: "not allowed", 3: "network unreachable", 4: "host unreachable",
           5: "refused", 6: "TTL expired", 7: "command not supported", 8: "address type not supported"}


def connect(lab, proxy, to, node="client"):
    """A connection through the proxy at (address, port), and its answer in words. A `to` that is no address is sent
    as a name."""
    connection = tcp.connect(lab, *proxy, node=node)
    connection.send(b"\x05\x01\x00")
    if connection.receive(2) != b"\x05\x00":
        raise AssertionError("the proxy wants something else than no authentication")
    host, port = to
    try:
        address = ipaddress.ip_address(host)
        destination = (b"\x01" if address.version == 4 else b"\x04") + address.packed
    except ValueError:
        destination = b"\x03" + bytes([len(host)]) + host.encode()
    connection.send(b"\x05\x01\x00" + destination + struct.pack(">H", port))
    version, reply, _, kind = connection.receive(4)
    if version != 5:
        raise AssertionError(f"version {version}")
    connection.receive({1: 4, 4: 16}[kind] + 2)
    return connection, REPLIES[reply]
