# SPDX-License-Identifier: Apache-2.0
"""The units of the package under a real systemd: start, readiness, restrictions, restart, watchdog, reload, credentials,
boot, upgrade and removal."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from lab import BUILD, REPOSITORY, long_test, until
from systemd import System

CONFIGURATION = """site = "branch"
[identity]
certificate = "branch.crt"
private_key = "branch.key"
[link]
listen = "127.0.0.1:7600"
allow = ["10.1.0.0/16"]
[intercept]
mode = "tproxy"
interfaces = ["lan0"]
fail = "closed"
[[peer]]
name = "datacenter"
address = "192.0.2.1:7600"
fingerprint = "sha256:%s"
networks = ["10.10.2.0/24", "fd10:2::/64"]
"""
DOOR = "longhaul_closed_7650"
OWN = "table inet longhaul_7650"


def run(*words, **environment):
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=540,
                   env={**os.environ, **environment})


class RealSystemd(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        run(REPOSITORY / "tools/package", "--out", folder, "deb", LONGHAUL_BUILD=str(BUILD),
            LONGHAUL_DEB_COMPRESSION="none", DEB_BUILD_OPTIONS="nostrip")
        self.deb = next(folder.glob("longhaul_*.deb"))
        root = folder / "system"
        # Neither netbase nor nftables: the package must do without /etc/protocols and nft(8).
        run("mmdebstrap", "--variant=minbase", "--include=systemd,systemd-sysv,iproute2", "bookworm", root)
        run("cp", self.deb, root / "longhaul.deb")
        run("unshare", "--mount", "--pid", "--fork", "--root", root, "--mount-proc", "sh", "-c",
            "apt-get update && apt-get install -y --no-install-recommends /longhaul.deb")
        self.system = self.enterContext(System(root, self.enterContext(open(folder / "log", "w", encoding="utf-8"))))
        self.sh("ip link add lan0 type veth peer name lan1 && ip link set lan0 up && ip link set lan1 up")
        for unit in ("longhaul", "longhaul-door", "longhaul@", "longhaul-door@"):
            # A sanitizer cannot look for leaks in a process that may not be traced.
            self.system.write(f"etc/systemd/system/{unit}.service.d/sanitizer.conf",
                              "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
        self.sh("systemctl daemon-reload")

    def sh(self, command, check=True):
        return self.system.run("env", "ASAN_OPTIONS=detect_leaks=0", "sh", "-c", command, check=check)

    def daemon(self):
        return self.system.show("longhaul", "MainPID")

    def configure(self, text=CONFIGURATION % ("5a" * 32)):
        self.system.write("etc/longhaul/longhaul.toml", text)

    def tables(self):
        return self.sh("longhaul fail-closed print /etc/longhaul/longhaul.toml; longhaul intercept print", check=False).stdout

    def restarted(self, pid, seconds=60):
        until(lambda: self.daemon() not in ("0", pid) and self.system.show("longhaul", "ActiveState") == "active", seconds,
              "systemd has restarted the daemon")

    @long_test
    def test_the_service_starts_is_confined_restarts_reloads_and_leaves_nothing(self):
        system = self.system
        self.assertEqual(system.run("systemctl", "--failed", "--quiet").stdout.strip(), "")
        self.assertEqual(system.show("longhaul", "ActiveState"), "inactive")  # there is no configuration
        self.sh("cd /etc/longhaul && longhaul keygen branch")
        self.configure()

        with self.subTest("start"):
            self.sh("systemctl start longhaul && longhaul status")  # it listens as soon as it is started
            self.assertEqual(system.show("longhaul", "StatusText"), "Site branch, 1 peer")
            self.assertEqual(system.show("longhaul-door", "ActiveState"), "active")
            self.assertIn(f"table inet {DOOR}", self.tables())
            self.assertIn("# installed", self.tables())

        with self.subTest("restrictions"):
            status = dict(line.split(":\t", 1) for line in self.sh(f"cat /proc/{self.daemon()}/status").stdout.splitlines()
                          if ":\t" in line)
            user = self.sh("id -u longhaul").stdout.strip()
            self.assertEqual(status["Uid"].split(), [user] * 4)
            self.assertEqual({status[name] for name in ("CapEff", "CapPrm")}, {"0000000000001400"})
            self.assertEqual((int(status["NoNewPrivs"]), int(status["Seccomp"])), (1, 2))
            mounts = self.sh(f"cat /proc/{self.daemon()}/mountinfo").stdout
            options = {line.split()[4]: line.split()[5].split(",") for line in mounts.splitlines()}
            self.assertEqual({place: options[place][0] for place in ("/", "/sys", "/var/lib/longhaul")},
                             {"/": "ro", "/sys": "ro", "/var/lib/longhaul": "rw"})

        with self.subTest("kill -9"):
            pid = self.daemon()
            self.sh(f"kill -9 {pid}")
            self.restarted(pid)
            self.sh("longhaul status")

        with self.subTest("watchdog"):
            pid = self.daemon()
            self.sh(f"kill -STOP {pid}")
            self.restarted(pid, 90)  # no thread of its own could have noticed

        with self.subTest("reload"):
            pid = self.daemon()
            self.sh("systemctl reload longhaul")
            self.configure("site = \n")
            self.assertNotEqual(self.sh("systemctl reload longhaul", check=False).returncode, 0)
            until(lambda: "longhaul.toml:1" in system.journal("longhaul"))
            self.assertEqual((self.daemon(), system.show("longhaul", "ActiveState")), (pid, "active"))

        with self.subTest("boot with a wrong file"):
            self.sh("systemctl stop longhaul longhaul-door")
            self.configure()
            self.sh("longhaul fail-closed remove /etc/longhaul/longhaul.toml")
            self.configure("site = \n")
            self.sh("systemctl start longhaul-door", check=False)
            self.assertEqual(system.show("longhaul-door", "ActiveState"), "failed")  # which is loud
            self.configure()
            self.assertNotIn("not installed", self.sh("longhaul fail-closed print /etc/longhaul/longhaul.toml").stdout)

        with self.subTest("a wrong file is not tried again, a missing address is"):
            self.configure("site = \n")
            self.sh("systemctl start longhaul", check=False)
            self.assertEqual((system.show("longhaul", "ActiveState"), system.show("longhaul", "ExecMainStatus")), ("failed", "2"))
            self.configure((CONFIGURATION % ("5a" * 32)).replace("127.0.0.1:7600", "192.0.2.7:7600"))
            self.sh("systemctl start longhaul", check=False)
            until(lambda: int(system.show("longhaul", "NRestarts")) > 0, what="it is tried again")
            self.sh("ip address add 192.0.2.7/32 dev lan0")
            until(lambda: system.show("longhaul", "ActiveState") == "active", what="it runs once the address is there")
            self.sh("systemctl stop longhaul && ip address del 192.0.2.7/32 dev lan0")
            self.configure()

        with self.subTest("credential"):
            self.sh("chown root:root /etc/longhaul/branch.key")
            system.write("etc/systemd/system/longhaul.service.d/key.conf",
                         "[Service]\nLoadCredential=branch.key:/etc/longhaul/branch.key\n")
            self.configure((CONFIGURATION % ("5a" * 32)).replace('"branch.key"',
                                                                 '"/run/credentials/longhaul.service/branch.key"'))
            self.sh("systemctl daemon-reload && systemctl restart longhaul-door longhaul && systemctl reload longhaul")
            self.assertIn("Site branch", system.show("longhaul", "StatusText"))

        with self.subTest("stop"):
            self.sh("systemctl stop longhaul")
            self.assertEqual(system.show("longhaul", "Result"), "success")
            self.assertEqual(self.sh("ip rule | grep -c fwmark", check=False).stdout.strip(), "0")
            self.assertNotIn("not installed", self.sh("longhaul fail-closed print /etc/longhaul/longhaul.toml").stdout)

        with self.subTest("upgrade"):
            self.sh("systemctl start longhaul")
            pid = self.daemon()
            self.sh("DEBIAN_FRONTEND=noninteractive dpkg -i /longhaul.deb")
            self.restarted(pid)

        with self.subTest("removal"):
            other = re.sub(r"\[intercept\].*?(?=\[\[)", "", CONFIGURATION % ("5a" * 32), flags=re.S).replace(":7600", ":7610")
            system.write("etc/longhaul/north.toml", other.replace("[identity]", 'state_dir = "/var/lib/longhaul-north"\n[control]\n'
                                                                  'listen = "127.0.0.1:7611"\n[identity]'))
            self.sh("chown longhaul: /etc/longhaul/branch.key; systemctl enable --now longhaul@north longhaul-door@north")
            self.assertEqual(system.show("longhaul@north", "ActiveState"), "active")
            self.configure("site = \n")  # which must not keep the rules in place for good
            self.sh("apt-get remove -y longhaul")
            self.assertEqual(self.sh("grep -lx longhaul /proc/[0-9]*/comm", check=False).stdout, "")
            self.assertEqual(self.sh("ip rule | grep -c fwmark", check=False).stdout.strip(), "0")
            self.assertEqual(self.rules_in_the_kernel(), "")
            self.assertEqual(self.sh("ls -d /etc/systemd/system/*.wants/longhaul*@*", check=False).stdout, "")
            self.sh("apt-get purge -y longhaul")
            left = [str(path) for place in ("etc", "var/lib", "usr", "lib", "run")
                    for path in (system.root / place).rglob("*longhaul*")]
            # What this test wrote, and what the package manager keeps of each package.
            self.assertEqual([path for path in left if "/systemd/system/" not in path and "/dpkg/" not in path], [])

    def rules_in_the_kernel(self):
        """By this host's nft(8), for the system has none."""
        return subprocess.run(["nsenter", "-t", self.system.first_process(), "--net", "nft", "list", "ruleset"], text=True,
                              capture_output=True, check=True).stdout


if __name__ == "__main__":
    unittest.main()
