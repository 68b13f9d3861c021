# SPDX-License-Identifier: Apache-2.0
"""The pair of daemons in a lab: keys, configuration files, start, stop, crash, and the control API. What flows
through them is in the other modules."""

import contextlib
import copy
import http.client
import json
import re
import shutil
import unittest

from lab import BRANCH_SECOND, BRANCH_WAN, BUILD, DATACENTER_SECOND, DATACENTER_WAN, DATACENTER_WAN6, PATIENCE, Lab, until

PROGRAM = BUILD / "proxy" / "longhaul"
NETWORKS = {"branch": ["10.10.1.0/24", "fd10:1::/64"], "datacenter": ["10.10.2.0/24", "fd10:2::/64"]}
WAN_ADDRESS = {"branch": BRANCH_WAN, "datacenter": DATACENTER_WAN}
CONTROL_PORT = 7601  # on the loopback of each node
LINK_PORT = 7600


def to_toml(table, prefix=""):
    """A nested dict as TOML: dicts are tables, lists of dicts are arrays of tables, None leaves a key away."""

    def value_of(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {value_of(item)}" for key, item in value.items()) + " }"
        if isinstance(value, list):
            return "[" + ", ".join(map(value_of, value)) + "]"
        return json.dumps(value) if isinstance(value, str) else str(value)

    def is_tables(value):
        return isinstance(value, list) and value and all(isinstance(item, dict) for item in value)

    lines = [f"{key} = {value_of(value)}" for key, value in table.items()
             if value is not None and not isinstance(value, dict) and not is_tables(value)]
    for key, value in table.items():
        if isinstance(value, dict) and prefix == "":
            lines += ["", f"[{key}]", to_toml(value, key)]
        elif isinstance(value, dict):
            lines.append(f"{key} = {value_of(value)}")
        elif is_tables(value):
            for item in value:
                name = f"{prefix}.{key}" if prefix else key
                lines += ["", f"[[{name}]]", to_toml(item, name)]
    return "\n".join(lines)


def merge(base, changes):
    """Tables are merged, everything else is replaced, None takes a key away."""
    for key, value in (changes or {}).items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = copy.deepcopy(value)
    return base


