# SPDX-License-Identifier: Apache-2.0
"""Samba's own suites through the pair give, test by test, what they give without it. A suite that differs is run once
more on both ways, and then up to three times more without the pair, since a few of their tests depend on the moment
(smb2.notify counts changes that servers may join): what fails is what came twice through the pair and in none of the
direct runs."""

import collections
import unittest

import domain
import torture
from lab import Lab, early, long_test
from pair import Pair

PROTECTED = (("SMB2_10", "sign"), ("SMB3_00", "sign"), ("SMB3_00", "encrypt"), ("SMB3_11", "sign"), ("SMB3_11", "encrypt"))

# What the pair shows of a session at a server whose keys it has.
AGREED = {"SMB2_10": "SMB 2.1, HMAC-SHA256, no encryption", "SMB3_00": "SMB 3.0, AES-CMAC, AES-128-CCM",
          "SMB3_11": "SMB 3.1.1, AES-GMAC, AES-128-GCM"}
# Of flows without a key, though the server has let the user in.
NOT_OPENED = {"smb_signed", "smb_encrypted", "smb_ticket", "smb_clock"}


def protected(most, protection):
    """Words of smbtorture: the highest dialect, and sign or encrypt."""
    return f"--option=clientmaxprotocol={most}", f"--client-protection={protection}"


class Comparison(unittest.TestCase):
    def compare_at(self, server, pair, suites, sealed=False, words=(), look=lambda suite: None):
        """`look` is called after each suite while the pair runs."""
        direct = {name: server.suite(name, words=words)[0] for name in suites}
        with pair:
            through = {}
            for name in suites:
                through[name] = server.suite(name, words=words)
                look(name)
            self.assertIn("optimised", pair.branch.reasons())
        differ = {name: found for name in suites if (found := torture.differences(direct[name], through[name][0], sealed))}
        if differ:
            print("".join(f"        once more: {name}: {'; '.join(found)}\n" for name, found in differ.items()), end="")
            again = {name: server.suite(name, words=words)[0] for name in differ}
            with pair:
                second = {name: server.suite(name, words=words) for name in differ}
            differ = {name: self.unexplained(server, name, [direct[name], again[name]],
                                             [through[name][0], second[name][0]], words, sealed) for name in differ}
            through |= second
        for name in suites:
            with self.subTest(name):
                self.assertTrue(direct[name], f"{name} ran no test")
                self.assertEqual(differ.get(name, []), [], f"{name}:\n{through[name][1][-6000:]}")
        results = sum(len(outcomes) for suite in direct.values() for outcomes in suite.values())
        print(f"        {results} results of {len(suites)} suites compared", flush=True)

    @staticmethod
    def unexplained(server, name, direct, through, words, sealed):
        """Of a suite that differed; the pair is not there."""
        while (found := torture.unexplained(direct, through, sealed)) and len(direct) < 5:
            direct.append(server.suite(name, words=words)[0])
        return found


class Torture(Comparison):
    def compare(self, suites, line=None, sealed=False, words=()):
        """`sealed`: the far side has the server's keys. `words`: of smbtorture."""
        lab = self.enterContext(Lab(line))
        server = torture.Server(lab, torture.SETTINGS_SEALED if sealed else None)
        pair = Pair(lab, datacenter={"smb_server": server.keys() if sealed else None})
        self.compare_at(server, pair, suites, sealed, words)

    @early
    def test_the_quick_suites_of_smb_2_and_3_give_the_same_list(self):
        self.compare(torture.QUICK)

    @early
    def test_the_quick_suites_of_smb_1_give_the_same_list(self):
        self.compare(torture.QUICK_SMB1)

    def compare_protected(self, variants, suites):
        for most, protection in variants:
            with self.subTest(most=most, protection=protection):
                self.compare(suites, sealed=True, words=protected(most, protection))

    @early
    def test_a_few_suites_give_the_same_list_signed_and_encrypted(self):
        self.compare_protected((("SMB3_11", "sign"), ("SMB3_11", "encrypt")),
                               ("smb2.compound", "smb2.session"))

    def test_second_connections_of_a_session_give_the_same_list_in_3_0_and_pass_without_the_module(self):
        for protection in "sign", "encrypt":
            with self.subTest(protection):
                lab = self.enterContext(Lab())
                server = torture.Server(lab, torture.SETTINGS_CHANNELS)
                pair = Pair(lab, datacenter={"smb_server": server.keys()})
                reasons = set()
                self.compare_at(server, pair, torture.CHANNELS, True, protected("SMB3_00", protection),
                                lambda suite, pair=pair, reasons=reasons: reasons.update(pair.branch.reasons()))
                # On a busy host smbd may refuse one of the many connections; the client tries again.
                self.assertEqual(reasons - {"destination_refused"}, {"optimised", "smb_multichannel"})

    @early
    def test_the_quick_suites_of_smb_1_give_the_same_list_signed(self):
        self.compare(torture.QUICK_SMB1, sealed=True, words=("--client-protection=sign",))

    @long_test
    def test_the_quick_suites_give_the_same_list_signed_and_encrypted(self):
        self.compare_protected(PROTECTED, torture.QUICK_SEALED)

    @long_test
    def test_the_suites_about_leases_give_the_same_list_signed_and_encrypted(self):
        self.compare_protected(PROTECTED, torture.LONG_SEALED)

    @long_test
    def test_the_quick_suites_give_the_same_list_at_two_milliseconds(self):
        self.compare((*torture.QUICK, *torture.QUICK_SMB1), "1000mbit,2")

    @long_test
    def test_the_long_suites_of_smb_2_and_3_give_the_same_list(self):
        self.compare(torture.LONG)

    @long_test
    def test_the_long_suites_of_smb_1_give_the_same_list(self):
        self.compare(torture.LONG_SMB1)

    @long_test
    def test_the_other_suites_of_smb_1_give_the_same_list(self):
        self.compare(torture.OTHER_SMB1)


