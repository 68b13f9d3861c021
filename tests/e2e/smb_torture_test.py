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


class Torture(unittest.TestCase):
    def compare(self, suites, line=None, sealed=False, words=()):
        """`sealed`: the far side has the server's keys. `words`: of smbtorture."""
        lab = self.enterContext(Lab(line))
        server = torture.Server(lab, torture.SETTINGS_SEALED if sealed else None)
        pair = Pair(lab, datacenter={"smb_server": server.keys() if sealed else None})
        self.compare_at(server, pair, suites, sealed, words)

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

    @early
    def test_the_quick_suites_of_smb_2_and_3_give_the_same_list(self):
        self.compare(torture.QUICK)

    @early
    def test_the_quick_suites_of_smb_1_give_the_same_list(self):
        self.compare(torture.QUICK_SMB1)

    def compare_protected(self, variants, suites):
        for most, protection in variants:
            with self.subTest(most=most, protection=protection):
                self.compare(suites, sealed=True,
                             words=(f"--option=clientmaxprotocol={most}", f"--client-protection={protection}"))

    @early
    def test_a_few_suites_give_the_same_list_signed_and_encrypted(self):
        self.compare_protected((("SMB3_11", "sign"), ("SMB3_11", "encrypt")),
                               ("smb2.compound", "smb2.session"))

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
class Kerberos(Torture):
    """At a member of a domain: all sessions are opened with Kerberos, and the far side has the member's keytab."""

    def compare_kerberos(self, variants, suites):
        lab = self.enterContext(Lab())
        site = self.enterContext(domain.Domain(lab))
        server = self.enterContext(torture.DomainServer(site))
        pair = Pair(lab, datacenter={"smb_server": server.keys()})
        for most, protection in variants:
            with self.subTest(most=most, protection=protection):
                self.found = collections.Counter()
                flows = torture.Flows(pair.branch, server.address)

                def look(suite):
                    for flow in flows.new():
                        print("       ", suite, flow["reason"], flow["module"] and (flow["module"]["state"], flow["module"]["detail"]))

                self.compare_at(server, pair, suites, True, torture.protected(most, protection), look)


if __name__ == "__main__":
    unittest.main()
