# SPDX-License-Identifier: Apache-2.0
"""Throughput by iperf3, a program we did not write."""

import json

from lab import SERVER, until


class Iperf3:
    def __init__(self, lab, node="server"):
        self.lab = lab
        self.process = lab.start(node, "iperf3", "--server", "--forceflush")
        until(lambda: "listening" in self.process.log(), what="iperf3 listens")

    def run(self, *options, host=SERVER, node="client", seconds=10):
        """The whole report; options as iperf3 takes them, for instance --reverse."""
        words = ("iperf3", "--client", host, "--json", "--time", seconds, *options)
        return json.loads(self.lab.run(node, *words, seconds=seconds + 30))

    def received_bits_per_second(self, *options, **where):
        return self.run(*options, **where)["end"]["sum_received"]["bits_per_second"]
