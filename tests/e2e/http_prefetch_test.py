# SPDX-License-Identifier: Apache-2.0
"""What a page embeds, fetched ahead between nginx and programs we did not write: each gets what the server has, and the server is
asked once for what a browser loads."""

import collections
import time
import unittest

import http_test
import tcp
import web
from browser import Browser
from lab import SERVER, until
from pair import PairTest
from reduction_test import Wan

OBJECTS = 60
PLACES = """
  log_format asked '$request_uri $http_cookie $status'; access_log {folder}/asked asked;
  types {{ text/html html; text/css css; text/javascript js; image/png png; }}
  gzip on; gzip_types text/css;
  server {{ listen 80 backlog=4096; listen [::]:80 backlog=4096; root {folder}/files;
    location /stored/ {{ add_header Cache-Control max-age=3600; }}
    location /private/ {{ add_header Cache-Control private; add_header Vary Cookie; etag off; }}
  }}
}}
"""


class Pages(http_test.Asked):
    places = PLACES


class Prefetch(PairTest):
    line = ("51.84mbit,20",)
    both = {"features": {"http.prefetch": True}}

    @classmethod
    def prepare(cls):
        cls.nginx = Pages(cls.lab)
        for place in ("stored", "private"):
            (cls.nginx.files / place).mkdir()

    def counted(self):
        return next((each["counters"] for each in self.branch.status()["modules"] if each["module"] == "http"), collections.Counter())

    def injected(self):
        modules = self.datacenter.status()["modules"]
        return next((each["counters"]["injected"] for each in modules if each["module"] == "http"), 0)

    def times_asked(self, path):
        return sum(each[0] == f"/{path}" for each in self.nginx.asked())

    def page(self, place, name):
        """A page that embeds a style sheet, which names a picture, a script and two pictures: their SHA-256."""
        paths = {f"{place}/{name}-{each}": None for each in ("1.js", "2.png", "3.png", "4.png")}
        for number, path in enumerate(paths):
            paths[path] = self.nginx.put(path, 100_000, seed=f"{place}/{name}-{number}")
        style = self.nginx.files / place / f"{name}.css"
        style.write_text(f"p {{ background: url({name}-4.png) }}" + "/* filled up */" * 1000)
        html = self.nginx.files / place / f"{name}.html"
        html.write_text(f"<!DOCTYPE html><link rel=stylesheet href={name}.css><script src='{name}-1.js'></script>"
                        f"<img src=/{place}/{name}-2.png><img src='{name}-3.png'><a href='{name}-none'>none</a>" + "<p>text" * 1000)
        paths[f"{place}/{name}.css"] = web.sha256_of(style)
        return f"{place}/{name}.html", paths

    def curl(self, paths, *options):
        """All of them by curl, on one connection after the other: their SHA-256, and the heads."""
        heads = self.lab.scratch / f"heads-{next(self.lab.counter)}"
        targets = [self.lab.scratch / f"fetched-{next(self.lab.counter)}" for _ in paths]
        more = [word for path, target in zip(paths[1:], targets[1:]) for word in ("--output", target, f"http://{SERVER}/{path}")]
        self.lab.run("client", *web.curl_words(paths[0], targets[0], "--header", "Accept: text/html, */*", "--user-agent", "browser",
                                               "--compressed", "--max-time", 60, "--dump-header", heads, *options), *more)
        return [web.sha256_of(target) for target in targets], heads.read_text()

    def test_what_a_page_embeds_is_what_the_server_has_and_asked_for_once(self):
        for place in ("stored", "private"):
            for attempt in range(6):  # on a busy host a request waits in vain for an object that is late, and goes itself
                page, objects = self.page(place, f"one-{attempt}")
                sums, heads = self.curl([page, *objects], "--cookie", "me=1")
                self.assertEqual(sums, [web.sha256_of(self.nginx.files / page), *objects.values()])
                asked = {path: self.times_asked(path) for path in objects}
                self.assertLessEqual(set(asked.values()), {1, 2})
                hits = heads.count("Cache-Status: longhaul;hit;detail=prefetched")
                self.assertEqual(self.times_asked(f"{place}/one-{attempt}-none"), 0)
                if hits == len(objects) and 2 not in asked.values():
                    break
            self.assertEqual(asked, dict.fromkeys(objects, 1))
            self.assertEqual(hits, len(objects))
        counters = self.counted()
        self.assertGreaterEqual(counters["objects_ahead_used"], 10)
        self.assertIn("longhaul_module_objects_ahead_used_total", self.branch.get("/metrics"))

    def visit(self, page, cookie):
        """As a browser asks for a page, on a connection that stays open."""
        there = tcp.connect(self.lab, SERVER, 80)
        there.socket.sendall(f"GET /{page} HTTP/1.1\r\nHost: {SERVER}\r\nAccept: text/html\r\nUser-Agent: browser\r\n"
                             f"Accept-Encoding: deflate, gzip, br, zstd\r\nCookie: {cookie}\r\n\r\n".encode())
        return there

    def test_other_connections_are_answered_without_the_line_and_others_are_not(self):
        page, objects = self.page("private", "two")
        before, asked_by = self.counted()["objects_ahead"], self.visit(page, "me=1")
        with asked_by.socket:
            until(lambda: self.counted()["objects_ahead"] == before + len(objects), what="everything is there")
            # curl's own Accept-Encoding is what this curl can decode.
            options = ("--user-agent", "browser", "--header", "Accept-Encoding: deflate, gzip, br, zstd")
            path, sha256 = next(iter(objects.items()))
            self.assertEqual(web.fetch(self.lab, path, *options, "--cookie", "me=2").sha256, sha256)
            self.assertEqual(web.fetch(self.lab, path, *options).sha256, sha256)
            self.assertEqual(self.times_asked(path), 3)
            with Wan(self.lab) as wan:
                for path in list(objects)[:4]:
                    self.assertEqual(web.fetch(self.lab, path, *options, "--cookie", "me=1").sha256, objects[path])
            self.assertLess(wan.received, 100_000)
            self.assertEqual([self.times_asked(path) for path in list(objects)[1:4]], [1, 1, 1])

    def test_what_nobody_asks_for_is_counted_as_wasted(self):
        page, objects = self.page("private", "three")
        before = self.counted()
        with self.visit(page, "me=1").socket:
            until(lambda: self.counted()["objects_ahead"] >= before["objects_ahead"] + len(objects), what="everything is there")
            # It is counted when the next HTTP connection has something to do.
            until(lambda: web.fetch(self.lab, page).status == 200 and
                  self.counted()["objects_ahead_wasted"] >= before["objects_ahead_wasted"] + len(objects), seconds=40,
                  what="it is forgotten")

    def test_a_page_of_sixty_objects_in_a_browser(self):
        names = [f"object-{number}.js" for number in range(OBJECTS)]
        for number, name in enumerate(names):
            (self.nginx.files / name).write_text(f"(window.got ??= []).push({number});//" + f"{number}" * 3000)
        (self.nginx.files / "sixty.html").write_text("<!DOCTYPE html><title>page</title>" +
                                                     "".join(f'<script src="{name}"></script>' for name in names))
        before = self.counted()
        with Browser(self.lab, "client", self.lab.scratch / "profile") as browser:
            began = time.monotonic()
            browser.open(f"http://{SERVER}/sixty.html")
            browser.until(f"window.got?.length == {OBJECTS}")
            seconds = time.monotonic() - began
            self.assertEqual(browser.value("window.got"), list(range(OBJECTS)))
        # Twice what the browser requests after the object has expired, on a busy machine, or the far side has given up.
        counted = self.counted()
        ahead, used = (counted[name] - before[name] for name in ("objects_ahead", "objects_ahead_used"))
        if seconds < 8:
            self.assertGreater(used, 0)
        # At most once ahead and once for the browser, whose request may cross the object.
        asked = [self.times_asked(name) for name in names]
        self.assertLessEqual(set(asked), {1, 2})
        self.assertGreaterEqual(sum(asked), ahead + OBJECTS - used)

    def test_modules_that_import_modules_in_a_browser(self):
        names = [f"module-{number}.js" for number in range(6)]
        for number, name in enumerate(names):
            imports = f"import './module-{number + 1}.js'; " if number < 5 else ""
            (self.nginx.files / name).write_text(f"// the licence\n{imports}(window.ran ??= []).push({number})")
        (self.nginx.files / "modules.html").write_text("<!DOCTYPE html><title>page</title><script type=module src=module-0.js></script>")
        before = self.counted()["objects_ahead"]
        with Browser(self.lab, "client", self.lab.scratch / "profile-modules") as browser:
            browser.open(f"http://{SERVER}/modules.html")
            browser.until("window.ran?.length == 6")
            self.assertEqual(browser.value("window.ran"), [5, 4, 3, 2, 1, 0])
        # The far side follows the chain at its own pace; the browser asks for what has not come yet.
        self.assertGreater(self.counted()["objects_ahead"], before)
        self.assertLessEqual({self.times_asked(name) for name in names}, {1, 2})

    def test_switched_off_nothing_is_fetched_ahead(self):
        page, objects = self.page("private", "off")
        before = self.injected()
        self.branch.set(**{"http.prefetch": False})
        try:
            sums, heads = self.curl([page, *objects])
        finally:
            self.branch.set(**{"http.prefetch": True})
        self.assertEqual(sums[1:], list(objects.values()))
        self.assertNotIn("prefetched", heads)
        self.assertEqual(self.injected(), before)


if __name__ == "__main__":
    unittest.main()
