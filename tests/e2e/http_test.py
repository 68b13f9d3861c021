# SPDX-License-Identifier: Apache-2.0
"""HTTP between curl and nginx: what the cache answers is what the server has, and the server is asked no more than needed."""

import concurrent.futures
import os
import unittest

import tcp
import web
from lab import SERVER, SERVER6, until
from pair import PairTest
from reduction_test import Wan

PLACES = """
  log_format asked '$request_uri $http_if_none_match $status'; access_log {folder}/asked asked;
  server {{ listen 80 backlog=4096; listen [::]:80 backlog=4096; root {folder}/files;
    location /hour/ {{ add_header Cache-Control max-age=3600; }}
    location /mine/ {{ add_header Cache-Control private; etag off; }}
    location /asks/ {{ add_header Cache-Control no-cache; }}
    location /language/ {{ add_header Cache-Control max-age=3600; add_header Vary Accept-Language; }}
    location /moved/ {{ add_header Cache-Control max-age=3600; return 301 /hour/$arg_to; }}
    location /elsewhere/ {{ return 302 /hour/$arg_to; }}
    location /put/ {{ dav_methods PUT; add_header Cache-Control max-age=3600; client_max_body_size 20m; }}
  }}
}}
"""


class Asked(web.Nginx):
    places = PLACES

    def configuration(self):
        head = web.CONFIGURATION.split("  access_log off;")[0]
        rest = web.CONFIGURATION.split("  access_log off;")[1].split("  server {{")[0]
        return (head + rest + self.places).format(folder=self.folder)

    def asked(self):
        """The requests that came to it: target, tag asked about, status."""
        self.log_everything()
        file = self.folder / "asked"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


