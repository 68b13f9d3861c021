# SPDX-License-Identifier: Apache-2.0
"""The control API and the page with TLS for other machines: a client in the LAN asks with curl, a browser and Prometheus."""

import json
import pathlib
import shutil
import subprocess
import unittest

import tls
from browser import PROGRAM, Browser
from lab import BRANCH, BUILD, until
from pair import PairTest

PORT, NAME = 7602, "branch.test"
PAGE = f"https://{BRANCH}:{PORT}/"
PICTURES = BUILD.parent / "screenshots"


class ControlTls(PairTest):
    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "authority")
        cls.use(cls.authority.issue(NAME))
        cls.branch.settings["control"] = {"tls_listen": f"{BRANCH}:{PORT}", "tls_certificate": "control.crt",
                                          "tls_key": "control.key"}

    @classmethod
    def use(cls, pair):
        """As an operator does: the key belongs to the daemon's user, who reads it again at a reload."""
        for file, name in zip(pair, ("control.crt", "control.key")):
            shutil.copy(file, cls.branch.folder / name)
        shutil.chown(cls.branch.folder / "control.key", "longhaul", "longhaul")
        (cls.branch.folder / "control.key").chmod(0o600)

    def token(self):
        return (self.branch.folder / "state/control.token").read_text().strip()

    def curl(self, path, *options, token=None, scheme="https", name=NAME):
        """(status, body) of what a client in the branch's LAN gets."""
        words = ["curl", "-sS", "--noproxy", "*", "--cacert", self.authority.certificate, "--resolve", f"{name}:{PORT}:{BRANCH}",
                 "-w", "\n%{http_code}", *options, f"{scheme}://{name}:{PORT}{path}"]
        if token:
            words[1:1] = ["-H", f"Authorization: Bearer {token}"]
        body, _, status = self.lab.run("client", *words, check=False).stdout.rpartition("\n")
        return int(status or 0), body

    def test_other_machines_need_the_token_for_everything_but_the_pages_own_files(self):
        for path in ("/v1/status", "/v1/flows", "/metrics", "/v1/why?tuple=10.10.1.2-10.10.2.2:80", "/v1/features"):
            with self.subTest(path):
                self.assertEqual(self.curl(path)[0], 401)
                self.assertEqual(self.curl(path, token="0" * 64)[0], 401)
                self.assertEqual(self.curl(path, token=self.token())[0], 200)
        for path in ("/", "/page.js", "/page.css"):
            self.assertEqual(self.curl(path)[0], 200)
        self.assertEqual(json.loads(self.curl("/v1/status", token=self.token())[1])["site"], "branch")
        self.assertEqual(self.branch.get("/v1/status")["control_tls"], f"{BRANCH}:{PORT}")

    def test_a_change_needs_the_token_and_a_page_of_another_site_changes_nothing(self):
        change = ("-X", "PATCH", "-d", '{"compression": false}')
        self.assertEqual(self.curl("/v1/features", *change)[0], 401)
        self.assertEqual(self.curl("/v1/features", *change, "-H", "Origin: https://evil.test", token=self.token())[0], 403)
        self.assertTrue(self.branch.status()["features"]["compression"])
        own = ("-H", f"Origin: https://{NAME}:{PORT}")
        self.assertEqual(self.curl("/v1/features", *change, *own, token=self.token())[0], 200)
        self.assertFalse(self.branch.status()["features"]["compression"])
        self.branch.set(compression=True)

    def test_without_tls_or_with_an_old_version_nothing_is_answered(self):
        self.assertEqual(self.curl("/v1/status", token=self.token(), scheme="http")[0], 0)
        self.assertEqual(self.curl("/v1/status", "--tls-max", "1.1", token=self.token())[0], 0)
        self.assertEqual(self.curl("/v1/status", "--tlsv1.2", "--tls-max", "1.2", token=self.token())[0], 200)
        with self.lab.inside("client"):  # the loopback listener is not reachable from the LAN
            self.assertNotEqual(subprocess.run(["curl", "-s", "-m", "5", f"http://{BRANCH}:7601/v1/status"], check=False,
                                               capture_output=True).returncode, 0)

    def test_strangers_that_hold_every_connection_do_not_shut_out_this_machine(self):
        flood = self.lab.start("client", "python3", "-c", f"""
import signal, socket
held = [socket.create_connection(("{BRANCH}", {PORT})) for _ in range(60)]
print("held", flush=True)
signal.pause()
""", name="strangers")
        try:
            flood.lines_with("held")
            self.assertEqual(self.branch.get("/v1/status")["site"], "branch")
            self.assertIn("OK", self.branch.longhaul("status"))
        finally:
            flood.kill()
        # When they are gone, or out of time, others are served again.
        until(lambda: self.curl("/", "-m", "10")[0] == 200, what="a client is served")

    def test_a_reload_takes_the_renewed_certificate_and_refuses_a_wrong_one(self):
        def serial():
            text = self.lab.run("client", "openssl", "s_client", "-connect", f"{BRANCH}:{PORT}", text="", check=False).stdout
            return subprocess.run(["openssl", "x509", "-noout", "-serial"], input=text, capture_output=True, text=True,
                                  check=True).stdout

        before = serial()
        old_key = (self.branch.folder / "control.key").read_bytes()
        self.use(self.authority.issue(NAME))
        self.branch.longhaul("reload")
        renewed = serial()
        self.assertNotEqual(renewed, before)
        new_key = (self.branch.folder / "control.key").read_bytes()
        (self.branch.folder / "control.key").write_bytes(old_key)
        refused = self.branch.longhaul("reload", check=False)
        self.assertIn("does not match the certificate", refused.stderr)
        self.assertEqual(serial(), renewed)
        (self.branch.folder / "control.key").write_bytes(new_key)

    def test_check_says_what_is_served_and_which_file_is_wrong(self):
        def check():
            done = self.branch.longhaul("check", self.branch.file, check=False)
            return done.stdout + done.stderr

        self.assertIn(f"Other machines reach the page and the API at https://{BRANCH}:{PORT}/; there every request needs the token.",
                      check())
        key = self.branch.folder / "control.key"
        key.chmod(0o644)
        self.assertIn("control.key: other users can read or change this private key; run chmod 600 on it.", check())
        key.chmod(0o600)
        certificate = self.branch.folder / "control.crt"
        kept = certificate.read_bytes()
        certificate.write_text("no certificate\n")
        self.assertIn("control.crt: this is not a certificate in PEM format", check())
        certificate.unlink()
        self.assertIn("control.crt: the certificate cannot be read: No such file or directory.", check())
        certificate.write_bytes(kept)
        certificate.chmod(0o644)

    def test_longhaul_page_prints_both_addresses(self):
        self.assertEqual(self.branch.longhaul("page").split(),
                         [f"http://127.0.0.1:7601/#token={self.token()}", f"https://{BRANCH}:{PORT}/#token={self.token()}"])

    @unittest.skipUnless(PROGRAM, "chromium is not installed")
    def test_a_browser_on_a_phone_in_the_lan_opens_the_page_and_types_the_token(self):
        with Browser(self.lab, "client", self.lab.scratch / "browser", width=390, height=844) as browser:
            browser.call("Security.setIgnoreCertificateErrors", ignore=True)
            browser.open(PAGE)
            browser.until("!!document.querySelector('#verdict input')")
            browser.screenshot(PICTURES / "page-asks-for-token.png")
            self.assertNotIn("datacenter", browser.text("body"))
            browser.type("wrong")
            browser.press("Enter")
            browser.until("document.querySelector('#verdict').innerText.includes('wrong token')")
            browser.value("document.querySelector('#verdict input').focus()")
            browser.type(self.token())
            browser.press("Enter")
            browser.until("document.querySelector('#site').innerText == 'branch'")
            browser.until("document.querySelector('#links').innerText.includes('datacenter')")
            self.assertFalse(browser.value("!!document.querySelector('#verdict input')"))

    @unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
    def test_prometheus_scrapes_from_another_machine(self):
        folder = pathlib.Path(self.lab.scratch / "prometheus-tls")
        folder.mkdir()
        (folder / "token").write_text(self.token())
        (folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: longhaul
    scheme: https
    tls_config: {{ca_file: {self.authority.certificate}, server_name: {NAME}}}
    authorization: {{credentials_file: {folder / "token"}}}
    static_configs: [{{targets: ["{BRANCH}:{PORT}"]}}]
""")
        process = self.lab.start("client", "prometheus", f"--config.file={folder / 'prometheus.yml'}",
                                 f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=127.0.0.1:9090", name="prometheus")

        def scraped():
            done = self.lab.run("client", "curl", "-s", "--noproxy", "*", "http://127.0.0.1:9090/api/v1/query?query=longhaul_info", check=False)
            return '"site":"branch"' in done.stdout

        try:
            until(scraped, what="Prometheus has scraped the daemon")
        finally:
            process.stop(30)


if __name__ == "__main__":
    unittest.main()
