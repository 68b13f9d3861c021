# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser, before a running pair: what it shows, by keyboard, on a phone, light and dark, and
what a hostile page in the same browser can do. Screenshots are left in build/screenshots for people to look at."""

import http.server
import json
import re
import threading
import unittest

import smb
import smb_client
import tcp
import web
from browser import PROGRAM, Browser
from lab import BUILD, SERVER, Lab, until
from pair import CONTROL_PORT, Pair, link_cut_off, use_two_paths, wait_paths
from paths_test import CUT_IPV4
from udp_test import rules

PAGE = f"http://127.0.0.1:{CONTROL_PORT}/"
PICTURES = BUILD.parent / "screenshots"
ROW = "document.querySelector('#flows tbody tr')"


@unittest.skipUnless(PROGRAM, "chromium is not installed")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab())
        cls.pair = cls.enterClassContext(Pair(cls.lab))
        cls.branch = cls.pair.branch
        cls.server = cls.enterClassContext(tcp.Server(cls.lab, tcp.report_digest))

    def setUp(self):
        size = 2_000_000
        for _ in range(2):  # the second time as a repeat
            self.assertEqual(tcp.upload(self.lab, SERVER, self.server.port, size, 1), tcp.digest(size, 1))
        self.ends = tcp.pair(self.lab)
        self.ends[0].send(b"alive")
        self.assertEqual(self.ends[1].receive(5), b"alive")

    def browser(self, **options):
        folder = self.lab.scratch / f"browser-{self.id().rpartition('.')[2]}"
        return self.enterContext(Browser(self.lab, "branch", folder, **options))

    def opened(self, address=PAGE, **options):
        browser = self.browser(**options)
        browser.open(address)
        browser.until("document.querySelector('#verdict')?.className.length > 7 && document.querySelector('#chart path.lan')"
                      f" && {ROW}?.cells.length > 1")
        return browser

    def address_with_token(self):
        return self.branch.longhaul("page").strip()

    def test_the_page_shows_the_daemons_state_without_browser_errors(self):
        browser = self.opened()
        self.assertEqual(browser.text("#site"), "branch")
        self.assertIn("Saved", browser.text("#verdict"))
        self.assertIn("datacenter", browser.text("#links"))
        self.assertIn("up for", browser.text("#links"))
        # Without delay TCP carries, and UDP is probed.
        browser.until("document.querySelector('#link-notes').innerText.includes('TCP carries the link; UDP works but is not used.')")
        self.assertIn(str(self.server.port), browser.text("#ports"))
        self.assertIn("10.10.1.2", browser.text("#talkers"))
        self.assertIn("Dictionaries in memory", browser.text("#meters"))
        self.assertIn("compression", browser.text("#features"))
        browser.until("document.querySelector('#chart-words').textContent.includes('LAN')")
        for button in ("Day", "30 days", "10 minutes"):
            browser.value(f"[...document.querySelectorAll('#ranges button')].find(b => b.textContent == '{button}').click()")
            browser.until("chart.slots.length > 0 || chart.step > 1")
        browser.until("chart.step == 1 && chart.slots.some(slot => slot)")
        browser.screenshot(PICTURES / "page-light.png")
        self.assertEqual(browser.errors, [])

    def test_the_page_fits_a_phone_and_follows_the_dark_scheme(self):
        browser = self.opened(width=390, height=844, scheme="dark")
        browser.until("chart.slots.some(slot => slot)")
        self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), 390)
        browser.screenshot(PICTURES / "page-phone-dark.png")
        light, dark = "rgb(245, 246, 248)", browser.value("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(dark, light)
        browser.resize(1280, 900)
        browser.screenshot(PICTURES / "page-dark.png")
        self.assertEqual(browser.errors, [])

    def test_a_flow_is_found_and_explained_by_keyboard(self):
        browser = self.opened()
        browser.value("document.querySelector('#query').focus()")
        browser.type("no such flow")
        browser.until(f"{ROW}.innerText.includes('No flow matches')")
        browser.value("document.querySelector('#query').value = ''")
        browser.type("datacenter")
        browser.until(f"{ROW}.cells.length > 1")
        browser.press("Tab")  # the table, which scrolls
        browser.press("Tab")
        self.assertEqual(browser.value("document.activeElement.className"), "open")
        browser.press("Enter")
        browser.until("document.querySelector('tr.detail')?.innerText.includes('Remedy: none needed')")
        self.assertEqual(browser.value("document.activeElement.getAttribute('aria-expanded')"), "true")
        browser.screenshot(PICTURES / "page-flow.png")
        browser.until("kReaders.flows.at > performance.now() / 1000 - 1")  # it was read again, and stays open
        self.assertTrue(browser.value("document.activeElement.className == 'open' && !!document.querySelector('tr.detail')"))
        browser.value("document.querySelector('#chart').focus()")
        browser.press("ArrowLeft")
        self.assertIn("LAN", browser.text("#chart output"))

    def switch(self, browser, name):
        browser.value(f"document.querySelector('button[data-feature=\"{name}\"]').focus()")
        browser.press("Enter")
        browser.until("document.querySelector('#confirm').open")

    def test_a_feature_changes_only_after_confirmation_and_with_the_token(self):
        browser = self.opened()
        self.switch(browser, "compression")
        browser.press("Escape")
        browser.until("!document.querySelector('#confirm').open")
        self.assertTrue(self.branch.status()["features"]["compression"])

        self.switch(browser, "compression")
        browser.value("document.querySelector('#token').focus()")
        browser.type("not the token, but as long as one")
        browser.press("Enter")
        browser.until("document.querySelector('#confirm-error').textContent.includes('token')")
        browser.screenshot(PICTURES / "page-confirm.png")
        self.assertTrue(self.branch.status()["features"]["compression"])

        browser.value("document.querySelector('#token').value = ''; document.querySelector('#token').focus()")
        browser.type((self.branch.folder / "state/control.token").read_text().strip())
        browser.press("Enter")
        browser.until("document.querySelector('button[data-feature=compression]').textContent == 'off'")
        browser.until("document.querySelector('#in-force').textContent.includes('compression is off (configuration file: on)')")
        self.assertFalse(self.branch.status()["features"]["compression"])

        self.switch(browser, "fec")  # the token is kept for this tab
        self.assertTrue(browser.value("document.querySelector('#confirm-token').hidden"))
        browser.value("document.querySelector('#value').value = ''; document.querySelector('#value').focus()")
        browser.type("10:2")
        browser.press("Enter")
        browser.until("document.querySelector('button[data-feature=fec]').textContent == '10:2'")
        self.branch.set(preset="A+F")

    def test_the_address_that_is_printed_brings_the_token_and_leaves_none_in_the_address_bar(self):
        browser = self.opened(self.address_with_token())
        self.assertEqual(browser.value("location.href"), PAGE)
        token = (self.branch.folder / "state/control.token").read_text().strip()
        self.assertEqual(browser.value("sessionStorage.getItem('longhaul-token')"), token)
        self.assertEqual(browser.value("localStorage.length"), 0)

    def test_the_modules_table_shows_what_the_cache_served(self):
        nginx = web.Nginx(self.lab)
        sha256 = nginx.put("file", 300_000)
        for _ in range(2):
            self.assertEqual(web.fetch(self.lab, "file").sha256, sha256)
        browser = self.opened()
        cells = browser.until("[...document.querySelectorAll('#modules tbody tr')].map(row => [...row.cells].map("
                              "cell => cell.textContent)).find(cells => cells[0] == 'http')")
        titles = browser.value("[...document.querySelectorAll('#modules th')].map(cell => cell.textContent)")
        shown = dict(zip(titles, cells))
        self.assertEqual(int(shown["Cache hits"]) + int(shown["Revalidated"]), 1)
        self.assertEqual(shown["From the cache"].replace("\u00a0", " "), "293 KiB")

    def test_an_inline_script_does_not_run_and_markup_in_names_stays_text(self):
        browser = self.opened()
        browser.value("""(() => { const script = document.createElement('script');
            try { script.text = 'window.hostile = true'; } catch (error) { window.refused = error.name; }
            document.body.append(script); })()""")
        self.assertIsNone(browser.value("window.hostile ?? null"))
        self.assertEqual(browser.value("window.refused"), "TypeError")
        # In one step: the page shows its own links again within two seconds.
        said, image = browser.value("""(() => {
            tables.links.show(linkRows([{peer: '<img src=x onerror="window.hostile=1">', state: 'up', state_age_s: 1,
                bytes_sent: 0, bytes_received: 0, streams: 0, udp: null}]), row => row.key);
            return [document.querySelector('#links').innerText, !!document.querySelector('#links img')]; })()""")
        self.assertIn("<img", said)
        self.assertFalse(image)

    def test_a_hostile_page_in_the_same_browser_reads_and_changes_nothing(self):
        page = b"<!doctype html><title>hostile</title><iframe id=frame></iframe>"

        class Hostile(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_):
                pass

        with self.lab.inside("branch"):
            server = http.server.HTTPServer(("127.0.0.1", 0), Hostile)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        before = self.branch.status()["features"]
        token = (self.branch.folder / "state/control.token").read_text().strip()
        browser = self.browser()
        browser.open(f"http://127.0.0.1:{server.server_port}/")
        browser.until("document.title == 'hostile'")
        tried = lambda options, path="v1/features": browser.value(
            f"fetch({json.dumps(PAGE + path)}, {json.dumps(options)}).then(r => r.type + r.status).catch(e => 'refused')")
        change = {"method": "POST", "body": '{"preset": "B"}'}
        self.assertEqual(tried({}, "v1/flows"), "refused")
        self.assertEqual(tried(change), "refused")
        self.assertEqual(tried(change | {"headers": {"Authorization": f"Bearer {token}"}}), "refused")
        self.assertIn(tried(change | {"mode": "no-cors"}), ("refused", "opaque0"))
        browser.value(f"document.querySelector('#frame').src = {json.dumps(PAGE)}")
        browser.value(f"""new Promise(done => {{ const script = document.createElement('script');
            script.src = {json.dumps(PAGE + 'page.js')}; script.onload = script.onerror = event => done(event.type);
            document.head.append(script); }})""")
        self.assertEqual(browser.value("typeof tables"), "undefined")
        self.assertEqual(self.branch.status()["features"], before)

    def test_a_daemon_that_is_gone_is_reported_and_its_history_survives(self):
        browser = self.opened()
        self.addCleanup(self.pair.wait_link)
        carried = sum(slot[0] for slot in self.branch.get("/v1/history?step=3600")["slots"] if slot)
        self.assertGreater(carried, 4_000_000 - 1)
        self.branch.stop()
        browser.until("document.querySelector('#verdict').innerText.includes('does not answer')")
        self.branch.start()
        browser.until("!document.querySelector('#verdict').innerText.includes('does not answer')")
        again = sum(slot[0] for slot in self.branch.get("/v1/history?step=3600")["slots"] if slot)
        self.assertGreaterEqual(again, carried)


@unittest.skipUnless(PROGRAM, "chromium is not installed")
class LineTest(unittest.TestCase):
    """On a line with delay: what the page shows of several paths, of TCP, of exports that fail, and of promises."""

    def setUp(self):
        self.lab = self.enterContext(Lab("51.84mbit,40"))

    def opened(self, **options):
        browser = self.enterContext(Browser(self.lab, "branch", self.lab.scratch / "browser", **options))
        browser.open(PAGE)
        browser.until("document.querySelector('#links tbody tr')?.cells.length > 1")
        return browser

    def cells(self, browser):
        """{peer or path: {title: text}}"""
        titles, *rows = browser.value("[...document.querySelectorAll('#links tr')].map(row => [...row.cells].map("
                                      "cell => cell.textContent.replaceAll('\\u00a0', ' ')))")
        return {row[0]: dict(zip(titles, row)) for row in rows}

    def test_a_path_that_does_not_work_is_seen_on_the_page_and_in_top(self):
        pair = self.enterContext(use_two_paths(Pair(self.lab), "failover"))
        wait_paths(pair)
        browser = self.opened()
        says = "document.querySelector('#links').innerText.includes"
        browser.until(f"{says}('carries the link') && {says}('works, on standby')")
        self.assertEqual(list(self.cells(browser)), ["datacenter", "four", "six"])
        notes = "document.querySelector('#link-notes').innerText.includes"
        browser.until(f"{notes}('path four carries the link: first in the configured order')")
        browser.until("document.querySelector('#links tbody tr:nth-child(2)').innerText.includes('bit/s')")
        with rules(self.lab, "branch", CUT_IPV4):
            browser.until(f"{says}('does not work')")
            shown = self.cells(browser)
            self.assertEqual((shown["four"]["State"], shown["four"]["RTT"]), ("does not work", "–"))
            self.assertRegex(shown["six"]["RTT"], r"^\d+\.\d ms$")
            browser.until(f"{notes}('path six carries the link: no other path works')")
            until(lambda: re.search(r"(?m)^- four +down +udp +- ", pair.branch.longhaul("top")), what="top shows it")
            browser.screenshot(PICTURES / "page-paths.png")
            browser.resize(390, 844)
            self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), 390)
            browser.screenshot(PICTURES / "page-paths-phone.png")
        self.assertEqual(browser.errors, [])

    def test_promises_that_the_server_has_not_kept_are_outstanding(self):
        pair = self.enterContext(Pair(self.lab))
        browser = self.opened()
        smbd = smb.Smbd(self.lab, {"server multi channel support": "no"})
        row = "[...document.querySelectorAll('#modules tbody tr')].find(row => row.cells[0].textContent == 'smb')"
        outstanding = f"Number({row}?.lastChild.textContent)"
        with smb_client.connect(self.lab, smbd, "3.1.1") as client:
            with client.open("file", smb_client.READ | smb_client.WRITE, smb_client.CREATE) as file:
                file.write(0, bytes(1000))
                file.flush()
                browser.until(f"{outstanding} === 0")
                browser.until("document.querySelector('#promises').innerText.includes(': 0 outstanding now.')")
                with link_cut_off(self.lab, "drop"):
                    file.write(1000, bytes(1000))  # acknowledged here
                    browser.until(f"{outstanding} === 1")
                    browser.until("document.querySelector('#promises').innerText.includes(': 1 outstanding now.')")
                    browser.screenshot(PICTURES / "page-promises.png")
                pair.wait_link()
                file.flush()
                browser.until(f"{outstanding} === 0")

    def test_while_tcp_carries_nothing_is_shown_of_udp_and_exports_that_fail_are_seen(self):
        nobody = {"export": {"otlp": "http://127.0.0.1:9", "otlp_interval": 1}}
        pair = self.enterContext(Pair(self.lab, branch=nobody))
        until(lambda: pair.branch.link()["carrier"] == "udp", what="UDP carries")
        browser = self.opened(scheme="dark")
        browser.until("document.querySelector('#link-notes').innerText.includes('UDP carries')")
        over_udp = self.cells(browser)["datacenter"]
        self.assertRegex(over_udp["Rate"] + over_udp["Loss"], "bit/s.* %")
        pair.branch.set(transport="tcp")
        browser.until("document.querySelector('#links tbody tr').cells[2].textContent == 'TCP'")
        self.assertNotIn("UDP carries", browser.text("#link-notes"))
        shown = self.cells(browser)["datacenter"]
        self.assertEqual((shown["Carrier"], shown["Loss"], shown["Queue"], shown["Recovered"]), ("TCP", "–", "–", "–"))
        browser.until("document.querySelector('#exports td.bad')?.textContent.match(/^[1-9]\\d* requests/)")
        browser.screenshot(PICTURES / "page-tcp-dark.png")
        self.assertEqual(browser.errors, [])


if __name__ == "__main__":
    unittest.main()
