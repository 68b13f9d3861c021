# SPDX-License-Identifier: Apache-2.0
"""A lab for one test: tools/lab under a name of its own, the processes a test starts in it, and sockets that live in
its nodes. The other modules use those sockets."""

import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tools" / "sites"))  # at the end: it has a lab.py, too

import namespaces  # noqa: E402

BUILD = pathlib.Path(os.environ.get("LONGHAUL_BUILD") or REPOSITORY / "build" / "release")
PYTHON = pathlib.Path(os.environ.get("LONGHAUL_PYTHON") or REPOSITORY / "build" / "python") / "bin" / "python"  # PyPI's packages

CLIENT, CLIENT6 = "10.10.1.2", "fd10:1::2"
BRANCH, BRANCH6 = "10.10.1.1", "fd10:1::1"  # on its LAN
BRANCH_WAN, BRANCH_WAN6 = "10.10.100.1", "fd10:100::1"
DATACENTER_WAN, DATACENTER_WAN6 = "10.10.100.2", "fd10:100::2"
BRANCH_SECOND, DATACENTER_SECOND = "10.10.101.1", "10.10.101.2"  # on the second line, of a lab that has one
DATACENTER, DATACENTER6 = "10.10.2.1", "fd10:2::1"  # on its LAN
SERVER, SERVER6 = "10.10.2.2", "fd10:2::2"


PATIENCE = 60.0  # seconds for what should come at once: nothing is measured by it, and a busy machine takes its time