class Http(PairTest):
    line = ("51.84mbit,20",)

    @classmethod
    def prepare(cls):
        cls.nginx = Asked(cls.lab)
        for place in ("hour", "mine", "asks", "language", "put"):
            (cls.nginx.files / place).mkdir()
            os.chmod(cls.nginx.files / place, 0o777)

    def fetch(self, path, *options, **how):
        return web.fetch(self.lab, path, *options, **how)

    def counted(self):
        return next(each["counters"] for each in self.branch.status()["modules"] if each["module"] == "http")

    def asked_for(self, path):
        return [each for each in self.nginx.asked() if each[0] == f"/{path}"]

    def test_what_is_fresh_is_answered_without_the_line(self):
        sha256 = self.nginx.put("hour/large", 3_000_000)
        for _ in range(2):
            first = self.fetch("hour/large")
            self.assertEqual((first.status, first.sha256), (200, sha256))
        with Wan(self.lab) as wan:
            again = self.fetch("hour/large", "--http1.0")
            self.assertEqual((again.status, again.sha256), (200, sha256))
        self.assertLess(wan.received, 30_000)
        self.assertEqual(len(self.asked_for("hour/large")), 1)
        self.assertGreater(self.counted()["cache_hits"], 0)
        self.assertIn("longhaul_module_cache_hits_total", self.branch.get("/metrics"))

    def test_redirects_that_say_how_long_they_are_valid_are_answered_without_the_line(self):
        sha256 = self.nginx.put("hour/target", 1000)
        for path, times in (("moved/?to=target", 1), ("elsewhere/?to=target", 2)):
            for _ in range(2):
                got = self.fetch(path, "--location")
                self.assertEqual((got.status, got.sha256), (200, sha256))
            self.assertEqual(len(self.asked_for(path)), times)
        self.assertEqual(len(self.asked_for("hour/target")), 1)

    def test_what_may_have_changed_is_asked_for_and_not_sent_again(self):
        for path in ("plain", "asks/always"):
            sha256 = self.nginx.put(path, 2_000_000, seed=2)
            for _ in range(3):
                fetched = self.fetch(path)
                self.assertEqual((fetched.status, fetched.sha256), (200, sha256))
            self.assertEqual([status for _, _, status in self.asked_for(path)], ["200", "304", "304"])
            changed = self.nginx.put(path, 1_000_000, seed=3)
            fetched = self.fetch(path)
            self.assertEqual((fetched.status, fetched.sha256), (200, changed))

    def test_what_is_private_and_what_is_asked_for_with_credentials_is_not_stored(self):
        self.nginx.put("mine/own", 10_000)
        self.nginx.put("hour/secret", 10_000)
        for _ in range(2):
            self.fetch("mine/own")
            self.fetch("hour/secret", "--user", "name:word")
        self.assertEqual(len(self.asked_for("mine/own")), 2)
        self.assertEqual([tag for _, tag, _ in self.asked_for("hour/secret")], ["-", "-"])

    def test_the_name_alone_never_decides(self):
        """A client that names another server than it speaks to poisons nothing: the address is part of the key."""
        self.nginx.put("hour/name", 1000, seed=1)
        self.fetch("hour/name", "--header", "Host: intranet.corp", host=SERVER6)
        self.fetch("hour/name", "--header", "Host: intranet.corp", host=SERVER)
        self.assertEqual(len(self.asked_for("hour/name")), 2)

    def test_each_language_is_stored_for_itself(self):
        self.nginx.put("language/page", 1000)
        for language in ("de", "fr", "de", "fr"):
            self.fetch("language/page", "--header", f"Accept-Language: {language}")
        self.assertEqual(len(self.asked_for("language/page")), 2)

    def test_a_change_by_the_client_is_seen_at_once(self):
        for seed in (1, 2):
            file = self.lab.scratch / "upload"
            file.write_bytes(b"".join(tcp.pieces(2_000_000, seed)))
            self.fetch("put/file", "--upload-file", file)
            for _ in range(2):
                self.assertEqual(self.fetch("put/file").sha256, web.sha256_of(file))
        self.assertEqual([status for _, _, status in self.asked_for("put/file")].count("200"), 2)

    def test_ranges_conditions_and_pipelined_requests_are_right(self):
        self.nginx.put("hour/parts", 100_000)
        whole = self.fetch("hour/parts")
        self.assertEqual(self.fetch("hour/parts", "--range", "10-19").size, 10)
        head = self.lab.run("client", *web.curl_words("hour/parts", "-", "--head")).splitlines()
        self.assertEqual((head[0].split()[1], f"Content-Length: {whole.size}" in head), ("200", True))
        tag = next(line.split(": ")[1] for line in head if line.startswith("ETag: "))
        validated = self.lab.run("client", *web.curl_words("hour/parts", "-", "--include", "--header", f"If-None-Match: {tag}"))
        self.assertIn(" 304 ", validated.splitlines()[0])
        with tcp.connect(self.lab, SERVER, 80).socket as connection:
            asked = b"".join(b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in (b"hour/parts", b"none", b"hour/parts"))
            connection.sendall(asked + b"GET /hour/parts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            read = connection.makefile("rb").read()  # to the end, which the last request asks for
        statuses = []
        for part in read.split(b"HTTP/1.1 ")[1:]:
            head, _, content = part.partition(b"\r\n\r\n")
            statuses.append((int(head[:3]), len(content)))
        self.assertEqual([status for status, _ in statuses], [200, 404, 200, 200])
        self.assertEqual({size for status, size in statuses if status == 200}, {whole.size})

    def test_many_clients_at_once_get_the_same_bytes(self):
        sums = {f"hour/many-{number}": self.nginx.put(f"hour/many-{number}", 50_000, seed=number) for number in range(10)}
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for path, fetched in threads.map(lambda path: (path, self.fetch(path)), [*sums] * 6):
                self.assertEqual((fetched.status, fetched.sha256), (200, sums[path]))

    def test_what_is_cleared_is_fetched_again(self):
        self.nginx.put("hour/cleared", 100_000)
        for _ in range(2):
            self.fetch("hour/cleared")
        self.assertRegex(self.branch.longhaul("clear-cache", "objects"), r"^cleared [1-9].* of stored responses$")
        self.assertEqual(self.fetch("hour/cleared").status, 200)
        self.assertEqual(len(self.asked_for("hour/cleared")), 2)

    def test_switched_off_every_request_reaches_the_server(self):
        self.nginx.put("hour/off", 1000)
        self.branch.set(http=False)
        try:
            for _ in range(2):
                self.assertEqual(self.fetch("hour/off").status, 200)
            self.assertEqual(len(self.asked_for("hour/off")), 2)
        finally:
            self.branch.set(http=True)
        until(lambda: self.fetch("hour/off").status == 200 and len(self.asked_for("hour/off")) == 3, what="it is on again")


if __name__ == "__main__":
    unittest.main()
