# SPDX-License-Identifier: Apache-2.0
"""The process as an attacker on the same machine meets it, or one that has taken the daemon over: an account without
rights, or the daemon's own account. What such an attacker may still do is what the kernel lets this process do."""

import os
import pathlib
import pwd
import re
import subprocess
import sys
import unittest

import socks
import tcp
from lab import SERVER, SERVER6, Lab, until
from pair import PROGRAM, Pair, PairTest

USER = "longhaul"
NET_BIND_SERVICE, NET_ADMIN = 1 << 10, 1 << 12


def facts_of(pid, thread):
    text = pathlib.Path(f"/proc/{pid}/task/{thread}/status").read_text(encoding="ascii")
    return {name: value.split() for name, value in re.findall(r"^(\w+):[ \t]*(.*)$", text, re.MULTILINE)}


def as_account(account, code, *words):
    """Runs Python code as an account of this machine, without any capability; gives what it printed."""
    entry = pwd.getpwnam(account)
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], user=entry.pw_uid, group=entry.pw_gid,
                          extra_groups=[], capture_output=True, text=True, timeout=60, cwd="/")
    return (done.stdout + done.stderr).strip()


class Confined(PairTest):
    """The rights of a running daemon that was started as root."""

    line = ("51.84mbit,20",)
    branch_has = {"socks": {"listen": "127.0.0.1:1080"}}

    @classmethod
    def prepare(cls):
        cls.datacenter.hosts = {"web.far": SERVER}

    def test_every_thread_has_the_daemons_user_two_capabilities_and_a_filter(self):
        entry = pwd.getpwnam(USER)
        for site in self.pair.sites:
            threads = os.listdir(f"/proc/{site.process.pid}/task")
            self.assertGreater(len(threads), 2)  # the loop, the log's, the dictionary's
            for thread in threads:
                with self.subTest(site.name, thread=thread):
                    facts = facts_of(site.process.pid, thread)
                    self.assertEqual(facts["Uid"], [str(entry.pw_uid)] * 4)
                    self.assertEqual(facts["Gid"], [str(entry.pw_gid)] * 4)
                    self.assertEqual(facts["Groups"], [])
                    for held in ("CapEff", "CapPrm"):
                        self.assertEqual(int(facts[held][0], 16), NET_ADMIN | NET_BIND_SERVICE, held)
                    for held in ("CapInh", "CapBnd", "CapAmb"):
                        self.assertEqual(int(facts[held][0], 16), 0, held)
                    self.assertEqual(facts["NoNewPrivs"], ["1"])
                    self.assertEqual(facts["Seccomp"], ["2"])

    def test_another_process_of_the_same_user_cannot_read_its_memory_or_make_it_dump(self):
        pid = self.branch.process.pid
        attack = ("import os, sys\n"
                  "for name in ('mem', 'maps', 'environ', 'fd'):\n"
                  "    path = f'/proc/{sys.argv[1]}/{name}'\n"
                  "    try:\n"
                  "        os.listdir(path) if name == 'fd' else open(path, 'rb').read(0)\n"
                  "        print(name)\n"
                  "    except PermissionError:\n"
                  "        pass\n")
        # Of a process of the same user that does not defend itself, everything is readable: the attack works.
        sleeper = subprocess.Popen(["sleep", "60"], user=USER, group=USER, extra_groups=[])
        try:
            self.assertEqual(as_account(USER, attack, sleeper.pid).split(), ["mem", "maps", "environ", "fd"])
        finally:
            sleeper.kill()
            sleeper.wait()
        for account in (USER, "nobody"):
            self.assertEqual(as_account(account, attack, pid), "")
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
        self.assertRegex(limits, r"Max core file size +0 +0 ")

    def test_its_files_are_readable_by_its_user_only(self):
        here, there = tcp.pair(self.lab)
        here.send(b"question")
        self.assertEqual(there.receive(8), b"question")
        here.close()
        there.close()
        for site in self.pair.sites:
            state = site.folder / "state"
            until(lambda: (state / "dictionary" / "catalogue").exists(), what="the dictionary is made")
            self.assertEqual(state.stat().st_mode & 0o777, 0o700)
            for file in (state, *state.rglob("*")):
                try:
                    about = file.lstat()
                except FileNotFoundError:
                    continue  # replaced meanwhile
                self.assertEqual(about.st_uid, pwd.getpwnam(USER).pw_uid, file)
                self.assertEqual(about.st_mode & 0o077, 0, file)

    def test_everything_that_needs_a_privilege_still_works(self):
        # Addresses of clients, a source port below 1024, both families.
        for address in (SERVER, SERVER6):
            with tcp.Listener(self.lab) as listener:
                here = tcp.connect(self.lab, address, listener.port, source=("::" if ":" in address else "0.0.0.0", 903))
                there = listener.accept()
                self.assertEqual(there.remote, here.local)
                self.assertEqual(there.remote[1], 903)
                there.send(b"answer")
                self.assertEqual(here.receive(6), b"answer")
                here.reset()
        # Packet rules and routes.
        self.assertEqual(self.branch.ask("POST", "/v1/intercept", {"action": "down"})[0], 200)
        until(lambda: self.branch.status()["intercept"]["state"] == "down", what="interception is down")
        self.assertEqual(self.branch.ask("POST", "/v1/intercept", {"action": "up"})[0], 200)
        self.assertIn("tproxy", self.branch.rules())
        # Names.
        with tcp.Server(self.lab, tcp.echo) as server:
            connection, answer = socks.connect(self.lab, ("127.0.0.1", 1080), ("web.far", server.port), "branch")
            self.assertEqual(answer, "succeeded")
            connection.send(b"by name")
            self.assertEqual(connection.receive(7), b"by name")
            connection.close()

    def test_the_status_shows_the_confinement(self):
        shown = self.branch.status()["process"]
        self.assertEqual(shown["user"], USER)
        self.assertEqual(shown["capabilities"], ["net_bind_service", "net_admin"])
        self.assertTrue(shown["system_call_filter"])
        self.assertIn(f"user {USER}", self.branch.longhaul("status"))
        self.assertIn(f"the user {USER}", self.branch.longhaul("check", self.branch.file))


