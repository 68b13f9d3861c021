# SPDX-License-Identifier: Apache-2.0
"""A lab without any wire: one namespace in which every node's addresses lie on loopback, for what the proxies
themselves can do. Clients reach servers through explicit forwards."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import features
import lab as labs
import namespaces
from pair import Pair

ADDRESSES = (labs.CLIENT, labs.BRANCH, labs.BRANCH_WAN, labs.DATACENTER_WAN, labs.DATACENTER, labs.SERVER)
ENDS = (labs.BRANCH, labs.SERVER)  # what clients and the far proxy dial; on the link the daemon chooses for itself
CONGESTION_CONTROL = "cubic"
FIRST_PORT = 20001  # of the forwards; nobody else is in this namespace


class Loopback(labs.Lab):
    """Nothing has to be taken down: the namespace goes with the last process in it, and those go with this one."""

    def __init__(self, most_buffer_bytes=None):
        super().__init__()
        self.most_buffer_bytes = most_buffer_bytes

    def __enter__(self):
        self.namespace = namespaces.new()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix=f"longhaul-{self.name}-"))
        self.scratch.chmod(0o711)  # daemons run as a user of their own, who passes through it
        labs.Lab.running.append(self)
        for words in ("link set lo up", *(f"address add {address}/32 dev lo" for address in ADDRESSES),
                      *(f"route replace local {address} dev lo table local congctl {CONGESTION_CONTROL}"
                        for address in ENDS)):
            self.run("client", "ip", *words.split())
        values = {"net.ipv4.ip_local_port_range": "21000 65535"}
        if self.most_buffer_bytes:
            values |= {"net.ipv4.tcp_rmem": f"4096 65536 {self.most_buffer_bytes}",
                       "net.ipv4.tcp_wmem": f"4096 16384 {self.most_buffer_bytes}"}
        self.run("client", "sysctl", "-q", "-w", *(f"{name}={value}" for name, value in values.items()))
        return self

    def __exit__(self, *_):
        labs.Lab.running.remove(self)
        errors = []
        for process in reversed(self.processes):
            try:
                process.stop()
            except AssertionError as error:
                errors.append(str(error))
        self.namespace.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
        if errors:
            raise AssertionError("\n".join(errors))

    def status(self):
        def ask(name):
            return self.run("client", "sysctl", "-n", name).split()

        facts = {"congestion_control": CONGESTION_CONTROL,
                 "tcp_rmem": [int(word) for word in ask("net.ipv4.tcp_rmem")],
                 "tcp_wmem": [int(word) for word in ask("net.ipv4.tcp_wmem")]}
        return {"lab": self.name, "scratch": str(self.scratch), "line": None,
                "nodes": dict.fromkeys(("client", "branch", "datacenter", "server"), facts)}

    def words_in(self, node, words):
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.namespace.fileno()}",
                "setpriv", "--pdeathsig", "KILL", *map(str, words)]

    def inside(self, node):
        return namespaces.inside_open(self.namespace)


def forwarding_pair(lab, ports, chosen=features.TCP_ONLY, **both):
    """A pair in a Loopback lab with a forward for each port of the server; `forwards(ports)` are the ports to call
    at the branch's address."""
    listening = [{"listen": f"{labs.BRANCH}:{FIRST_PORT + i}", "to": f"{labs.SERVER}:{port}"}
                 for i, port in enumerate(ports)]
    changes = {"intercept": None, "features": chosen, "link": {"allow": [f"{labs.SERVER}/32"]},
               "log": {"level": "warn"}, **both}
    # All clients have one address.
    most = changes.get("limits", {}).get("flows", 16384)
    return Pair(lab, both=changes, branch={"forward": listening, "control": {"listen": "127.0.0.1:7601"},
                                           "limits": {"flows_per_source": most}},
                datacenter={"control": {"listen": "127.0.0.1:7602"}})


def forwards(ports):
    return [FIRST_PORT + i for i in range(len(ports))]