@unittest.skipUnless(domain.is_there(), "samba and kinit are not installed: apt-get install samba-ad-dc krb5-user")
class Kerberos(Comparison):
    """At a member of a domain, whose keytab the far side has. The user logs in with Kerberos only. Each combination is a
    test with a domain of its own, so that they can run at the same time. 2.1 has no encryption."""

    def compare_kerberos(self, variants, suites):
        lab = self.enterContext(Lab())
        site = self.enterContext(domain.Domain(lab))
        server = self.enterContext(torture.DomainServer(site))
        pair = Pair(lab, datacenter={"smb_server": server.keys()})
        for most, protection in variants:
            with self.subTest(most=most, protection=protection):
                flows, seen = torture.Flows(pair.branch, server.address), collections.Counter()
                self.compare_at(server, pair, suites, True, protected(most, protection),
                                lambda suite: seen.update(self.flows_of(suite, flows)))
                self.assertTrue([detail for reason, detail in seen if reason == "optimised" and
                                 detail.startswith(f"{AGREED[most]}; key from the keytab")], seen)
                self.assertEqual([(reason, detail) for reason, detail in seen
                                  if "key from the keytab" not in detail and (detail or reason in NOT_OPENED)], [])

    @staticmethod
    def flows_of(suite, flows):
        """Their reasons and what the module knows of them."""
        found = [(flow["reason"], flow["module"]["detail"]) for flow in flows.new() if flow["module"]]
        opened = sum("key from the keytab" in detail for _, detail in found)
        reasons = collections.Counter(reason for reason, _ in found)
        print(f"        {suite}: {opened} of the last {len(found)} flows opened with Kerberos; "
              + ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()), flush=True)
        return found

    @early
    def test_two_suites_give_the_same_list_with_kerberos_signed_and_encrypted(self):
        self.compare_kerberos((("SMB3_11", "sign"), ("SMB3_11", "encrypt")), ("smb2.credits", "smb2.compound"))

    @long_test
    def test_the_quick_suites_give_the_same_list_with_kerberos_signed_in_2_1(self):
        self.compare_kerberos((("SMB2_10", "sign"),), torture.QUICK_SEALED)

    @long_test
    def test_the_quick_suites_give_the_same_list_with_kerberos_signed_in_3_0(self):
        self.compare_kerberos((("SMB3_00", "sign"),), torture.QUICK_SEALED)

    @long_test
    def test_the_quick_suites_give_the_same_list_with_kerberos_encrypted_in_3_0(self):
        self.compare_kerberos((("SMB3_00", "encrypt"),), torture.QUICK_SEALED)

    @long_test
    def test_the_quick_suites_give_the_same_list_with_kerberos_signed_in_3_1_1(self):
        self.compare_kerberos((("SMB3_11", "sign"),), torture.QUICK)

    @long_test
    def test_the_quick_suites_give_the_same_list_with_kerberos_encrypted_in_3_1_1(self):
        self.compare_kerberos((("SMB3_11", "encrypt"),), torture.QUICK)

    @long_test
    def test_the_long_suites_give_the_same_list_with_kerberos_signed_in_2_1(self):
        self.compare_kerberos((("SMB2_10", "sign"),), torture.LONG_EARLIER)

    @long_test
    def test_the_long_suites_give_the_same_list_with_kerberos_signed_in_3_0(self):
        self.compare_kerberos((("SMB3_00", "sign"),), torture.LONG_SIGNED_3_0)

    @long_test
    def test_the_long_suites_give_the_same_list_with_kerberos_encrypted_in_3_0(self):
        self.compare_kerberos((("SMB3_00", "encrypt"),), torture.LONG_EARLIER)

    @long_test
    def test_the_long_suites_give_the_same_list_with_kerberos_signed_in_3_1_1(self):
        self.compare_kerberos((("SMB3_11", "sign"),), torture.LONG)

    @long_test
    def test_the_long_suites_give_the_same_list_with_kerberos_encrypted_in_3_1_1(self):
        self.compare_kerberos((("SMB3_11", "encrypt"),), torture.LONG)


if __name__ == "__main__":
    unittest.main()