class Site:
    """One proxy. `settings` is its configuration as a dict; change it and start() again."""

    def __init__(self, lab, node, name=None):
        self.lab = lab
        self.node = node
        self.name = name or node
        self.folder = lab.scratch / f"site-{self.name}"
        self.folder.mkdir()
        self.file = self.folder / f"{self.name}.toml"
        self.fingerprint = self.keygen(self.name)
        self.settings = {}
        self.hosts = {}  # names that this daemon alone knows, and their addresses
        self.environment = {}  # of its daemon, on top of the tests' own
        self.small_disk = None  # bytes of a disk of its own for its dictionary, empty at each start
        self.disk = None  # one for its state whose power can fail: promises/disk.py
        self.process = None

    def keygen(self, name):
        """Makes NAME.crt and NAME.key in the site's folder and gives the fingerprint."""
        printed = self.lab.run(self.node, PROGRAM, "keygen", name, cwd=self.folder)
        return re.search(r"sha256:[0-9a-f]{64}", printed)[0]

    def write(self):
        self.file.write_text(to_toml(self.settings) + "\n")

    # -- its life

    def start(self, seconds=PATIENCE):
        """Starts the daemon and returns when its control API answers."""
        self.start_anyhow()
        until(self._answers, seconds, f"the control API of {self.name} answers")
        return self

    def start_anyhow(self):
        """Starts the daemon, which may refuse to run."""
        self.write()
        words = [PROGRAM, "run", self.file]
        if self.environment:
            words = ["env", *(f"{name}={value}" for name, value in self.environment.items()), *words]
        if self.hosts:
            names = self.folder / "hosts"
            names.write_text("".join(f"{address} {name}\n" for name, address in self.hosts.items()))
            # What runs inside a namespace has mounts of its own, so the host's file stays as it is.
            words = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', names, *words]
        if self.small_disk:
            words = ["sh", "-c", f'mkdir -p "$0" && mount -t tmpfs -o size={self.small_disk} tmpfs "$0" && exec "$@"',
                     self.folder / "state/dictionary", *words]
        if self.disk:
            words = self.disk.mounted(self.folder / "state", words)
        self.process = self.lab.start(self.node, *words, name=f"longhaul-{self.name}", clean_end=True)
        return self.process

    def _answers(self):
        if not self.process.is_running():
            raise AssertionError(f"{self.process.name} ended with {self.process.popen.returncode} at its start\n"
                                 f"{self.process.log()}")
        try:
            return self.status()
        except OSError:
            return None

    def stop(self):
        return self.process.stop()

    def kill(self):
        """kill -9."""
        self.process.kill()

    # -- the control API

    def control_port(self):
        """Another than the usual one where both sites are in one namespace."""
        return int(self.settings.get("control", {}).get("listen", f":{CONTROL_PORT}").rpartition(":")[2])

    def ask(self, method, path, body=None):
        """The answer's status and JSON. Shows the token as soon as there is one."""
        token_file = self.folder / "state" / "control.token"
        port = self.control_port()
        headers = {"Host": f"127.0.0.1:{port}"}
        if method != "GET" and token_file.exists():
            headers["Authorization"] = f"Bearer {token_file.read_text().strip()}"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with self.lab.inside(self.node):
            connection.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, text.decode() if path == "/metrics" else json.loads(text or b"null")
        finally:
            connection.close()

    def get(self, path):
        status, answer = self.ask("GET", path)
        if status != 200:
            raise AssertionError(f"{self.name}: GET {path}: {status} {answer}")
        return answer

    def status(self):
        return self.get("/v1/status")

    def metric(self, name):
        """Of those without labels."""
        return next(float(line.split()[1]) for line in self.get("/metrics").splitlines() if line.startswith(f"{name} "))

    def reasons(self):
        """How often flows were given each reason since the daemon's start; only those that occurred."""
        return {code: count for code, count in self.status()["flows"]["by_reason"].items() if count}

    def resident_bytes(self):
        """Memory of the daemon's process, as the kernel counts it."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])

    def rules(self):
        """This node's packet rules, from the kernel."""
        return self.lab.run(self.node, "nft", "list", "ruleset")

    def flows(self, query=""):
        return self.get("/v1/flows" + query)["flows"]

    def link(self):
        """The state of the link to its only peer."""
        return self.status()["links"][0]

    def set(self, **features):
        """Changes features of the running daemon: set(compression=False, preset="T")."""
        status, answer = self.ask("PATCH", "/v1/features", features)
        if status != 200:
            raise AssertionError(f"{self.name}: {features}: {status} {answer}")
        return answer["features"]

    def wait_link(self, state="up", seconds=PATIENCE):
        return until(lambda: (link := self.link())["state"] == state and link, seconds,
                     f"the link of {self.name} is {state}")

    def wait_flows(self, count=0, seconds=PATIENCE):
        until(lambda: self.status()["flows"]["live"] == count, seconds, f"{self.name} has {count} flows")

    def longhaul(self, command, *words, check=True, seconds=PATIENCE):
        """The command line, in the site's node and folder."""
        steers = command not in ("run", "check", "keygen", "fail-closed", "support")
        done = self.lab.run(self.node, PROGRAM, command, *words, *(["--state-dir", "state"] if steers else []),
                            check=check, seconds=seconds, cwd=self.folder)
        # Lines of 100 columns that continue another are put together again.
        continued = r"\n(?: {8}| {10}| {12})(?=\S)" if command == "check" else r"\n {12}(?=\S)"
        if check:
            return re.sub(continued, " ", done)
        done.stdout = re.sub(continued, " ", done.stdout)
        return done


class Pair:
    """Both sites, transparent in both directions, each pinning the other; the branch dials. `both`, `branch` and
    `datacenter` are changes of the configuration: Pair(lab, both={"features": {"compression": False}})."""

    def __init__(self, lab, both=None, branch=None, datacenter=None):
        self.branch = Site(lab, "branch")
        self.datacenter = Site(lab, "datacenter")
        self.sites = (self.branch, self.datacenter)
        for site, peer, changes in ((self.branch, self.datacenter, branch), (self.datacenter, self.branch, datacenter)):
            site.settings = merge(merge(configuration(site, peer), both), changes)

    def start(self):
        """Returns when the link is up on both sides."""
        for site in (self.datacenter, self.branch):
            site.start()
        return self.wait_link()

    def wait_link(self, state="up", seconds=PATIENCE):
        for site in self.sites:
            site.wait_link(state, seconds)
        return self

    def wait_flows(self, count=0, seconds=PATIENCE):
        for site in self.sites:
            site.wait_flows(count, seconds)
        return self

    def stop(self):
        for site in self.sites:
            site.stop()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        for site in self.sites:  # one that a test has killed or stopped itself stays as it is
            if site.process and site.process.is_running():
                site.stop()


