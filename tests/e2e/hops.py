# SPDX-License-Identifier: Apache-2.0
"""Four hosts in a row with a line of its own between each two, for what measures hop by hop: client, near, far, server.
The namespaces have no names and the programs end with this process, so nothing is left behind however it ends."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import tempfile

from lab import BUILD, PATIENCE, Lab  # before the next line: it adds the folder of namespaces.py
import namespaces

NODES = ("client", "near", "far", "server")
NEAR, FAR, SERVER = "10.20.1.2", "10.20.2.2", "10.20.3.2"  # as the client's packets meet them
NEAR6, FAR6, SERVER6 = "fd20:1::2", "fd20:2::2", "fd20:3::2"
PROBE = BUILD / "tools/probe/longhaul-probe"
WAN = BUILD / "tools/wan/longhaul-wan"


class Running:
    """A program in a node, its output in a file."""

    def __init__(self, hops, node, words):
        self.name = f"{pathlib.Path(words[0]).name} in {node}"
        self.log_file = hops.scratch / f"{len(hops.processes)}.log"
        with open(self.log_file, "wb") as log:
            self.popen = subprocess.Popen(hops.words_in(node, words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True, preexec_fn=die_with_parent, close_fds=True)
        self.pid = self.popen.pid

    def log(self):
        return self.log_file.read_text(errors="replace")

    def is_running(self):
        return self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, seconds=PATIENCE):
        return self.popen.wait(seconds)

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(10)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Hops:
    """`Hops("10mbit", "2mbit delay=5ms", None)`: the settings of longhaul-wan for the three lines; None: no line but a
    plain pair of interfaces, where nothing is measured that a line decides."""

    def __init__(self, *lines, answers_are_limited=False):
        self.lines = lines or (None, None, None)
        self.limited = answers_are_limited
        self.processes = []

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        try:
            self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="e2e-hops-"))
            # Goes with this process too, however it ends: then the pipe is closed.
            sweeper = subprocess.Popen(["sh", "-c", 'cat >/dev/null; rm -rf "$0"', self.scratch], stdin=subprocess.PIPE,
                                       start_new_session=True)
            self.stack.callback(sweeper.wait)
            self.stack.callback(sweeper.stdin.close)
            Lab.running.append(self)
            self.stack.callback(Lab.running.remove, self)
            self.spaces = {node: self.stack.enter_context(namespaces.new()) for node in (*NODES, "line")}
            self.stack.callback(lambda: [process.stop() for process in reversed(self.processes)])
            self.make()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def make(self):
        for node in NODES:
            self.sysctl(node, **{"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1,
                                 "net.ipv6.conf.all.accept_dad": 0, "net.ipv6.conf.default.accept_dad": 0,
                                 "net.ipv4.tcp_no_metrics_save": 1})
            if not self.limited:  # else each answers one probe a second
                self.sysctl(node, **{"net.ipv4.icmp_ratelimit": 0, "net.ipv6.icmp.ratelimit": 0})
            self.ip(node, "link set lo up")
        for number, line in enumerate(self.lines, 1):
            left, right = NODES[number - 1], NODES[number]
            ends = (left, f"to-{right}", 1), (right, f"to-{left}", 2)
            if line is None:
                self.ip(left, f"link add to-{right} type veth peer name to-{left} netns {self.path(right)}")
            for side, (node, name, host) in zip("ab", ends):
                if line is not None:
                    self.ip(node, f"link add {name} type veth peer name {side}{number} netns {self.path('line')}")
                    self.ip("line", f"link set {side}{number} up")
                self.run(node, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off")
                self.ip(node, f"addr add 10.20.{number}.{host}/24 dev {name}")
                self.ip(node, f"addr add fd20:{number}::{host}/64 dev {name} nodad")
                self.ip(node, f"link set {name} up")
        for at, node in enumerate(NODES):  # network i lies between nodes i-1 and i
            for number in (1, 2, 3):
                if number in (at, at + 1):
                    continue
                via = (at, 1) if number <= at else (at + 1, 2)
                self.ip(node, f"route add 10.20.{number}.0/24 via 10.20.{via[0]}.{via[1]}")
                self.ip(node, f"-6 route add fd20:{number}::/64 via fd20:{via[0]}::{via[1]}")
        for number, line in enumerate(self.lines, 1):
            if line is None:
                continue
            rate, *settings = line.split()
            words = [WAN, "run", "--a", f"a{number}", "--b", f"b{number}", "--control", self.control(number),
                     "--rate", rate]
            for setting in settings:
                name, value = setting.split("=")
                words += ["--" + name, value]
            self.start("line", *words)
        for number, line in enumerate(self.lines, 1):
            if line is not None:
                subprocess.run([WAN, "stats", "--control", self.control(number), "--wait", "20"], check=True,
                               capture_output=True)

    def control(self, number):
        return self.scratch / f"line{number}.sock"

    def set_line(self, number, *settings):
        subprocess.run([WAN, "set", "--control", self.control(number), *settings], check=True, capture_output=True)

    def path(self, node):
        return f"/proc/{os.getpid()}/fd/{self.spaces[node].fileno()}"

    def words_in(self, node, words):
        return ["nsenter", f"--net={self.path(node)}", *map(str, words)]

    def run(self, node, *words, check=True, seconds=120.0):
        done = subprocess.run(self.words_in(node, words), capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        if not check:
            return done
        if done.returncode != 0:
            raise AssertionError(f"in {node}: {' '.join(map(str, words))}: ended with {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, node, *words):
        process = Running(self, node, words)
        self.processes.append(process)
        return process

    def ip(self, node, words):
        self.run(node, "ip", *words.split())

    def sysctl(self, node, **values):
        self.run(node, "sysctl", "-q", "-w", *(f"{name}={value}" for name, value in values.items()))

    def inside(self, node):
        """Sockets that this thread makes in the block are in the node."""
        return namespaces.inside_open(self.spaces[node])
