# SPDX-License-Identifier: Apache-2.0
"""A short transaction with a new connection over a long line: seconds from the client's connect to the first byte
of the answer. The bare line, then a pair whose link is up and has carried such a transaction before."""

import time

import conditions
import features
import tcp
from figures import Row, at_most
from lab import SERVER, Lab
from pair import Pair

REQUEST, ANSWER = b"?" * 100, b"!" * 1000


def answer(connection):
    connection.receive(len(REQUEST))
    connection.send(ANSWER)


def transaction(lab, port):
    with lab.inside("client"):
        began = time.monotonic()
        with tcp.socket.create_connection((SERVER, port), timeout=tcp.PATIENCE) as sock:
            sock.setsockopt(tcp.socket.IPPROTO_TCP, tcp.socket.TCP_NODELAY, 1)
            sock.sendall(REQUEST)
            first = sock.recv(len(ANSWER))
            took = time.monotonic() - began
            while first and len(first) < len(ANSWER):
                first += sock.recv(len(ANSWER))
    if first != ANSWER:
        raise AssertionError(f"{len(first)} of {len(ANSWER)} bytes")
    return took


def run(bench):
    times = bench.times(21, quick=5)
    with Lab("51.84mbit,250") as lab, tcp.Server(lab, answer) as server:
        bare = [transaction(lab, server.port) for _ in range(times)]
        with Pair(lab, both={"features": features.TCP_ONLY, "log": {"level": "warn"}}):
            transaction(lab, server.port)
            paired = [transaction(lab, server.port) for _ in range(times)]
        bench.report(Row("OC-1 250 ms: connect to first byte of the answer", "s", paired, at_most(0.26), bare,
                         conditions=conditions.of_lab(lab), note=f"best {min(paired):.4f}, worst {max(paired):.4f}"))
