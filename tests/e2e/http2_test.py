# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 between nginx and programs we did not write: what the cache answers is what the server has, in the clear and decrypted."""

import collections
import concurrent.futures
import json
import re
import time
import unittest

import tcp
import tls
import web
from browser import Browser
from lab import SERVER, until
from pair import PairTest
from reduction_test import Wan

OBJECTS = 60
CLEAR = """
  server {{ listen 8080 http2; root {folder}/files; access_log {folder}/asked-8080;
    client_max_body_size 0; client_body_buffer_size 1m;
    location /hour/ {{ add_header Cache-Control max-age=3600; }}
    location /put/ {{ dav_methods PUT; }}
  }}
}}
"""


class Server(tls.Nginx):
    def configuration(self):
        return super().configuration().rstrip().removesuffix("}") + CLEAR.format(folder=self.folder)

    def asked(self, path, port=8080):
        """The statuses with which it answered requests for that path."""
        self.log_everything()
        file = self.folder / f"asked-{port}"
        lines = file.read_text().splitlines() if file.exists() else []
        return [int(line.split('" ')[1].split()[0]) for line in lines if f" /{path} HTTP/" in line]


class Http2(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "ca")
        pair = cls.authority.issue("intranet.corp", "once.corp")
        cls.certificate = pair[0]
        more = ("location /hour/ { add_header Cache-Control max-age=3600; } location /put/ { dav_methods PUT; } "
                "access_log FOLDER/asked-443;")
        folder = cls.lab.scratch / "asked"
        folder.mkdir()
        cls.nginx = Server(cls.lab, [("intranet.corp", pair, more.replace("FOLDER", str(folder))),
                                     ("once.corp", pair, "keepalive_requests 1;")])
        cls.asked_443 = folder / "asked-443"
        for place in ("hour", "put"):
            (cls.nginx.files / place).mkdir()
            (cls.nginx.files / place).chmod(0o777)
        cls.datacenter.hosts = {"intranet.corp": SERVER, "once.corp": SERVER}
        cls.datacenter.settings["tls_server"] = [
            {"addresses": [SERVER], "names": ["intranet.corp", "once.corp"], "certificate": str(pair[0]), "key": str(pair[1]),
             "ca": str(cls.authority.certificate)}]

    def fetch(self, path, *options, **how):
        return web.fetch(self.lab, path, "--http2-prior-knowledge", *options, port=8080, **how)

    def counted(self, module="http"):
        return next((each["counters"] for each in self.branch.status()["modules"] if each["module"] == module),
                    collections.Counter())  # before the first flow

    def curl_tls(self, paths, *options):
        """curl of all of them on one connection: their SHA-256, and the heads."""
        heads = self.lab.scratch / f"heads-{next(self.lab.counter)}"
        targets = [self.lab.scratch / f"fetched-{next(self.lab.counter)}" for _ in paths]
        more = [word for path, target in zip(paths[1:], targets[1:])
                for word in ("--output", target, f"https://intranet.corp/{path}")]
        self.lab.run("client", *tls.curl_words("intranet.corp", paths[0], "--cacert", self.authority.certificate, "--http2",
                                               "--max-time", 60, "--dump-header", heads, "--output", targets[0], *options), *more)
        sums = [web.sha256_of(target) for target in targets]
        for target in targets:
            target.unlink()
        return sums, heads.read_text()

    def asked_over_tls(self, path):
        self.nginx.log_everything()
        lines = self.asked_443.read_text().splitlines() if self.asked_443.exists() else []
        return sum(f" /{path} HTTP/2" in line for line in lines)

    def test_what_is_fresh_is_answered_without_the_line(self):
        sha256 = self.nginx.put("hour/large", 3_000_000)
        for _ in range(2):
            first = self.fetch("hour/large")
            self.assertEqual((first.status, first.sha256), (200, sha256))
        with Wan(self.lab) as wan:
            again = self.fetch("hour/large")
            self.assertEqual((again.status, again.sha256), (200, sha256))
        self.assertLess(wan.received, 30_000)
        self.assertEqual(self.nginx.asked("hour/large"), [200])
        self.assertGreater(self.counted()["cache_hits"], 0)

    def test_what_may_have_changed_is_asked_for_and_not_sent_again(self):
        sha256 = self.nginx.put("plain", 2_000_000, seed=2)
        for _ in range(3):
            fetched = self.fetch("plain")
            self.assertEqual((fetched.status, fetched.sha256), (200, sha256))
        self.assertEqual(self.nginx.asked("plain"), [200, 304, 304])
        changed = self.nginx.put("plain", 1_000_000, seed=3)
        self.assertEqual(self.fetch("plain").sha256, changed)

    def test_uploads_small_and_large_arrive_and_change_what_is_stored(self):
        for seed, size in enumerate((1, 100, 70_000, 20_000_000)):
            file = self.lab.scratch / "upload"
            file.write_bytes(b"".join(tcp.pieces(size, seed)))
            self.assertIn(self.fetch("put/file", "--upload-file", file).status, (201, 204))
            self.assertEqual(web.sha256_of(self.nginx.files / "put/file"), web.sha256_of(file))
            for _ in range(2):
                self.assertEqual(self.fetch("put/file").sha256, web.sha256_of(file))

    def test_heads_ranges_and_conditions_are_right(self):
        self.nginx.put("hour/parts", 100_000)
        self.fetch("hour/parts")
        self.assertEqual(self.fetch("hour/parts", "--range", "10-19").size, 10)
        words = ("--http2-prior-knowledge",)
        head = self.lab.run("client", *web.curl_words("hour/parts", "-", "--head", *words, port=8080)).splitlines()
        self.assertEqual((head[0].split()[1], "content-length: 100000" in head), ("200", True))
        tag = next(line.split(": ")[1] for line in head if line.startswith("etag: "))
        validated = self.lab.run("client", *web.curl_words("hour/parts", "-", "--include", "--header", f"If-None-Match: {tag}", *words,
                                                           port=8080))
        self.assertIn(" 304", validated.splitlines()[0])
        self.assertIn("cache-status: longhaul;hit", validated)

    def test_nghttp_and_h2load_get_everything(self):
        self.nginx.put("hour/load", 50_000)
        url = f"http://{SERVER}:8080/hour/load"
        for path, size in (("hour/load", 50_000), ("large-one", 5_000_000)):
            sha256 = self.nginx.put(path, size, seed=7)
            got = self.lab.run("client", "sh", "-c", f"nghttp http://{SERVER}:8080/{path} | sha256sum").split()[0]
            self.assertEqual(got, sha256)
        said = self.lab.run("client", "h2load", "-n", 3000, "-c", 10, "-m", 50, url, seconds=120)
        self.assertIn("3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed", said)
        # What it counts as data is without the framing.
        self.assertIn(str(3000 * 50_000), re.sub(r"[^0-9 ]", " ", said))
        self.assertLess(len(self.nginx.asked("hour/load")), 100)

    def test_many_streams_of_many_clients_carry_the_same_bytes(self):
        sums = {f"hour/many-{number}": self.nginx.put(f"hour/many-{number}", 200_000, seed=number) for number in range(30)}

        def all_of_them(_):
            folder = self.lab.scratch / f"many-{next(self.lab.counter)}"
            folder.mkdir()
            (first, target), *others = [(path, folder / path.split("/")[1]) for path in sums]
            words = [word for path, file in others for word in ("--output", file, f"https://intranet.corp/{path}")]
            # Not with --http2-prior-knowledge: curl 7.88 fails so with several streams, directly, too.
            self.lab.run("client", *tls.curl_words("intranet.corp", first, "--cacert", self.authority.certificate, "--http2", "--parallel",
                                                   "--parallel-max", 30, "--max-time", 100, "--output", target), *words, seconds=110)
            return {path: web.sha256_of(folder / path.split("/")[1]) for path in sums}

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for got in threads.map(all_of_them, range(4)):
                self.assertEqual(got, sums)

    def test_decrypted_connections_are_continued_and_answered_from_the_store(self):
        sums = [self.nginx.put(f"hour/tls-{number}", 500_000, seed=number) for number in range(4)]
        paths = [f"hour/tls-{number}" for number in range(4)]
        before = self.branch.reasons().get("http_begun", 0)
        self.assertEqual(self.curl_tls(paths)[0], sums)
        with Wan(self.lab) as wan:
            again, heads = self.curl_tls(["none", *paths], "--fail-early")
        self.assertEqual(again[1:], sums)
        self.assertEqual(heads.count("cache-status: longhaul;hit"), 4)
        self.assertLess(wan.received, 60_000)
        self.assertEqual([self.asked_over_tls(path) for path in paths], [1] * 4)
        self.assertEqual(self.branch.reasons().get("http_begun", 0), before)
        # The other version of HTTP has the same store.
        _, heads = self.curl_tls(["none", "hour/tls-1"], "--http1.1")
        self.assertIn("longhaul;hit", heads)

    def test_a_large_upload_on_a_decrypted_connection_arrives(self):
        file = self.lab.scratch / "large-upload"
        file.write_bytes(b"".join(tcp.pieces(10_000_000, 5)))
        self.lab.run("client", *tls.curl_words("intranet.corp", "put/large", "--cacert", self.authority.certificate, "--http2",
                                               "--max-time", 100, "--output", self.lab.scratch / "answer", "--upload-file", file))
        self.assertEqual(web.sha256_of(self.nginx.files / "put/large"), web.sha256_of(file))

    def test_a_slow_client_gets_what_a_server_sent_before_it_closed(self):
        expected = self.nginx.put("once", 3_500_000, seed=7)
        target = self.lab.scratch / "once"
        for _ in range(2):
            self.lab.run("client", *tls.curl_words("once.corp", "once", "--cacert", self.authority.certificate, "--http2",
                                                   "--max-time", 60, "--limit-rate", "2M", "--output", target))
            self.assertEqual(web.sha256_of(target), expected)

    def test_a_page_of_sixty_objects_in_a_browser_and_its_second_visitor(self):
        names = [f"object-{number}" for number in range(OBJECTS)]
        sums = {name: self.nginx.put(f"hour/{name}", 20_000, seed=100 + number) for number, name in enumerate(names)}
        (self.nginx.files / "hour/page.html").write_text(f"""<!DOCTYPE html><title>page</title><script>
          const hex = bytes => [...new Uint8Array(bytes)].map(b => b.toString(16).padStart(2, "0")).join("");
          const one = async name => [name, hex(await crypto.subtle.digest("SHA-256", await (await fetch(name)).arrayBuffer()))];
          window.sums = Promise.all({json.dumps(names)}.map(one)).then(Object.fromEntries);
        </script>""")
        hits = []
        for visitor in range(2):
            before = self.counted("tls")["cache_hits"]
            options = (f"--host-resolver-rules=MAP intranet.corp {SERVER}", "--ignore-certificate-errors")
            with Browser(self.lab, "client", self.lab.scratch / f"profile-{visitor}", options=options) as browser:
                browser.open("https://intranet.corp/hour/page.html")
                browser.until("window.sums !== undefined")
                self.assertEqual(browser.value("window.sums"), sums)
                self.assertEqual(browser.value("performance.getEntriesByType('resource').map(e => e.nextHopProtocol).find(p => p != 'h2')"),
                                 None)
            hits.append(self.counted("tls")["cache_hits"] - before)
        self.assertEqual([self.asked_over_tls(f"hour/{name}") for name in names], [1] * OBJECTS)
        # The page itself, if it was asked for when the near side had the keys.
        self.assertEqual(hits[0], 0)
        self.assertIn(hits[1], (OBJECTS, OBJECTS + 1))

    def test_switched_off_running_connections_end_and_new_ones_pass(self):
        self.nginx.put("hour/off", 1000)
        self.branch.set(http=False)
        try:
            for _ in range(2):
                self.assertEqual(self.fetch("hour/off").status, 200)
            self.assertEqual(len(self.nginx.asked("hour/off")), 2)
        finally:
            self.branch.set(http=True)
        until(lambda: self.fetch("hour/off").status == 200 and len(self.nginx.asked("hour/off")) == 3, what="it is on again")


