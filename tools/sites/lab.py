# SPDX-License-Identifier: Apache-2.0
"""The life of a lab: made, found again by its name, taken down whatever was left of it. The network itself is in
network.py; what runs at the sites is the caller's."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from failure import Failure, run
from line import parse_line
from network import Network
from processes import end_processes, started, wait_for_end

RUN = pathlib.Path("/run/longhaul-lab")
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Lab:
    def __init__(self, name):
        if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,40}", name):
            raise Failure(f"'{name}' is not a valid name of a lab: use at most 41 letters, digits, - and _")
        self.name = name
        self.network = Network(name)
        self.folder = RUN / name
        self.state_file = self.folder / "state.json"
        self.sockets = {"line": self.folder / "wan.sock", "second": self.folder / "wan2.sock"}  # the emulators'
        self.keeper_file = self.folder / "keeper"  # holds its pid, and when it was started
        self.scratch_file = self.folder / "scratch"  # holds a path: the files may be larger than /run

    def state(self):
        try:
            return json.loads(self.state_file.read_text())
        except FileNotFoundError:
            raise Failure(f"there is no lab '{self.name}'; create it with tools/lab up") from None

    def _save(self, state):
        partial = self.folder / "state.partial"
        partial.write_text(json.dumps(state, indent=1))
        partial.rename(self.state_file)

    @contextlib.contextmanager
    def _locked(self):
        """One change at a time; the kernel drops the lock of a process that dies."""
        path = RUN / f".{self.name}.lock"
        file = None
        while not file:
            RUN.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # a lab's end took folder or file away, just now
                file = open(path, "w", encoding="ascii")
                fcntl.flock(file, fcntl.LOCK_EX)
                if not path.exists() or not path.samefile(f"/proc/self/fd/{file.fileno()}"):
                    file = file.close()
        with file:
            try:
                yield
            finally:
                if not self.folder.exists():
                    path.unlink()
                    with contextlib.suppress(OSError):  # other labs are there
                        RUN.rmdir()

    # -- up

    def up(self, options):
        lines = {"line": parse_line(options.link, options.setting)}
        if options.second:
            lines["second"] = parse_line(options.second)
            if options.no_emulator:
                raise Failure("a second line needs the emulator: omit --no-emulator")
        emulator = None if options.no_emulator else find_emulator()
        known = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
        for choice in (options.cc, options.proxy_cc):
            if choice not in known:
                raise Failure(f"this kernel has no congestion control '{choice}', only {', '.join(known)}")
        with self._locked():
            if self.state_file.exists() and not options.replace and self.network.pids():
                raise Failure(f"lab '{self.name}' is already up, with processes in it: tools/lab down first, or "
                              "up --replace, or another name with LAB=NAME")
            self._remove()
            self.folder.mkdir(parents=True)
            try:
                # The keeper comes first: from here on nothing is left behind, whatever kills this process.
                if options.with_pid:
                    self.keeper_file.write_text(self._start_keeper(options.with_pid))
                scratch = tempfile.mkdtemp(prefix=f"longhaul-{self.name}-")
                os.chmod(scratch, 0o711)  # daemons run as their own user, which must be able to traverse it
                self.scratch_file.write_text(scratch)
                self.network.make(options.cc, options.proxy_cc, options.buffers, options.mtu,
                                  bridge=options.no_emulator, second="second" in lines)
                state = {**lines, "emulator": emulator is not None, "with_pid": options.with_pid, "scratch": scratch}
                if emulator:
                    state["emulator_pids"] = [self._start_emulator(emulator, which, number, line, options.seed + number)
                                              for number, (which, line) in enumerate(lines.items())]
                self._save(state)
            except BaseException:
                self._remove()
                raise

    def _start(self, log, *words):
        with open(self.folder / log, "wb") as file:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd="/",
                                    start_new_session=True).pid

    def _start_emulator(self, program, which, number, line, seed):
        settings = [word for name, value in line.items() for word in (f"--{name}", value)]
        log, socket = f"wan{number}.log", str(self.sockets[which])
        pid = self._start(log, *self.network.inside("wan", program, "run", "--a", f"branch{number}", "--b",
                                                    f"datacenter{number}", *settings, "--seed", str(seed),
                                                    "--control", socket))
        deadline = time.monotonic() + 10
        while run(program, "stats", "--control", socket, check=False) == "":
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) or time.monotonic() > deadline:
                raise Failure(f"the emulator did not start: {(self.folder / log).read_text().strip()}")
            time.sleep(0.01)
        return pid

    # -- the keeper: a process that takes the lab down when another one ends

    def _start_keeper(self, pid):
        try:
            os.close(os.pidfd_open(pid))
        except ProcessLookupError:
            raise Failure(f"there is no process {pid}") from None
        generation = self._generation()
        with open(self.folder / "keeper.log", "wb") as log:
            log_fd = os.dup(log.fileno())
        keeper = os.fork()
        if keeper == 0:
            self._keep(pid, generation, log_fd)
        os.close(log_fd)
        return f"{keeper} {started(keeper)}"

    def _generation(self):
        """Tells this lab from a later one of the same name."""
        return self.folder.stat().st_ino

    def _keep(self, pid, generation, log_fd):
        """What the keeper does, in a process of its own that shares neither terminal nor lock with the one that started it."""
        try:
            os.setsid()
            os.chdir("/")
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            os.dup2(log_fd, 1)
            os.dup2(log_fd, 2)
            for fd in map(int, os.listdir("/proc/self/fd")):
                if fd > 2:
                    with contextlib.suppress(OSError):  # the listing's own
                        os.close(fd)
            with contextlib.suppress(ProcessLookupError):  # already gone: so is the reason for the lab
                wait_for_end(os.pidfd_open(pid))
            with self._locked():
                if self.folder.exists() and self._generation() == generation:
                    self._remove()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)

    def _keeper(self):
        """Its pid, if the process of that number still is the one that the file was written for."""
        with contextlib.suppress(OSError, ValueError):
            pid, its_start = map(int, self.keeper_file.read_text().split())
            if pid != os.getpid() and started(pid) == its_start:
                return {pid}
        return set()

    # -- down

    def down(self):
        with self._locked():
            self._remove()

    def _remove(self):
        """Everything of this lab that is there; a lab whose making was cut off has less."""
        end_processes(self._keeper())
        while found := self.network.pids() - {os.getpid()}:  # again for what was started meanwhile
            end_processes(found)
        self.network.remove()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.scratch_file.read_text(), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- in use

    def execute(self, node, words):
        self.state()
        command = self.network.inside(node, *words)
        os.execvp(command[0], command)

    # `which`: "line" or "second"

    def link(self, which, text, more):
        line = parse_line(text, more)
        with self._locked():
            state = self.state()
            self._ask_emulator(state, which, "set", *(f"{name}={value}" for name, value in line.items()))
            self._save(state | {which: line})

    def lose(self, which, words):
        self._ask_emulator(self.state(), which, "lose", *words)

    def stats(self, which, reset):
        return self._ask_emulator(self.state(), which, "stats", *(["--reset"] if reset else []))

    def _ask_emulator(self, state, which, command, *words):
        if not state["emulator"]:
            raise Failure("this lab was created with --no-emulator: its line has no settings and no counters")
        if which not in state:
            raise Failure("this lab has one line: create it with up --second RATE,RTT[,LOSS]")
        return run(find_emulator(), command, "--control", str(self.sockets[which]), *words)

    def status(self):
        state = self.state()
        return {"lab": self.name, "scratch": state["scratch"], "with_pid": state["with_pid"],
                "line": state["line"] if state["emulator"] else None, "second": state.get("second"),
                "emulator_running": (self.network.pids() >= set(state["emulator_pids"])) if state["emulator"] else None,
                "nodes": {node: self.network.facts(node) for node in self.network.nodes()}}


def find_emulator():
    build = pathlib.Path(os.environ.get("LONGHAUL_BUILD") or ROOT / "build" / "release")
    program = build / "tools" / "wan" / "longhaul-wan"
    if not program.exists():
        raise Failure(f"{program} does not exist: build it (cmake --preset release && cmake --build --preset release), "
                      "or use --no-emulator for a line without limits")
    return str(program)
