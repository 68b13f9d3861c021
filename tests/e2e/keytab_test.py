# SPDX-License-Identifier: Apache-2.0
"""The keytab of a file server at the far side: what `check` and `keytab test` say of it at a real domain, new
versions by reload, and that its content appears nowhere."""

import os
import re
import shutil
import tarfile
import unittest

import domain
from lab import SERVER, Lab
from pair import PROGRAM, Pair

SERVICE, NAME = "nas", f"nas.{domain.REALM.lower()}"  # an account of another file server
CANARY = bytes.fromhex("5ca1ab1e" * 4)  # a user's hash
PASSWORDS = ("Passw0rd-the-first", "Passw0rd-the-next")


@unittest.skipUnless(domain.is_there(), "samba and kinit are not installed: apt-get install samba-ad-dc krb5-user")
class Keytab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab())
        cls.domain = cls.enterClassContext(domain.Domain(cls.lab))
        cls.domain.tool("user", "create", SERVICE, PASSWORDS[0])
        cls.domain.tool("spn", "add", f"cifs/{NAME}", SERVICE)
        cls.domain.log_in()

    def try_keytab(self, keytab, server):
        return self.lab.run("client", *self.domain.knowing(PROGRAM, "keytab", "test", keytab, server), check=False)

    def test_a_ticket_of_the_domain_opens_with_the_right_keytab_of_the_right_version_alone(self):
        good = self.domain.export_keytab()
        done = self.try_keytab(good, domain.NAME)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("matches the server: its ticket can be decrypted with the aes256-cts-hmac-sha1-96 key of version 1", done.stdout)
        other = self.domain.export_keytab(f"cifs/{NAME}", name="nas.keytab")
        done = self.try_keytab(other, domain.NAME)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"does not match the server: the ticket for cifs/{re.escape(domain.NAME)}@\S+ "
                                      r"\(aes256-cts-hmac-sha1-96, key version 1\) matches no key of the keytab")
        self.assertEqual(self.try_keytab(other, NAME).returncode, 0)
        # The account gets another password, and so another key version.
        self.domain.tool("user", "setpassword", SERVICE, f"--newpassword={PASSWORDS[1]}")
        self.domain.log_in()
        done = self.try_keytab(other, NAME)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"key version 3\) matches no key of the keytab, which has key version 2 of that type")
        both = self.domain.export_keytab(f"cifs/{NAME}", name="nas.keytab")
        done = self.try_keytab(both, NAME)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("key of version 3", done.stdout)
        # Mistakes.
        self.assertIn("the domain issues no ticket for cifs/nobody", self.try_keytab(good, "nobody").stderr)
        os.chmod(good, 0o640)
        self.assertIn("other users can read this secret", self.try_keytab(good, domain.NAME).stderr)
        self.domain.run("kdestroy")
        os.chmod(good, 0o600)
        self.assertIn("run kinit USER@REALM first", self.try_keytab(good, domain.NAME).stderr)
        self.domain.log_in()

    def test_a_daemon_takes_a_new_keytab_and_shows_it_to_nobody(self):
        pair = Pair(self.lab)
        site = pair.datacenter
        keytab = site.folder / "files.keytab"

        def give(*principals):
            shutil.copy(self.domain.export_keytab(*principals, name=f"given-{len(principals)}.keytab"), keytab)
            shutil.chown(keytab, "longhaul")  # which reads it again at a reload
            keytab.chmod(0o600)

        give("FILES$")
        hashes = site.folder / "files.hashes"
        hashes.write_text(f"# users\nalice:{CANARY.hex()}\n")
        shutil.chown(hashes, "longhaul")
        hashes.chmod(0o600)
        site.settings["smb_server"] = [{"addresses": [SERVER], "keytab": "files.keytab", "ntlm_hashes": "files.hashes",
                                        "sign": "keep", "encrypt": "keep"}]
        site.write()
        said = site.longhaul("check", site.file)
        self.assertIn(f"{SERVER}/32: FILES$@{domain.REALM}, key version 1: aes128-cts-hmac-sha1-96 "
                      "aes256-cts-hmac-sha1-96 arcfour-hmac", said)
        self.assertIn(f"{SERVER}/32: 1 NTLM hashes of users", said)
        self.enterContext(pair)
        there = self.domain.make("file", 200_000)
        self.assertEqual(self.domain.get("file"), there)
        give("FILES$", f"cifs/{NAME}")
        self.assertIn("the keys of servers (smb), used for the next login", site.longhaul("reload"))
        self.assertEqual(self.domain.get("file"), there)
        keytab.write_bytes(keytab.read_bytes()[:100])
        self.assertIn("is a truncated keytab", site.longhaul("reload", check=False).stderr)
        keytab.chmod(0o644)
        self.assertIn("other users can read this secret", site.longhaul("reload", check=False).stderr)
        give("FILES$")
        keys = [*keys_in(keytab.read_bytes()), CANARY]
        self.assertEqual(len(keys), 4)
        self.assert_shown_nowhere(site, keys)
        for key in keys:
            self.assertTrue(is_in_memory(site.process.pid, key))
        pair.wait_flows()  # a flow that is still ending has its keys
        # Without its file nothing is left of them, not even in freed memory.
        del site.settings["smb_server"]
        site.write()
        self.assertIn("[[smb_server]]", site.longhaul("reload"))
        for key in keys:
            for form in (key, key.hex().encode()):
                self.assertFalse(is_in_memory(site.process.pid, form))

    def assert_shown_nowhere(self, site, keys):
        shown = {"log": site.process.log_file.read_bytes()}
        for path in ("/v1/status", "/v1/flows", "/metrics", "/v1/history"):
            shown[path] = str(site.ask("GET", path)[1]).encode()
        archive = site.folder / "support.tar.gz"
        site.longhaul("support", site.file, "--output", archive)
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                shown[member.name] = tar.extractfile(member).read()
        for path in (site.folder / "state").rglob("*"):
            if path.is_file():
                shown[str(path)] = path.read_bytes()
        for where, content in shown.items():
            for key in keys:
                for form in (key, key.hex().encode(), key.hex().upper().encode()):
                    self.assertFalse(form in content, f"a key is in {where}")


def keys_in(keytab):
    """The keys of a keytab of Samba: each entry ends with a length, the key, its version and flags, of four bytes each."""
    at = 2
    while at < len(keytab):
        size = int.from_bytes(keytab[at:at + 4], "big")
        entry = keytab[at + 4:at + 4 + size]
        for length in (16, 32):
            if entry[-10 - length:-8 - length] == length.to_bytes(2, "big"):
                yield entry[-8 - length:-8]
        at += 4 + size


def is_in_memory(pid, secret):
    """Whether the memory that a process can write to contains it."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, rights, *_ = line.split()
            begin, end = (int(number, 16) for number in place.split("-"))
            if not rights.startswith("rw") or end - begin > 1 << 31:  # larger ones are a sanitizer's, and empty
                continue
            memory.seek(begin)
            rest = b""
            while begin < end:
                try:
                    piece = memory.read(min(4 << 20, end - begin))
                except OSError:
                    break
                if secret in rest + piece:
                    return True
                rest = piece[-len(secret):]
                begin += len(piece)
    return False
