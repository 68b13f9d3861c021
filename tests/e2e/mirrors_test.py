# SPDX-License-Identifier: Apache-2.0
"""Downloads of software over HTTPS through a pair that decrypts them: apt-get, pip, skopeo and git get the bytes of the server, and
what one client of the branch has fetched hardly crosses the line for the next."""

from mirrors import Mirrors
from pair import PairTest

SIZE = 3_000_000


class Downloads(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        kinds = [kind for kind in Mirrors.KINDS if not Mirrors.missing(kind)]
        cls.mirrors = Mirrors(cls.lab, kinds)
        cls.datacenter.settings["tls_server"] = cls.mirrors.tables

    def crossed(self, kind, seed):
        """Bytes of a download that crossed the line to the branch."""
        self.lab.stats(reset=True)
        before = self.datacenter.reasons()
        self.mirrors.get(kind, seed)
        self.pair.wait_flows()
        given = {code for code, count in self.datacenter.reasons().items() if count != before.get(code, 0)}
        self.assertEqual(given, {"optimised"}, "every connection is decrypted")
        return self.lab.stats()["b_to_a"]["ip_bytes_on_line"]

    def download(self, kind, seed):
        if missing := Mirrors.missing(kind):
            self.skipTest(f"not installed: {', '.join(missing)}")
        self.mirrors.put(kind, seed, SIZE)
        first, second = self.crossed(kind, seed), self.crossed(kind, seed)
        self.assertGreater(first, SIZE)
        self.assertLess(second, SIZE / 10)

    def test_apt_get_fetches_a_package_from_a_mirror(self):
        self.download("apt", 1)

    def test_pip_fetches_a_wheel_from_an_index(self):
        self.download("pip", 2)

    def test_skopeo_fetches_an_image_from_a_registry(self):
        self.download("registry", 3)

    def test_git_clones_a_repository(self):
        self.download("git", 4)
