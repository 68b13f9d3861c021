# SPDX-License-Identifier: Apache-2.0
"""Logins with Kerberos of which something is unusual or wrong: encryption types, a user of another realm, clocks, key
versions, and a server whose password changes while its clients work. What is wrong is named by `check` and `why`."""

import os
import re
import shutil
import unittest

import domain
import realms
import smb
import smb_work
from lab import CLIENT, PYTHON, SERVER, until
from member import Member
from pair import PairTest
from smb_test import made
from web import sha256_of

LOGIN = "import sys\nfrom impacket.smbconnection import SMBConnection\n" \
        "SMBConnection(sys.argv[1], sys.argv[2]).kerberosLogin('', '', useCache=True)\n"


def give(site, keytab, name):
    """Copies a keytab to where the far side reads it, also at a reload."""
    path = site.folder / name
    shutil.copy(keytab, path)
    shutil.chown(path, "longhaul")
    path.chmod(0o600)
    return str(path)


@unittest.skipUnless(realms.are_there(), "MIT's KDC or faketime is not installed: run tools/setup")
class Logins(PairTest):
    line = ("51.84mbit,10",)
    AGES = "ages.corp.test"  # a name of the server whose key is changed

    @classmethod
    def prepare(cls):
        cls.realms = cls.enterClassContext(realms.Realms(cls.lab))
        cls.names = {etype: f"etype-{etype}.corp.test" for etype in realms.TYPES}
        for etype, name in cls.names.items():
            cls.realms.admin(f"addprinc -randkey -e {realms.TYPES[etype]}:normal cifs/{name}")
        cls.realms.admin(f"addprinc -randkey -e {realms.TYPES[18]}:normal cifs/{cls.AGES}")
        cls.services = [f"cifs/{name}" for name in (realms.NAME, cls.AGES, *cls.names.values())]
        cls.keytab = cls.realms.export_keytab(*cls.services)  # the server's own
        cls.server = realms.Server(cls.realms, cls.keytab, (realms.NAME, cls.AGES, *cls.names.values()))
        cls.datacenter.settings["smb_server"] = [
            {"addresses": [SERVER], "keytab": give(cls.datacenter, cls.keytab, "files.keytab")}]

    def setUp(self):
        self.realms.log_in()

    def copied(self, reason="optimised", **how):
        """Copies a file there and back."""
        self.realms.fetch_ticket(how.get("host", realms.NAME))  # so that no flow to the KDC is counted
        before = self.branch.reasons()
        there = self.server.make("there", 400_000, seed=len(str(how)))
        self.assertEqual(self.server.get("there", **how), there)
        self.assertEqual(self.server.put(self.server.share / "there", "back", **how), there)
        given = set(self.reasons_given(before))  # each flow's first one, too
        self.assertEqual(given - {"optimised"} or given, {reason})

    def test_tickets_of_each_encryption_type_are_opened(self):
        for etype, name in self.names.items():
            with self.subTest(etype=realms.TYPES[etype]):
                self.copied(host=name, protection="encrypt")
                for site, detail in self.details(name):
                    self.assertIn(f"key from the keytab ({realms.TYPES[etype]}, version 1)", detail, site)

    def details(self, host):
        """What each site says of a session to this name of the server while it lasts."""
        gate = self.lab.scratch / f"gate-{next(self.lab.counter)}"
        os.mkfifo(gate)
        held = os.open(gate, os.O_RDWR)
        client = self.lab.start("client", *self.server.words(f"!cat {gate}", host=host))
        try:
            until(lambda: all(any("key from" in (flow["module"] or {}).get("detail", "") for flow in site.flows())
                              for site in self.pair.sites),
                  what="a session to the server")
            return [(site.name, flow["module"]["detail"]) for site in self.pair.sites for flow in site.flows() if flow["module"]]
        finally:
            os.close(held)
            client.wait()
            until(lambda: not self.branch.flows(), what="the flow has ended")

    def test_a_user_of_a_realm_that_the_servers_realm_trusts_is_served(self):
        self.realms.log_in(realms.OTHER)
        for protection in "sign", "encrypt":
            self.copied(protection=protection)

    def test_a_client_that_corrects_its_wrong_clock_is_served(self):
        # The server refuses its first ticket; Heimdal's library makes another one with the server's time.
        for clock in "+10m", "-10m":
            with self.subTest(clock=clock):
                self.copied("smb_clock", clock=clock)

    def test_why_names_a_wrong_clock(self):
        self.realms.fetch_ticket(realms.NAME)
        before = self.branch.reasons()
        done = self.lab.run("client", *self.realms.words(
            *realms.wrong("+10m", ("env", f"KRB5CCNAME={self.realms.tickets}", PYTHON, "-c", LOGIN, realms.NAME, SERVER))),
            check=False)
        self.assertIn("STATUS_MORE_PROCESSING_REQUIRED", done.stderr)  # with the error, which it does not read
        until(lambda: not self.branch.flows(), what="the flow has ended")
        self.assertEqual(self.reasons_given(before).get("smb_clock"), 1)
        self.assertIn("smb_clock", self.branch.longhaul("why", f"{CLIENT}-{SERVER}:445"))

    def test_check_and_why_name_a_keytab_of_an_older_version(self):
        host = {"host": self.AGES}
        self.copied(**host)
        self.realms.admin(f"cpw -randkey -keepold -e {realms.TYPES[18]}:normal cifs/{self.AGES}")
        self.realms.export_keytab(f"cifs/{self.AGES}")  # for the server, which has both versions from now on
        self.realms.log_in()
        said = self.datacenter.longhaul("check", self.datacenter.file)
        self.assertIn(f"cifs/{self.AGES}@{realms.CORP}, key version 1:", said)
        self.assertNotIn("key version 2", said)
        self.copied("smb_ticket", dialect="2.1", **host)
        self.assertTrue(self.datacenter.process.lines_with("key version 2", "matches no key", "key version 1"))
        self.assertNotEqual(self.server.smbclient("ls", check=False, **host).returncode, 0)  # reset, once
        self.copied("smb_ticket", **host)
        give(self.datacenter, self.keytab, "files.keytab")
        self.datacenter.longhaul("reload")
        for dialect in "2.1", "3.1.1":
            self.copied(dialect=dialect, **host)


