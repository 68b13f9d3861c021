# SPDX-License-Identifier: Apache-2.0
"""A place as it is measured in: the lab with its line, the servers, the guest where one is wanted, and the pair of
proxies, in and out of it and with this or that feature."""

import contextlib

import smb
import tcp
import usage
import web
from guest import Guest
from lab import SERVER, Lab, until
from pair import Pair
from scenario import IN_GUESTS

TUNED = ["--cc", "bbr", "--buffers", "64m"]
WARM_UP_BYTES = 1_000_000
# What the daemon is told for each, where it is no preset: the carrier alone, so that only it is compared.
CARRIERS = {"carrier-udp": "udp", "carrier-tcp": "tcp"}


def burst_settings(loss, length):
    """The same share of packets lost in bursts of a mean length: the two chances of Gilbert and Elliott's chain."""
    return f"burst-loss={loss / (1 - loss) / length:.6g},{1 / length:.6g}"


def ends(place):
    """How the hosts at the line's ends are set, as tools/lab takes it."""
    words = list(TUNED if place.tuned else ["--cc", "cubic"])
    if place.buffers:
        words += ["--buffers", str(place.buffers)]  # the last one counts
    if place.mtu != 1500:
        words += ["--mtu", str(place.mtu)]
    return words


class Rig:
    def __init__(self, place, seed, told_rate, needs):
        self.place = place
        self.told_rate = told_rate
        self.needs = needs  # of "http", "smb", "kernel", "sctp", "guest-tcp", "guest-sctp"
        bursts = place.loss and place.burst_length > 1
        loss = "" if bursts or not place.loss else f",{place.loss:g}"
        self.lab = Lab(f"{place.rate},{place.round_trip_ms:g}{loss}",
                       *([burst_settings(place.loss, place.burst_length)] if bursts else []),
                       *([f"queue={place.queue}"] if place.queue != "auto" else []),
                       options=["--seed", str(seed), *ends(place)], prefix="bench")
        self.features = None  # the bare line
        self.stack = contextlib.ExitStack()
        self.pair = self.nginx = self.smbd = self.guest = self.server_guest = None

    def __enter__(self):
        with self.stack:
            self.stack.enter_context(self.lab)
            if "http" in self.needs:
                self.nginx = web.Nginx(self.lab)
            if "smb" in self.needs:
                self.smbd = smb.Smbd(self.lab)
            in_guests = self.needs & set(IN_GUESTS)
            if "kernel" in self.needs or in_guests:
                self.guest = self.stack.enter_context(Guest(self.lab))
            if in_guests:
                self.server_guest = self.stack.enter_context(
                    Guest(self.lab, node="server", address="10.10.2.3", gateway="10.10.2.1"))
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self.stack.__exit__(*exception)

    def conditions(self):
        """As the kernel has them: what a reader of the figures has to know."""
        status = self.lab.status()
        nodes = status["nodes"]
        return {"line": status["line"], "ends": {name: nodes["client"][name]
                                                 for name in ("congestion_control", "tcp_rmem", "tcp_wmem")},
                "proxies": {name: nodes["branch"][name] for name in ("congestion_control", "tcp_rmem", "tcp_wmem")}}

    # -- the pair

    @property
    def is_running(self):
        return bool(self.pair) and self.features is not None

    def switch(self, features):
        """None: the proxies are gone, and packets are only routed. Else they run with a preset."""
        if features == self.features:
            return
        if features is None:
            self.pair.stop()
            self.features = None
            return
        if not self.is_running:
            self._start()
        self.features = features
        self._set()

    def _start(self):
        if not self.pair:
            self.pair = Pair(self.lab, both={"log": {"level": "warn"}})
            if self.told_rate:
                for site in self.pair.sites:
                    site.settings["peer"][0]["rate"] = self.place.rate
        self.pair.start()
        self.features = "A+F"
        with contextlib.suppress(AssertionError):  # where UDP does not pay it stays with TCP; the sample says which
            until(lambda: all(site.link()["carrier"] == "udp" for site in self.pair.sites),
                  2 if self.place.round_trip_ms < 2 else 10)
        self._warm_up()

    def _set(self):
        if self.features not in CARRIERS:
            self.pair.branch.set(preset=self.features)
            return
        wanted = CARRIERS[self.features]
        self.pair.branch.set(preset="F", transport=wanted)
        until(lambda: all(site.link()["carrier"] == wanted for site in self.pair.sites), 30, f"the link sends over {wanted}")

    def _warm_up(self):
        """A link that stands idle since its start has not found its pace; users do not meet it like that."""
        size = int(min(WARM_UP_BYTES, self.place.bits_per_second / 8))  # a second of a slow line
        with tcp.Server(self.lab, tcp.sender(size, 1)) as server:
            got = tcp.download(self.lab, SERVER, server.port)
        if got.size != size:
            raise AssertionError(f"warming up moved {got.size} of {size} bytes")

    def clear_caches(self):
        for site in self.pair.sites:
            site.longhaul("clear-cache", seconds=120)

    def restart(self):
        """The daemons end and come back; their disk dictionaries stay."""
        features = self.features
        self.pair.stop()
        self._start()
        self.features = features
        self._set()

    def prime(self, port):
        """Without fast_connect a server's first flow is only watched: it has to be known to answer."""
        if self.is_running:
            tcp.connect(self.lab, SERVER, port).close()
            self.wait_quiet()

    def wait_quiet(self):
        if self.is_running:
            self.pair.wait_flows(0, 60)

    # -- what it costs

    def pids(self):
        return {site.node: site.process.pid for site in self.pair.sites} if self.is_running else {}

    def costs(self):
        return Costs(self.pids())

    def reasons(self):
        return self.pair.branch.reasons() if self.is_running else {}

    def carrier(self):
        return self.pair.branch.link()["carrier"] if self.is_running else None


class Costs:
    """CPU seconds and peak memory of the proxies while something is measured."""

    def __init__(self, pids):
        self.pids = pids
        for pid in pids.values():
            usage.forget_peak(pid)
        self.before = {node: usage.cpu_seconds(pid) for node, pid in pids.items()}

    def cpu_seconds(self):
        return {node: round(usage.cpu_seconds(pid) - self.before[node], 4) for node, pid in self.pids.items()}

    def peak_bytes(self):
        return {node: usage.peak_bytes(pid) for node, pid in self.pids.items()}
