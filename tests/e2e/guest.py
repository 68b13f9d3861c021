# SPDX-License-Identifier: Apache-2.0
"""A Linux kernel of its own as a client in a node's network: an emulated machine that sees the host's files, read
only, and runs scripts. What it boots from is made by tests/guest/setup."""

import json
import os
import socket

from lab import REPOSITORY, until

FOLDER = REPOSITORY / "build" / "guest"
MEMORY_MIB = 1536
HERE = REPOSITORY / "tests" / "guest"


class ScriptFailed(AssertionError):
    def __init__(self, script, code, output):
        super().__init__(f"in the guest: {script.strip()}\nended with {code}\n{output}")
        self.code = code
        self.output = output


class Guest:
    """Up when entered: `guest = self.enterContext(Guest(lab))`. It has an address in the LAN of its node, whose kernel
    answers for it there, so that the node's router sees one more host."""

    def __init__(self, lab, node="client", address="10.10.1.3", gateway="10.10.1.1", interface="eth0"):
        self.lab, self.node = lab, node
        self.address, self.gateway, self.interface = address, gateway, interface
        self.tap = f"guest{address.rpartition('.')[2]}"
        self.process = self.socket = self.lines = self.kernel = None

    def __enter__(self):
        if not (FOLDER / "made-by").exists():
            raise AssertionError("there is no guest: run tools/setup")
        self._connect_to_lan()
        number = next(self.lab.counter)
        # A socket's path is short by law, and the lab's folder may be long.
        agent, console = self.lab.scratch / f"g{number}", self.lab.scratch / f"guest-{number}.console"
        self.process = self.lab.start(
            self.node, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", MEMORY_MIB, "-smp", 1,
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", FOLDER / "vmlinuz", "-initrd", FOLDER / "initrd.gz", "-append", self._command_line(),
            "-serial", f"file:{console}",
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-rng-pci", "-netdev", f"tap,id=lan,ifname={self.tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=lan,mac=52:54:00:77:00:{int(self.address.rpartition('.')[2]):02x}",
            "-chardev", f"socket,id=agent,path={agent},server=on,wait=off", "-device", "virtio-serial-pci",
            "-device", "virtserialport,chardev=agent,name=agent", name="guest")
        self.console = console
        self.socket = socket.socket(socket.AF_UNIX)
        until(lambda: self._connects(agent), what="the guest's machine starts")
        self.lines = self.socket.makefile("rb")
        _, self.kernel = self._answer(600)  # emulated: minutes on a busy host
        return self

    def __exit__(self, *_):
        self.process.kill()  # nothing of it is kept
        self.lines.close()
        self.socket.close()
        self.lab.run(self.node, "ip", "link", "delete", self.tap)

    def _connects(self, agent):
        if not self.process.is_running():
            raise AssertionError(f"the guest's machine does not start:\n{self.process.log()}")
        try:
            self.socket.connect(os.fspath(agent))
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def _command_line(self):
        # no_timer_check: on a busy machine the emulated timer is late, and Linux would take it for a broken one.
        return " ".join(("console=ttyS0 quiet loglevel=4 mitigations=off panic=-1 no_timer_check random.trust_cpu=on",
                         f"guest_address={self.address}/24", f"guest_gateway={self.gateway}",
                         f"guest_modules={FOLDER}/lib/modules", f"guest_agent={HERE / 'agent'}"))

    def _connect_to_lan(self):
        def run(*words):
            self.lab.run(self.node, *words)

        run("ip", "tuntap", "add", "dev", self.tap, "mode", "tap")
        run("ip", "link", "set", self.tap, "up")
        run("ip", "route", "add", f"{self.address}/32", "dev", self.tap)
        run("sysctl", "-qw", "net.ipv4.ip_forward=1", *(
            setting for name in (self.tap, self.interface)
            for setting in (f"net.ipv4.conf.{name}.proxy_arp=1", f"net.ipv4.neigh.{name}.proxy_delay=0")))

    def _answer(self, seconds):
        self.socket.settimeout(seconds)
        try:
            line = self.lines.readline()
        except TimeoutError:
            line = b""
        if not line:
            raise AssertionError(f"the guest said nothing for {seconds} s; its console:\n{self.console_text()}")
        return json.loads(line)

    def _ask(self, kind, what, seconds):
        self.socket.sendall(json.dumps((kind, what)).encode() + b"\n")
        return self._answer(seconds)

    def console_text(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def run(self, script, seconds=60, check=True):
        """Runs a script in the guest's bash, as root, and gives what it printed; unchecked, the exit code and that.
        After one that did not end in time nothing more can be run."""
        code, output = self._ask("script", script, seconds)
        if not check:
            return code, output
        if code != 0:
            raise ScriptFailed(script, code, output)
        return output

    def python(self, *words, seconds=60):
        """Runs a Python program of the host with arguments and gives what it printed."""
        code, output = self._ask("program", [str(word) for word in words], seconds)
        if code != 0:
            raise ScriptFailed(" ".join(map(str, words)), code, output)
        return output
