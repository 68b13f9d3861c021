# SPDX-License-Identifier: Apache-2.0
"""docs/quick-start.md typed as it is written: two clean systems with the packages become a pair, carry an SMB client and a
browser, explain a flow, are upgraded, and are removed without a trace."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import smb
import smb_client
import smb_work
import tcp
import web
from browser import PROGRAM as BROWSER
from browser import Browser
from lab import BUILD, CLIENT, REPOSITORY, SERVER, Lab, long_test, until
from systemd import System

GUIDE = REPOSITORY / "docs/quick-start.md"
PLACES = {"the branch": ("branch",), "the datacenter": ("datacenter",), "both hosts": ("datacenter", "branch"),
          "a build host": ("build",)}
PACKAGES = "build/packages"  # as the guide names it


def steps():
    """{section: [(host, command)]}: the lines of the guide's numbered sections that are to be typed."""
    found = {}
    for heading, text in re.findall(r"^## [1-9]\. (.+?)$(.*?)(?=^## )", GUIDE.read_text(), re.M | re.S):
        lines = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)).splitlines()
        found[heading] = [(host, command.strip()) for command, place in
                          (re.fullmatch(r"(.+?)# on ([a-z ]+).*", line).groups() for line in lines)
                          for host in PLACES[place.strip()]]
    return found