def use_two_paths(pair, policy, rate="25mbit"):
    """Before its start: the paths `four` and `six`, by IPv4 and by IPv6 over the lab's one line."""
    branch, datacenter = (site.settings["peer"][0] for site in pair.sites)
    pair.datacenter.settings["link"]["listen"] = f"[::]:{LINK_PORT}"
    del branch["address"]
    branch["path"] = [{"name": "four", "address": f"{DATACENTER_WAN}:{LINK_PORT}", "local": BRANCH_WAN, "rate": rate},
                      {"name": "six", "address": f"[{DATACENTER_WAN6}]:{LINK_PORT}", "local": "wan0", "rate": rate}]
    datacenter["path"] = [{"name": name, "rate": rate} for name in ("four", "six")]
    for peer in (branch, datacenter):
        peer["policy"] = policy
    return pair


def use_two_lines(pair, policy, rates=(None, None)):
    """Before its start, in a lab with a second line: the paths `first` and `second`, one on each line. Rates that are
    not given are measured."""
    branch, datacenter = (site.settings["peer"][0] for site in pair.sites)
    del branch["address"]
    ends = (("first", BRANCH_WAN, DATACENTER_WAN), ("second", BRANCH_SECOND, DATACENTER_SECOND))
    branch["path"] = [{"name": name, "address": f"{there}:{LINK_PORT}", "local": here, "rate": rate}
                      for (name, here, there), rate in zip(ends, rates)]
    datacenter["path"] = [{"name": name, "rate": rate} for (name, *_), rate in zip(ends, rates)]
    for peer in (branch, datacenter):
        peer["policy"] = policy
    return pair


def path_roles(site):
    return {path["name"]: path["role"] for path in site.link()["paths"]}


def wait_paths(pair):
    for site in pair.sites:
        until(lambda: len(path_roles(site)) == 2 and "none" not in path_roles(site).values(),
              what=f"both paths of {site.name} work")


class PairTest(unittest.TestCase):
    """One lab and one pair for all tests of a class: for those that leave both as they found them."""

    line = ()  # what Lab() takes
    both = branch_has = datacenter_has = None  # what Pair() takes

    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab(*cls.line))
        cls.pair = Pair(cls.lab, cls.both, cls.branch_has, cls.datacenter_has)
        cls.branch, cls.datacenter = cls.pair.sites
        cls.prepare()
        cls.enterClassContext(cls.pair)

    @classmethod
    def prepare(cls):
        """Before the daemons start."""

    def reasons_given(self, since):
        """What flows of the branch were given after `since`, an earlier answer of branch.reasons()."""
        return {code: count - since.get(code, 0) for code, count in self.branch.reasons().items()
                if count != since.get(code, 0)}

    def reasons_of(self, act):
        """What flows of the branch were given while `act` ran: again, if the link was silent for a moment on a busy machine, so
        that one bypassed it."""
        for _ in range(4):
            self.pair.wait_link()
            before = self.branch.reasons()
            act()
            given = self.reasons_given(before)
            if not given.keys() & {"link_silent", "link_down"}:
                break
        return given


@contextlib.contextmanager
def link_cut_off(lab, verdict):
    """Packets of the link alone, TCP and UDP, are dropped or refused in the branch; everything else passes."""
    rules = f"""table inet cut {{
      chain out {{ type filter hook output priority 0; udp dport {LINK_PORT} drop; tcp dport {LINK_PORT} {verdict}; }}
      chain in {{ type filter hook input priority 0; iifname != "lo" meta l4proto {{ tcp, udp }} th sport {LINK_PORT} drop; }}
    }}"""
    lab.run("branch", "nft", "-f", "-", text=rules)
    try:
        yield
    finally:
        lab.run("branch", "nft", "delete", "table", "inet", "cut")


def configuration(site, peer):
    shutil.rmtree(site.folder / "state", ignore_errors=True)
    (site.folder / "state").mkdir()
    return {
        "site": site.name,
        "state_dir": str(site.folder / "state"),
        "identity": {"certificate": f"{site.name}.crt", "private_key": f"{site.name}.key"},
        "link": {"listen": f"0.0.0.0:{LINK_PORT}" if site.node == "datacenter" else None,
                 "allow": NETWORKS[site.node]},
        "peer": [{"name": peer.name, "fingerprint": peer.fingerprint, "networks": NETWORKS[peer.node],
                  "address": f"{WAN_ADDRESS[peer.node]}:{LINK_PORT}" if site.node == "branch" else None}],
        "intercept": {"mode": "tproxy", "interfaces": ["lan0"]},
        "log": {"level": "debug"},
        "process": {"unknown_calls": "kill"},  # a call that the filter's list lacks ends the test
    }