class Planted(unittest.TestCase):
    """Files that others have put where the daemon reads and writes. Without them each daemon would start."""

    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab)
        self.site = self.pair.datacenter

    def refused(self, *words):
        process = self.site.start_anyhow()
        process.clean_end = False
        self.assertEqual(process.wait(), 1, process.log())
        said = process.log().strip().splitlines()
        self.assertEqual(len(said), 1, process.log())
        for word in words:
            self.assertIn(word, said[0])

    def test_a_private_key_that_others_may_read_is_refused(self):
        key = self.site.folder / "datacenter.key"
        for mode in (0o644, 0o640, 0o604, 0o660):
            with self.subTest(oct(mode)):
                key.chmod(mode)
                self.refused(str(key), "chmod 600")
                done = self.site.longhaul("check", self.site.file, check=False)
                self.assertNotEqual(done.returncode, 0)
        key.chmod(0o600)
        self.site.start()

    def test_a_state_dir_that_others_may_write_is_refused(self):
        state = self.site.folder / "state"
        for mode in (0o777, 0o1777, 0o770):
            with self.subTest(oct(mode)):
                state.chmod(mode)
                self.refused(str(state), "chmod")
        state.chmod(0o700)
        self.site.folder.chmod(0o777)  # then it can be replaced as a whole
        self.refused(str(self.site.folder), "chmod")
        self.site.folder.chmod(0o755)
        self.site.start()

    def test_a_state_dir_of_another_user_is_refused(self):
        state = self.site.folder / "state"
        os.chown(state, pwd.getpwnam("nobody").pw_uid, -1)
        self.refused(str(state), "nobody", "chown")

    def test_a_directory_of_root_with_other_things_in_it_is_not_taken_over(self):
        state = self.site.folder / "state"
        (state / "shadow").write_text("not ours")
        self.refused(str(state), "other files")
        self.assertEqual(state.stat().st_uid, 0)

    def test_a_configuration_that_the_daemon_could_change_is_refused(self):
        self.site.settings["state_dir"] = str(self.site.folder)
        self.refused("state_dir", str(self.site.file))
        self.assertEqual(self.site.folder.stat().st_uid, 0)

    def test_links_planted_by_the_daemons_user_are_not_followed(self):
        """An attacker that has taken over the daemon waits for root to start the next one."""
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        self.pair = Pair(self.lab)
        self.site = self.pair.datacenter
        secret = self.lab.scratch / "secret"
        secret.write_text("root's_and_nobody_else's,_longer_than_32_characters\n")
        secret.chmod(0o600)
        before = secret.read_bytes()
        state = self.site.folder / "state"
        self.pair.start()
        self.pair.stop()
        token = state / "control.token"
        token.unlink()
        token.symlink_to(secret)
        os.lchown(token, pwd.getpwnam(USER).pw_uid, -1)
        self.refused(str(token), "link")
        token.unlink()
        for name in ("paths", "paths.new"):
            (state / name).unlink(missing_ok=True)
            (state / name).symlink_to(secret)
        with self.pair:  # and stopped in order, when paths are written
            with tcp.Server(self.lab, tcp.sender(3_000_000, 1)) as server:
                self.assertEqual(tcp.download(self.lab, SERVER, server.port), tcp.digest(3_000_000, 1))
            until(lambda: all(site.link()["carrier"] == "udp" for site in self.pair.sites), what="UDP carries the link")
        self.assertEqual(secret.read_bytes(), before)
        self.assertEqual((secret.stat().st_uid, secret.stat().st_mode & 0o777), (0, 0o600))

    def test_hard_links_in_a_directory_of_root_are_not_given_away(self):
        secret = self.site.folder / "secret"
        secret.write_text("root's")
        secret.chmod(0o600)
        os.link(secret, self.site.folder / "state" / "paths")
        self.site.start()
        self.assertEqual(secret.stat().st_uid, 0)

    def test_a_state_of_a_daemon_that_ran_as_root_is_taken_over(self):
        self.site.settings["process"] = {"user": "root"}
        self.site.start()
        self.assertEqual(facts_of(self.site.process.pid, self.site.process.pid)["Uid"], ["0"] * 4)
        self.site.process.lines_with("root")  # the warning
        token = (self.site.folder / "state" / "control.token").read_text()
        self.site.stop()
        self.site.settings["process"] = {}
        self.site.start()
        self.assertEqual((self.site.folder / "state" / "control.token").read_text(), token)
        until(lambda: self.site.status()["disk_dictionary"]["ready"], what="the dictionary is read")
        self.site.stop()
        self.site.settings["process"] = {"user": "root"}  # root uses nothing that another user may change
        self.refused(str(self.site.folder / "state"), "chown")

    def test_a_user_that_does_not_exist_is_named_with_the_command_that_makes_it(self):
        self.site.settings["process"] = {"user": "nosuchuser"}
        self.refused("nosuchuser", "useradd --system")

    def test_a_folder_that_the_user_cannot_enter_is_named(self):
        closed = self.site.folder / "closed"
        closed.mkdir(mode=0o700)
        self.site.settings["state_dir"] = str(closed / "state")
        self.refused(str(closed), "chmod")

    def test_an_ordinary_user_may_run_it_without_transparent_mode(self):
        os.chown(self.site.folder / "state", pwd.getpwnam("nobody").pw_uid, -1)
        os.chown(self.site.folder / "datacenter.key", pwd.getpwnam("nobody").pw_uid, -1)
        self.site.settings["intercept"] = {"mode": "off", "source": "proxy"}
        self.site.write()
        process = self.lab.start("datacenter", "setpriv", "--reuid", "nobody", "--clear-groups",
                                 PROGRAM, "run", self.site.file, name="longhaul-nobody", clean_end=True)
        self.site.process = process
        until(self.site._answers, what="the control API answers")
        facts = facts_of(process.pid, process.pid)
        self.assertEqual((int(facts["CapEff"][0], 16), facts["Seccomp"], facts["NoNewPrivs"]), (0, ["2"], ["1"]))


if __name__ == "__main__":
    unittest.main()