def sh(*words, **environment):
    done = subprocess.run(list(map(str, words)), text=True, capture_output=True, check=False, timeout=540,
                          env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")


class QuickStart(unittest.TestCase):
    def make_systems(self):
        """A clean Debian for each host, with the packages of the guide's first step on its disk."""
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        self.assertEqual(self.steps["Install"].pop(0), ("build", "tools/package deb"))
        sh(REPOSITORY / "tools/package", "--out", self.folder / "debs", "deb", LONGHAUL_BUILD=str(BUILD),
           LONGHAUL_DEB_COMPRESSION="none", DEB_BUILD_OPTIONS="nostrip")
        clean = self.folder / "clean"
        # As Debian's installer makes a system: netbase and what apt recommends are there, and so stay.
        sh("mmdebstrap", "--variant=minbase", "--include=systemd,systemd-sysv,iproute2,procps,ca-certificates,netbase", "bookworm", clean)
        (clean / "root" / PACKAGES).mkdir(parents=True)
        for deb in (self.folder / "debs").glob("*.deb"):
            sh("cp", deb, clean / "root" / PACKAGES)
        # The person's answer; all else is apt's default, with what the packages recommend.
        (clean / "etc/apt/apt.conf.d/90yes").write_text('APT::Get::Assume-Yes "true";\n')
        # A sanitizer cannot look for leaks in a process that may not be traced.
        (clean / "etc/systemd/system.conf.d").mkdir()
        (clean / "etc/systemd/system.conf.d/sanitizer.conf").write_text(
            "[Manager]\nDefaultEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
        self.before = self.files(clean)
        self.users_before = self.users_and_packages(clean)
        self.install(clean, self.steps["Install"][0][1])
        self.roots = {"branch": self.folder / "branch", "datacenter": self.folder / "datacenter"}
        sh("cp", "-a", clean, self.roots["branch"])
        clean.rename(self.roots["datacenter"])

    def files(self, root):
        return {str(path.relative_to(root)) for top in ("etc", "var/lib", "usr", "opt", "root") for path in (root / top).rglob("*")}

    def users_and_packages(self, root):
        """All but what systemd makes at the first boot."""
        users = {line.split(":")[0] for line in (root / "etc/passwd").read_text().splitlines()}
        installed = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${db:Status-Status}\n"],
                                   text=True, capture_output=True, check=True).stdout
        return {user for user in users if not user.startswith("systemd-")}, set(installed.splitlines())

    def install(self, root, command):
        """Before the system boots: the lab that it will be in reaches no package mirror."""
        sh("unshare", "--mount", "--pid", "--fork", "--root", root, "--mount-proc", "sh", "-c",
           f"apt-get update && cd /root && {command}", DEBIAN_FRONTEND="noninteractive")

    def boot(self, host):
        network = f"/run/netns/{self.lab.name}-{host}"
        log = self.enterContext(open(self.folder / f"{host}.log", "w", encoding="utf-8"))
        return self.enterContext(System(self.roots[host], log, network))

    def type(self, host, command):
        """What it printed. `…` stands for what `longhaul init` has printed last."""
        began = time.monotonic()
        printed = self.systems[host].run("env", "ASAN_OPTIONS=detect_leaks=0", "DEBIAN_FRONTEND=noninteractive", "sh", "-c",
                                         f"cd /root && {command.replace('…', self.line)}").stdout
        print(f"{time.monotonic() - began:5.1f} s  {host}: {command}", flush=True)
        if line := re.search(r"^  longhaul init (.*)$", printed, re.M):
            self.line = line[1]
        return printed

    def type_all(self, section):
        return [self.type(*step) for step in self.steps[section]]

    def link_is_up(self, host):
        done = self.systems[host].run("longhaul", "status", "--json", check=False)
        return done.returncode == 0 and json.loads(done.stdout)["links"][0]["state"] == "up"

    def wait_link(self):
        for host in self.systems:
            try:
                until(lambda host=host: self.link_is_up(host), what=f"the link is up at the {host}")
            except AssertionError:
                print(self.systems[host].journal("longhaul"))
                raise

    def traces(self, host):
        """Packet rules, routing rules and processes; nft(8) of this host, for the guide's host has none any more."""
        inside = ("nsenter", "-t", self.systems[host].first_process(), "--net")
        asked = [subprocess.run([*inside, *words], text=True, capture_output=True, check=True).stdout
                 for words in (("nft", "list", "ruleset"), ("ip", "rule"), ("ip", "-6", "rule"))]
        return [asked[0].strip(), *(line for text in asked[1:] for line in text.splitlines() if "fwmark" in line),
                *self.systems[host].run("sh", "-c", "grep -lx longhaul /proc/[0-9]*/comm", check=False).stdout.split()]

    @long_test
    def test_the_guides_commands_pair_accelerate_explain_upgrade_and_leave_nothing(self):
        self.steps, self.line = steps(), ""
        self.assertEqual(list(self.steps), ["Install", "Pair up", "Prepare and start", "Look", "Upgrade and remove"])
        self.make_systems()
        self.lab = self.enterContext(Lab("51.84mbit,30"))
        for host in self.roots:
            self.lab.run(host, "sysctl", "-qw", "net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0")
        self.systems = {host: self.boot(host) for host in self.roots}
        smbd, nginx = smb.Smbd(self.lab), web.Nginx(self.lab)
        began = time.monotonic()

        self.type_all("Pair up")
        self.type_all("Prepare and start")
        self.wait_link()
        print(f"{time.monotonic() - began:5.1f} s  from the first command to the link")

        document = b"".join(tcp.pieces(1_000_000, 1))
        here = self.enterContext(smb_client.connect(self.lab, smbd))
        smb_work.write_file(here, "document", document, oplock=smb_client.LEASE)
        self.assertEqual(smb_work.read_file(here, "document", oplock=smb_client.LEASE), document)
        self.assertEqual((smbd.share / "document").read_bytes(), document)
        status, _, flows, why, server, page, *_ = self.type_all("Look")
        self.assertIn("OK", status)
        for text in (flows, why):
            self.assertIn("optimised", text)
        self.assertIn(CLIENT, why)
        self.assertIn("would use the link to datacenter", " ".join(server.split()))
        self.look_with_a_browser(page.split()[-1], nginx)
        here.close()

        upgrade, *removal = (command for _, command in self.steps["Upgrade and remove"][::2])
        self.make_newer()
        for host, system in self.systems.items():
            pid = system.show("longhaul", "MainPID")
            self.type(host, upgrade)
            self.assertNotIn(system.show("longhaul", "MainPID"), ("0", pid))
            self.assertIn("0.9.9", system.run("dpkg-query", "-W", "longhaul").stdout)
        self.wait_link()
        self.fetch(nginx, "after the upgrade")
        self.assertGreater(json.loads(self.type("branch", "longhaul status --json"))["flows"]["by_reason"]["optimised"], 0)

        for host in self.systems:
            for command in removal:
                self.type(host, command)
            self.assertEqual(self.traces(host), [""])
            self.assertEqual(self.users_and_packages(self.roots[host]), self.users_before)
            left = {path for path in self.files(self.roots[host]) - self.before if "longhaul" in path and PACKAGES not in path}
            self.assertEqual(left, set())
        self.fetch(nginx, "without the pair")

    def fetch(self, nginx, name):
        name = name.replace(" ", "-")
        there = nginx.put(name, 300_000)
        self.assertEqual(web.fetch(self.lab, name, seconds=60).sha256, there)

    def make_newer(self):
        (self.folder / "newer").mkdir()
        for deb in (self.folder / "debs").glob("*.deb"):
            tree = self.folder / "newer" / deb.stem
            sh("dpkg-deb", "-R", deb, tree)
            control = tree / "DEBIAN/control"
            control.write_text(re.sub(r"^Version: .*$", "Version: 0.9.9-1", control.read_text(), flags=re.M))
            for root in self.roots.values():
                sh("rm", root / "root" / PACKAGES / deb.name)
                sh("dpkg-deb", "-Znone", "-b", tree, root / "root" / PACKAGES)

    def look_with_a_browser(self, address, nginx):
        if not BROWSER:
            return
        (nginx.files / "index.html").write_text("<title>here</title><p>" + "what the server has " * 1000)
        with Browser(self.lab, "client", self.lab.scratch / "browser-client") as client:
            client.open(f"http://{SERVER}/index.html")
            client.until("document.title === 'here'")
        with Browser(self.lab, "branch", self.lab.scratch / "browser-branch") as operator:
            operator.open(address)
            operator.until("document.querySelector('#site')?.innerText === 'branch'")
            operator.until("document.querySelector('#ports').innerText.includes('445')")
            self.assertEqual(operator.errors, [])


if __name__ == "__main__":
    unittest.main()