@unittest.skipUnless(realms.are_there(), "MIT's KDC or faketime is not installed: run tools/setup")
class ServersClock(PairTest):
    """Only the server's clock is wrong."""

    line = ("51.84mbit,10",)
    # Whether a login with a ticket that is valid for a day works, and the reason if not. Samba's client helps itself where the
    # ticket is valid by the server's clock; its server does not say that a ticket has expired.
    CLOCKS = {"+3h": (True, set()), "-3h": (False, {"smb_clock"}), "+30h": (False, {"smb_login"})}

    @classmethod
    def prepare(cls):
        cls.realms = cls.enterClassContext(realms.Realms(cls.lab))
        keytab = cls.realms.export_keytab()
        cls.server = realms.Server(cls.realms, keytab)
        cls.datacenter.settings["smb_server"] = [
            {"addresses": [SERVER], "keytab": give(cls.datacenter, keytab, "files.keytab"),
             "ntlm_hashes": str(cls.server.ntlm_hashes())}]

    def copies(self, node, words):
        """What comes of a copy there and back: the program's exit code, its errors, and both files."""
        back, copy = self.server.share / f"back-{next(self.lab.counter)}", self.lab.scratch / f"copy-{next(self.lab.counter)}"
        done = self.lab.run(node, *words(f"get there {copy}; put {copy} {back.name}"), check=False)
        return (done.returncode, re.findall(r"NT_STATUS_\w+", done.stdout + done.stderr),
                *(sha256_of(file) if file.exists() else None for file in (copy, back)))

    def test_a_clock_that_is_wrong_by_hours_makes_no_difference_that_it_would_not_make_directly(self):
        self.realms.log_in()
        self.realms.fetch_ticket(realms.NAME)
        ways = {"Kerberos": self.server.words,
                "NTLM": lambda command: smb.Smbd.words(self.server, command, "-m", "SMB3_11", "--client-protection=sign")}
        for clock, tickets in self.CLOCKS.items():
            self.server.stop()
            self.server.clock = clock
            self.server.start()
            self.server.make("there", 300_000)
            for way, words in ways.items():
                with self.subTest(clock=clock, way=way):
                    works, why = tickets if way == "Kerberos" else (True, set())
                    direct = self.copies("server", words)
                    self.assertEqual(direct[0] == 0, works, direct)
                    before = self.branch.reasons()
                    self.assertEqual(self.copies("client", words), direct)
                    until(lambda: not self.branch.flows(), what="the flow has ended")
                    self.assertEqual(set(self.reasons_given(before)) - {"optimised"}, why)
        self.assertTrue(self.datacenter.process.lines_with("flow_reason", "whose ticket is valid until"))


@unittest.skipUnless(domain.is_there(), "samba and kinit are not installed: apt-get install samba-ad-dc krb5-user")
class Rotation(PairTest):
    line = ("51.84mbit,10",)

    @classmethod
    def prepare(cls):
        cls.site = cls.enterClassContext(domain.Domain(cls.lab))
        cls.member = cls.enterClassContext(Member(cls.site))
        cls.site.log_in()
        cls.datacenter.settings["smb_server"] = [
            {"addresses": [cls.member.address], "keytab": give(cls.datacenter, cls.member.keytab, "member.keytab")}]

    def work(self, client, name):
        """Writes and reads in a session."""
        data = made(300_000, len(name))
        smb_work.write_file(client, name, data)
        self.assertEqual((self.member.share / name).read_bytes(), data)
        self.assertEqual(smb_work.read_file(client, name, 60_000), data)

    def test_the_servers_password_changes_while_its_clients_work(self):
        old = [self.enterContext(self.member.connect("3.1.1", protection)) for protection in ("sign", "encrypt")]
        for number, client in enumerate(old):
            self.work(client, f"before-{number}")
        there = self.member.make("file", 300_000)
        self.assertEqual(self.member.get("file"), there)  # its ticket stays in the client's cache
        self.member.change_password()
        give(self.datacenter, self.member.keytab, "member.keytab")
        self.assertIn("used for the next login", self.datacenter.longhaul("reload"))
        before = self.branch.reasons()
        for number, client in enumerate(old):  # sessions go on
            self.work(client, f"after-{number}")
        self.assertEqual(self.member.get("file"), there)  # a new login with a ticket of the old version
        self.site.log_in()
        new = self.enterContext(self.member.connect("3.1.1", "encrypt"))  # and one of the new
        self.work(new, "new")
        self.assertEqual({flow["reason"] for flow in self.branch.flows()}, {"optimised"})
        versions = sorted(flow["module"]["detail"].rpartition("version ")[2].rstrip(")") for flow in self.branch.flows())
        self.assertEqual(versions, ["1", "1", "2"])
        self.assertEqual(self.member.get("file", protection="encrypt"), there)
        self.assertEqual(set(self.reasons_given(before)), {"optimised"})


if __name__ == "__main__":
    unittest.main()
