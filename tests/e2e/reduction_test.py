# SPDX-License-Identifier: Apache-2.0
"""Reduction: repeated data costs next to nothing on the WAN, by the emulator's count, and every byte arrives as it
was sent, whatever happens to the link, the features or the dictionary meanwhile."""

import contextlib
import hashlib
import random
import threading
import unittest

import tcp
from lab import PATIENCE, SERVER, SERVER6, Lab, until
from link_test import link_cut_off
from pair import Pair, PairTest

OFF = {"compression": False, "dedup_memory": False, "dedup_disk": False}
MB = 1_000_000
ATTEMPTS = 4  # where a host that stands still for a moment makes packets cross twice


def noise(size, seed):
    """Nothing in it repeats or compresses."""
    return random.Random(seed).randbytes(size)


def text(size, seed):
    """Compresses to less than half; nothing long in it repeats."""
    source = random.Random(seed)
    words = [bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 9))) for _ in range(3000)]
    return b" ".join(source.choices(words, k=size // 3))[:size]


def edited(data, seed, places=100):
    """One byte more in front, and other bytes in many places."""
    source = random.Random(seed)
    changed = bytearray(data)
    for _ in range(places):
        changed[source.randrange(len(changed))] ^= 1 + source.randrange(255)
    return b"+" + bytes(changed)


def digest(data):
    return tcp.Digest(len(data), hashlib.sha256(data).hexdigest(), "end")


def sender(data):
    def serve(connection):
        connection.send(data)
        connection.end()
        connection.receive_rest()

    return serve


class Wan:
    """IP bytes that cross the emulated line while the block runs: `sent` by the branch, `received` by it."""

    def __init__(self, lab):
        self.lab = lab

    def _count(self):
        stats = self.lab.stats()
        return stats["a_to_b"]["ip_bytes_in"], stats["b_to_a"]["ip_bytes_in"]

    def __enter__(self):
        self.before = self._count()
        return self

    def __exit__(self, *_):
        self.sent, self.received = (now - then for now, then in zip(self._count(), self.before))


def download(lab, data, address=SERVER):
    """The bytes that reached the client; the server is new each time, and so is the port."""
    with tcp.Server(lab, sender(data)) as server:
        return tcp.download(lab, address, server.port)


def upload(lab, data, address=SERVER):
    with tcp.Server(lab, tcp.report_digest) as server:
        connection = tcp.connect(lab, address, server.port)
        connection.send(data)
        connection.end()
        answer, ending = connection.receive_rest()
        connection.close()
        size, sha256 = answer.decode().split()
        return tcp.Digest(int(size), sha256, ending)


class Repeats(PairTest):
    line = ("51.84mbit,20",)

    def cost_of_download(self, data):
        with Wan(self.lab) as wan:
            self.assertEqual(download(self.lab, data), digest(data))
            self.pair.wait_flows(0)
        return wan.received

    def cost_of_upload(self, data):
        with Wan(self.lab) as wan:
            self.assertEqual(upload(self.lab, data, SERVER6), digest(data))
            self.pair.wait_flows(0)
        return wan.sent

    def test_a_file_that_crossed_before_costs_less_than_a_hundredth_in_each_direction(self):
        for way, cost in (("down", self.cost_of_download), ("up", self.cost_of_upload)):
            with self.subTest(way):
                for attempt in range(ATTEMPTS):
                    data = noise(8 * MB, f"repeated {way} {attempt}")
                    first = cost(data)
                    self.assertGreater(first, len(data))
                    if (second := cost(data)) < first / 100:
                        break
                self.assertLess(second, first / 100)

    def test_an_edited_file_costs_its_edits(self):
        data = noise(8 * MB, "edited")
        first = self.cost_of_download(data)
        self.assertLess(self.cost_of_download(edited(data, 1)), first / 20)
        # What stands in other files, at other offsets.
        self.assertLess(self.cost_of_download(noise(12_345, "in front") + data[3 * MB:5 * MB] + data[:MB]), first / 20)

    def test_new_data_is_compressed(self):
        data = text(4 * MB, "compressed")
        self.assertLess(self.cost_of_download(data), len(data) / 2)

    def test_random_data_is_hardly_larger_than_without_reduction(self):
        for attempt in range(ATTEMPTS):
            with_reduction = self.cost_of_download(noise(8 * MB, f"hardly larger {attempt}"))
            self.branch.set(**OFF)
            try:
                without = self.cost_of_download(noise(8 * MB, f"as it is {attempt}"))
            finally:
                self.branch.set(preset="A+F")
            if with_reduction < (most := without * 1.003 + 5000):  # and a probe for larger packets or two
                break
        self.assertLess(with_reduction, most)

    def test_features_that_are_switched_off_act_on_a_running_flow_and_on_again_too(self):
        data = noise(2 * MB, "switched")
        here, there = tcp.pair(self.lab)

        def cost():
            with Wan(self.lab) as wan:
                writer = threading.Thread(target=here.send, args=(data,))
                writer.start()
                got = there.receive(len(data))
                writer.join()
            self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(data).digest())
            return wan.sent

        def flow_has(switched):
            port = f"?port={there.local[1]}"
            for site in self.pair.sites:
                until(lambda site=site: site.flows(port)[0]["features"]["dedup_memory"] == switched,
                      what=f"{site.name} has it switched")

        self.assertGreater(cost(), len(data))
        self.assertLess(cost(), len(data) / 50)
        self.branch.longhaul("set", "compression=off", "dedup_memory=off", "dedup_disk=off")
        flow_has(False)
        self.assertGreater(cost(), len(data))
        # The far side may ask for it as well, and what both allow is in force.
        self.branch.longhaul("set", "preset=A+F")
        flow_has(True)
        self.assertLess(cost(), len(data) / 50)
        self.datacenter.longhaul("set", "compression=off", "dedup_memory=off", "dedup_disk=off")
        flow_has(False)
        self.assertGreater(cost(), len(data))
        self.datacenter.longhaul("set", "preset=A+F")
        flow_has(True)
        self.assertLess(cost(), len(data) / 50)
        here.close()
        there.close()

    def test_a_rule_excludes_flows_from_the_shared_dictionary(self):
        # Flows over IPv6 are on their own, with and without compression of their own bytes.
        for number, compression in enumerate((True, False)):
            with self.subTest(compression=compression):
                alone = {"dedup_memory": False, "compression": compression}
                for site in self.pair.sites:
                    site.stop()
                    site.settings["rule"] = [{"to_networks": ["fd10:2::/64"], "features": alone}]
                self.pair.start()
                try:
                    secret, shared = noise(2 * MB, f"secret {number}"), noise(2 * MB, f"shared {number}")

                    def cost(data, address):
                        with Wan(self.lab) as wan:
                            self.assertEqual(download(self.lab, data, address), digest(data))
                            self.pair.wait_flows(0)
                        return wan.received

                    self.assertGreater(cost(secret, SERVER6), len(secret))
                    self.assertGreater(cost(shared, SERVER), len(shared))
                    # Guesses in other flows find nothing of the one, nor does it find what they sent.
                    self.assertGreater(cost(secret, SERVER), len(secret))
                    self.assertGreater(cost(shared, SERVER6), len(shared))
                    self.assertLess(cost(shared, SERVER), len(shared) / 50)
                finally:
                    for site in self.pair.sites:
                        site.stop()
                        del site.settings["rule"]
                    self.pair.start()

    def test_preset_f_reduces_nothing(self):
        data = text(2 * MB, "preset F")
        before = self.branch.link()["reduction"]
        self.branch.longhaul("set", "preset=F")
        try:
            for _ in range(2):
                self.assertGreater(self.cost_of_download(data), len(data))
        finally:
            self.branch.longhaul("set", "preset=A+F")
        after = self.branch.link()["reduction"]
        for way in ("in", "out"):
            self.assertEqual(before[way]["bytes"]["plain"], after[way]["bytes"]["plain"])

    def test_clear_cache_empties_the_dictionaries_of_both_sides(self):
        for site in self.pair.sites:
            with self.subTest(site.name):
                data = noise(4 * MB, f"cleared by {site.name}")
                self.cost_of_download(data)
                self.assertLess(self.cost_of_download(data), len(data) / 50)
                self.assertRegex(site.longhaul("clear-cache"), r"cleared [\d.]+ MiB in memory")
                for each in self.pair.sites:
                    until(lambda each=each: each.link()["reduction"]["in"]["dictionary_filled_bytes"]
                          + each.link()["reduction"]["out"]["dictionary_filled_bytes"] < MB,
                          what=f"the dictionaries of {each.name} are empty")
                self.assertGreater(self.cost_of_download(data), len(data))
                self.assertLess(self.cost_of_download(data), len(data) / 50)

    def test_savings_are_shown_per_flow_port_and_peer(self):
        data = text(2 * MB, "seen")
        with tcp.Server(self.lab, sender(data)) as server:
            for _ in range(2):
                self.assertEqual(tcp.download(self.lab, SERVER, server.port), digest(data))
            self.pair.wait_flows(0)
            for site, way in ((self.branch, "in"), (self.datacenter, "out")):
                with self.subTest(site.name):
                    port = next(p for p in site.status()["ports"] if p["port"] == server.port)
                    self.assertEqual(port["started"], 2)
                    counted = port["blocks"][way]
                    # A piece of fewer than 64 bytes that waited alone goes as it is and is in no block.
                    self.assertLessEqual(counted["plain"], 2 * len(data))
                    self.assertGreater(counted["plain"], 1.999 * len(data))
                    # The second time the dictionary left next to nothing, the first time it found little.
                    self.assertLess(counted["deduped"], 1.2 * len(data))
                    self.assertLess(counted["encoded"], counted["deduped"] / 2)
                    peer = site.link()["reduction"][way]
                    self.assertGreaterEqual(peer["bytes"]["plain"], counted["plain"])
                    if way == "out":
                        self.assertGreaterEqual(peer["bytes"]["copied"], 0.9 * len(data))
                    self.assertGreaterEqual(peer["dictionary_filled_bytes"], len(data))
                    self.assertIn("after deduplication", site.longhaul("status"))
        flow = self.branch.status()["flows"]["ended"]
        self.assertIn("after deduplication", self.branch.longhaul("why", str(flow)))


class Faults(PairTest):
    line = ("51.84mbit,40",)

    def test_transfers_complete_correctly_while_the_link_is_cut_repeatedly(self):
        old = noise(3 * MB, "cut")
        self.assertEqual(download(self.lab, old), digest(old))
        for seed in range(4):
            # New bytes and old ones in turn; the new ones cross in one direction only.
            data = {way: b"".join(noise(300_000, f"cut {way} {seed} {i}") + old[i * 300_000:][:300_000]
                                  for i in range(8)) for way in ("down", "up")}
            got = {}
            threads = [threading.Thread(target=lambda way=way, copy=copy: got.__setitem__(way, copy(self.lab, data[way])))
                       for way, copy in (("down", download), ("up", upload))]
            before = self.branch.link()
            for thread in threads:
                thread.start()
            # In both directions: a flow of which nothing has come yet would be taken back, and bypass the link.
            until(lambda before=before: min(now[way] - before[way] for now in [self.branch.link()]
                                            for way in ("bytes_received", "bytes_sent")) > 200_000 * (1 + seed), what="bytes move")
            with link_cut_off(self.lab, "reject with tcp reset"):
                self.branch.wait_link("down")
            self.branch.wait_link()
            for thread in threads:
                thread.join(2 * PATIENCE)
            self.assertEqual(got, {way: digest(data[way]) for way in data})
            # The dictionaries are as good as before.
            for way, copy in (("down", download), ("up", upload)):
                with Wan(self.lab) as wan:
                    self.assertEqual(copy(self.lab, data[way]), digest(data[way]))
                self.assertLess(wan.received if way == "down" else wan.sent, len(data[way]) / 20)

    def test_a_peer_that_is_killed_and_restarted_sends_and_receives_right_bytes(self):
        data = noise(2 * MB, "killed")
        for site in reversed(self.pair.sites):
            with self.subTest(site.name):
                self.assertEqual(download(self.lab, data), digest(data))
                here, there = tcp.pair(self.lab)
                writer = threading.Thread(target=self.send_what_may, args=(here, data))
                writer.start()
                there.receive(100_000)
                site.kill()
                site.start()
                self.pair.wait_link()
                writer.join()
                here.close()
                there.close()
                for _ in range(2):
                    self.assertEqual(download(self.lab, data), digest(data))
                    self.assertEqual(upload(self.lab, data), digest(data))

    @staticmethod
    def send_what_may(connection, data):
        with contextlib.suppress(OSError):
            connection.send(data)


class Loss(unittest.TestCase):
    def test_flows_with_shared_content_complete_correctly_on_a_lossy_line(self):
        for transport in ("udp", "tcp"):
            with self.subTest(transport), Lab("51.84mbit,40,0.02") as lab, \
                    Pair(lab, both={"features": {"transport": transport}}) as pair:
                shared = [noise(200_000, f"shared {i}") for i in range(6)]
                files = [b"".join(random.Random(i).sample(shared, 4)) + noise(50_000, i) for i in range(12)]
                got = {}
                threads = [threading.Thread(target=lambda i=i: got.__setitem__(i, download(lab, files[i])))
                           for i in range(len(files))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(2 * PATIENCE)
                self.assertEqual(got, {i: digest(data) for i, data in enumerate(files)})
                self.assertEqual(pair.branch.link()["reduction"]["in"]["failed"], 0)


class Settings(unittest.TestCase):
    def test_the_smaller_dictionary_is_used_and_without_one_compression_remains(self):
        for memory in ("16MiB", 0):
            with self.subTest(memory=memory), Lab("51.84mbit,20") as lab, \
                    Pair(lab, datacenter={"dictionary": {"memory": memory}}) as pair:
                data = text(2 * MB, "none")

                def again_costs(least, most):
                    with Wan(lab) as wan:
                        self.assertEqual(download(lab, data), digest(data))
                    return least < wan.received < most

                # A host that stands still for a second makes a flow bypass the link: then again.
                until(lambda: again_costs(0, len(data) / 2), what="the link carries it")
                least, most = (0, len(data) / 20) if memory else (len(data) / 20, len(data) / 2)
                until(lambda: again_costs(least, most), what="it is reduced as the smaller dictionary allows")
                size = pair.branch.link()["reduction"]["in"]["dictionary_bytes"]
                self.assertEqual(size, 16 << 20 if memory else 0)


if __name__ == "__main__":
    unittest.main()