class Http2Prefetch(Http2):
    """The same with prefetch, when the far side also terminates HTTP/2."""

    both = {"features": {"http.prefetch": True}}
    test_a_page_of_sixty_objects_in_a_browser_and_its_second_visitor = None  # its objects are no longer requested by the browser

    def test_what_a_page_embeds_is_fetched_ahead_on_a_decrypted_connection(self):
        names = [f"ahead-{number}.js" for number in range(OBJECTS)]
        # Together they are below 256 KiB: more is fetched ahead only once the line's rate is known.
        for number, name in enumerate(names):
            (self.nginx.files / name).write_text(f"(window.got ??= []).push({number});//" + f"{number}" * 1500)
        (self.nginx.files / "ahead.html").write_text("<!DOCTYPE html><title>page</title>" +
                                                     "".join(f'<script src="{name}"></script>' for name in names))
        before = self.counted("tls")
        options = (f"--host-resolver-rules=MAP intranet.corp {SERVER}", "--ignore-certificate-errors")
        with Browser(self.lab, "client", self.lab.scratch / "profile-ahead", options=options) as browser:
            began = time.monotonic()
            browser.open("https://intranet.corp/ahead.html")
            browser.until(f"window.got?.length == {OBJECTS}")
            seconds = time.monotonic() - began
            self.assertEqual(browser.value("window.got"), list(range(OBJECTS)))
        # Twice what the browser requests after the object has expired, on a busy machine.
        counted = self.counted("tls")
        ahead, used = (counted[name] - before[name] for name in ("objects_ahead", "objects_ahead_used"))
        # All of them, but what the browser asks for before its turn comes, on a busy machine.
        self.assertGreater(ahead, 0)
        self.assertLessEqual(ahead, OBJECTS)
        if seconds < 8:
            self.assertGreater(used, 0)
        # At most once ahead and once for the browser, whose request may cross the object.
        asked = [self.asked_over_tls(name) for name in names]
        self.assertLessEqual(set(asked), {1, 2})
        self.assertGreaterEqual(sum(asked), ahead + OBJECTS - used)

    def visits_an_application(self, name):
        """Returns whether a browser with a cookie used the manifest and the right icon, both fetched ahead."""
        icons = {side: f"{name}-{side}.png" for side in (512, 192, 96)}
        for icon in icons.values():
            self.nginx.put(icon, 5000, seed=icon)
        listed = [{"src": icon, "sizes": f"{side}x{side}"} for side, icon in icons.items()]
        (self.nginx.files / f"{name}.json").write_text(json.dumps({"name": "shop", "start_url": "/", "display": "standalone", "icons": listed}))
        (self.nginx.files / f"{name}.html").write_text(f"<!DOCTYPE html><title>page</title><link rel=manifest href={name}.json>")
        (self.nginx.files / "first.html").write_text("<!DOCTYPE html><title>first</title>")
        before = self.counted("tls")["objects_ahead_used"]

        def used():
            return self.counted("tls")["objects_ahead_used"] - before

        # Without any certificate error, like a browser that trusts the authority; otherwise it loads no icon.
        options = (f"--host-resolver-rules=MAP intranet.corp {SERVER}",
                   f"--ignore-certificate-errors-spki-list={tls.key_digest(self.certificate)}")
        with Browser(self.lab, "client", self.lab.scratch / f"profile-{name}", options=options) as browser:
            browser.open("https://intranet.corp/first.html")
            browser.until("document.title == 'first'")
            browser.value("document.cookie = 'me=1; path=/'")
            browser.open(f"https://intranet.corp/{name}.html")
            until(lambda: used() == 2 or self.asked_over_tls(f"{name}.json") + self.asked_over_tls(icons[192]) > 2,
                  what="the browser has asked for both")
        self.assertEqual([self.asked_over_tls(icons[side]) for side in (512, 96)], [0, 0])
        return used() == 2 and self.asked_over_tls(f"{name}.json") == self.asked_over_tls(icons[192]) == 1

    def test_the_manifest_of_a_page_and_its_icon_come_ahead_of_chromiums_requests(self):
        # On a busy machine the browser may ask after an object has expired: then again.
        self.assertTrue(any(self.visits_an_application(f"shop-{attempt}") for attempt in range(5)))


if __name__ == "__main__":
    unittest.main()