def until(condition, seconds=PATIENCE, what="the condition"):
    """The first true value that `condition` gives; fails when there is none in time. For what cannot be awaited."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:g} s")
        time.sleep(0.01)
    return value


def traces_of(name):
    """Everything of a lab that still exists, anywhere on the host."""
    found = [path for folder in ("/run/netns", "/run/longhaul-lab", "/tmp")
             if os.path.isdir(folder) for path in os.listdir(folder) if name in path]
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if name.encode() in process.read_bytes():
                found.append(process.read_text())
    return found


def long_test(test):
    """Marks a test method that takes minutes: it runs when all tests are asked for (tests/e2e/run --long)."""
    test.is_long = True
    return test


def early(test):
    """Marks one of the longest test methods or classes: it begins first, so that all others do not wait for it at
    the end."""
    test.is_early = True
    return test


def alone(test):
    """Marks a test method or class that measures time, speed, processor or memory: nothing else runs meanwhile."""
    test.is_alone = True
    return test


class Process:
    """A program running in a node, with its output in a file. Ends with the lab at the latest."""

    def __init__(self, lab, node, words, name, clean_end):
        self.name = f"{name} in {node}"
        self.clean_end = clean_end
        self.log_file = lab.scratch / f"{next(lab.counter)}-{node}-{name}.log"
        with open(self.log_file, "wb") as log:
            self.popen = subprocess.Popen(lab.words_in(node, words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          cwd=lab.scratch, start_new_session=True)
        self.pid = self.popen.pid

    def log(self):
        return self.log_file.read_text(errors="replace")

    def lines_with(self, *words):
        """The lines of the log that contain all `words`, as soon as there is one. The daemon writes its log in a thread of
        its own, so what its counters or its commands show can be in the log a moment later."""
        def found():
            return [line for line in self.log().splitlines() if all(word in line for word in words)]

        return until(found, what=f"{self.name} logs {words}")

    def is_running(self):
        return self.popen.poll() is None

    def wait(self, seconds=PATIENCE):
        return self.popen.wait(seconds)

    def kill(self):
        """As a crash would end it. Returns when it is gone."""
        self.clean_end = False
        self.popen.kill()
        self.popen.wait(PATIENCE)

    def signal(self, number):
        self.popen.send_signal(number)

    def stop(self, seconds=PATIENCE):
        """Asks it to end. Fails if it does not, or, where a clean end was asked for, says anything but 0: a crash
        before this moment, or what a sanitizer found."""
        self.popen.terminate()
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(PATIENCE)
            raise AssertionError(f"{self.name} did not end within {seconds:g} s of SIGTERM\n{self.log()}") from None
        if self.clean_end and code != 0:
            raise AssertionError(f"{self.name} ended with {code}\n{self.log()}")
        return code


class Lab:
    """`Lab()` joins the sites by a bridge without limits; `Lab("51.84mbit,100,0.01", "queue=20ms")` by a line;
    `second="20mbit,90"` adds another line. Use as a context: `lab = self.enterContext(Lab())`. It goes away with this process, even after kill -9."""

    running = []  # for reports of a failure
    numbers = itertools.count(1)

    def __init__(self, line=None, *settings, second=None, options=(), prefix="e2e"):
        self.name = f"{prefix}-{os.getpid()}-{next(Lab.numbers)}"
        self.line = line
        self.second = second
        self.words = ["--with-pid", str(os.getpid()), *options, *(["--link", line] if line else ["--no-emulator"]),
                      *(["--second", second] if second else []), *settings]
        self.counter = itertools.count(1)
        self.processes = []

    def __enter__(self):
        self.command("up", *self.words)
        # For files; removed with the lab. Read from the lab's own file, because its status runs 20 commands in the nodes.
        self.scratch = pathlib.Path(pathlib.Path("/run/longhaul-lab", self.name, "scratch").read_text(encoding="utf-8"))
        Lab.running.append(self)
        return self

    def __exit__(self, *_):
        Lab.running.remove(self)
        errors = []
        for process in reversed(self.processes):
            try:
                process.stop()
            except AssertionError as error:
                errors.append(str(error))
        self.command("down")
        if errors:
            raise AssertionError("\n".join(errors))

    # -- tools/lab

    def command(self, *words):
        done = subprocess.run([REPOSITORY / "tools" / "lab", "--lab", self.name, *words], capture_output=True,
                              text=True, env=dict(os.environ, LONGHAUL_BUILD=str(BUILD)), timeout=2 * PATIENCE)
        if done.returncode != 0:
            raise AssertionError(f"tools/lab {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def link(self, line, *settings, which="line"):
        """Changes the line, or which="second"."""
        self.command("link", line, *settings, *(["--second"] if which == "second" else []))

    def lose(self, **ways):
        """The next packets of the line: lose(b_to_a=1)."""
        self.command("lose", *(f"{way.replace('_', '-')}={packets}" for way, packets in ways.items()))

    def status(self):
        return json.loads(self.command("status", "--json"))

    def stats(self, reset=False, which="line"):
        return json.loads(self.command("stats", *(["--reset"] if reset else []),
                                       *(["--second"] if which == "second" else [])))

    # -- in a node

    def words_in(self, node, words):
        return ["ip", "netns", "exec", f"{self.name}-{node}", *map(str, words)]

    def run(self, node, *words, seconds=60.0, check=True, cwd=None, text=None):
        """Runs a command to its end and gives its output (stdout); or, unchecked, all that subprocess.run gives."""
        done = subprocess.run(self.words_in(node, words), capture_output=True, text=True, timeout=seconds, input=text,
                              stdin=None if text is not None else subprocess.DEVNULL, cwd=cwd or self.scratch)
        if not check:
            return done
        if done.returncode != 0:
            raise AssertionError(f"in {node}: {' '.join(map(str, words))}: ended with {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, node, *words, name=None, clean_end=False):
        process = Process(self, node, words, name or pathlib.Path(words[0]).name, clean_end)
        self.processes.append(process)
        return process

    def inside(self, node):
        """Sockets that this thread makes in the block are in the node, and stay there after it."""
        return namespaces.inside(f"/run/netns/{self.name}-{node}")


def logs_of_running_labs(most_bytes=200_000):
    """Details for a person, shown with a failure."""
    for lab in Lab.running:
        for process in lab.processes:
            state = "running" if process.is_running() else f"ended with {process.popen.returncode}"
            yield f"--- {process.name} ({state})\n{process.log()[-most_bytes:]}"
