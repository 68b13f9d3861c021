# SPDX-License-Identifier: Apache-2.0
"""An attacker with the disks of both sites, or copies of them, and every log, but no key: none of them contains data
that crossed the link. Also the dictionary's key itself: who can read it, and what is left after it was destroyed."""

import base64
import gzip
import os
import random
import shutil
import stat
import unittest

from dictionary_test import stored, wait_stored
from lab import Lab, until
from pair import Pair
from reduction_test import MB, digest, download, noise, text, upload


def contents():
    """What crosses: as it is and compressed, each with a secret in many places, and the secret."""
    secret = b"session=" + os.urandom(16).hex().encode()
    plain = noise(3 * MB, secret)
    words = text(3 * MB, secret)
    spread = lambda data: b"".join(data[at:at + 9000] + secret for at in range(0, len(data), 9000))
    # Small enough that the codec opens them and keeps what is inside (codecs/reduction/deflated.h).
    packed = b"".join(gzip.compress(words[at:at + 8000] + secret) for at in range(0, 400_000, 8000))
    return secret, {"noise": spread(plain), "text": spread(words), "packed": packed}


def needles(secret, parts):
    """The secret in several spellings, and stretches of 16 bytes of everything that was sent."""
    found = {secret, secret.hex().encode(), base64.b64encode(secret)[:40]}
    source = random.Random(1)
    for data in parts.values():
        found |= {data[at:at + 16] for at in (source.randrange(len(data) - 16) for _ in range(40))}
    return found


def leaks(site, wanted):
    """The files below the state folder, and logs, that hold one of the needles."""
    places = {str(file.relative_to(site.folder)): file.read_bytes()
              for file in sorted((site.folder / "state").rglob("*")) if file.is_file()}
    places["log"] = site.process.log().encode()
    return sorted({name for name, data in places.items() for needle in wanted if needle in data})


def key_of(site):
    return site.folder / "state/dictionary.key"


class Disks(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.pair = Pair(self.lab, both={"log": {"level": "trace"}})
        self.enterContext(self.pair)

    def test_no_file_and_no_log_contains_data_that_crossed_the_link(self):
        secret, parts = contents()
        wanted = needles(secret, parts)
        for data in parts.values():
            self.assertEqual(download(self.lab, data), digest(data))
            self.assertEqual(upload(self.lab, data[::-1]), digest(data[::-1]))
        wait_stored(self.pair, sum(map(len, parts.values())))
        wanted |= {needle[::-1] for needle in wanted}  # what went the other way
        for site in self.pair.sites:
            self.assertEqual(leaks(site, wanted), [])
        self.pair.stop()  # the rest of the history is written
        for site in self.pair.sites:
            self.assertEqual(leaks(site, wanted), [])
            key = key_of(site).read_bytes()
            self.assertEqual(len(key), 32)
            self.assertEqual(stat.S_IMODE(key_of(site).stat().st_mode), 0o600)
            self.assertEqual(leaks(site, {key, key.hex().encode(), base64.b64encode(key)}), ["state/dictionary.key"])

    def test_after_clear_cache_even_the_daemon_cannot_read_old_copies_of_the_disk(self):
        branch = self.pair.branch
        data = noise(9 * MB, "stolen")
        self.assertEqual(download(self.lab, data), digest(data))
        wait_stored(self.pair, len(data))
        old_key = key_of(branch).read_bytes()
        copy = self.lab.scratch / "copy"
        shutil.copytree(branch.folder / "state/dictionary", copy)
        said = branch.longhaul("clear-cache")
        self.assertIn("the encryption key of the dictionary on disk was destroyed", said)
        self.assertNotEqual(key_of(branch).read_bytes(), old_key)
        self.assertEqual(leaks(branch, {old_key}), [])
        until(lambda: stored(branch) == 0, what="the segments are removed")
        branch.stop()
        for part in ("segments", "catalogue"):
            shutil.rmtree(branch.folder / "state/dictionary" / part)
            shutil.copytree(copy / part, branch.folder / "state/dictionary" / part)
        branch.lab.run("branch", "chown", "-R", "longhaul", branch.folder / "state/dictionary")
        branch.start()
        self.pair.wait_link()
        until(lambda: stored(branch) == 0, what="what was put back is removed")
        self.assertEqual(branch.status()["disk_dictionary"]["segments"], 0)
        self.assertEqual(download(self.lab, data), digest(data))

    def test_a_lost_or_exposed_key_only_costs_the_stored_data(self):
        branch = self.pair.branch
        victim = self.lab.scratch / "victim"
        victim.write_bytes(b"not the daemon's")
        key = key_of(branch)

        def lose():
            key.unlink()

        def show():
            key.chmod(0o644)

        def cut():
            key.write_bytes(key.read_bytes()[:31])

        def point_elsewhere():
            key.unlink()
            key.symlink_to(victim)

        def share():
            os.link(key, self.lab.scratch / "second name")

        def swap():
            key.write_bytes(os.urandom(32))

        for harm in (lose, show, cut, point_elsewhere, share, swap):
            with self.subTest(harm.__name__):
                data = noise(2 * MB, harm.__name__)
                self.assertEqual(download(self.lab, data), digest(data))
                branch.stop()
                self.assertGreater(stored(branch), 0)
                old_key = key.read_bytes()
                harm()
                branch.start()
                self.pair.wait_link()
                until(lambda: stored(branch) == 0, what="what nobody can read is removed")
                self.assertEqual(branch.status()["disk_dictionary"]["segments"], 0)
                self.assertNotEqual(key.read_bytes(), old_key)
                self.assertEqual(stat.S_IMODE(key.lstat().st_mode), 0o600)
                self.assertTrue(stat.S_ISREG(key.lstat().st_mode))
                self.assertEqual(download(self.lab, data), digest(data))
        self.assertEqual(victim.read_bytes(), b"not the daemon's")


if __name__ == "__main__":
    unittest.main()
