# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules of examples/monitoring with a real Prometheus that scrapes a running daemon."""

import http.client
import json
import pathlib
import re
import shutil
import unittest
import urllib.parse

import tcp
from lab import SERVER, until
from pair import CONTROL_PORT, PairTest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "monitoring"
PORT = 9090


def expressions():
    """All of the dashboard, with values for its variables, and of the rules."""
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            text = target["expr"]
            for variable, value in (("$instance", ".*"), ("$__rate_interval", "1m"), ("$__range", "1h")):
                text = text.replace(variable, value)
            yield text
    yield from re.findall(r"^ +expr: (.+)$", (FOLDER / "alerts.yml").read_text(), re.M)


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class Monitoring(PairTest):
    def ask(self, path, **parameters):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
        with self.lab.inside("branch"):
            connection.connect()
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def scraped(self):
        try:
            return self.ask("query", query='up{job="longhaul"} == 1')["data"]["result"]
        except (OSError, ValueError):  # not listening yet, or not ready: then it answers no JSON
            return None

    def test_prometheus_understands_metrics_rules_and_dashboard_and_finds_what_they_name(self):
        with tcp.Server(self.lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 100_000, 1), tcp.digest(100_000, 1))
        folder = self.lab.scratch / "prometheus"
        folder.mkdir()
        shutil.copy(FOLDER / "alerts.yml", folder)
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\nrule_files: [alerts.yml]\nscrape_configs:\n  - job_name: longhaul\n"
            f'    static_configs: [{{targets: ["127.0.0.1:{CONTROL_PORT}"]}}]\n')
        self.lab.run("branch", "promtool", "check", "config", folder / "prometheus.yml")
        process = self.lab.start("branch", "prometheus", f"--config.file={folder / 'prometheus.yml'}",
                                 f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{PORT}",
                                 name="prometheus")
        try:
            until(self.scraped, 60, "Prometheus has scraped the daemon")
            names = set(self.ask("label/__name__/values")["data"])
            for text in expressions():
                with self.subTest(text):
                    self.assertEqual(self.ask("query", query=text)["status"], "success")
                    # Modules have metrics once a flow has one.
                    named = {name for name in re.findall(r"longhaul_\w+", text) if not name.startswith("longhaul_module_")}
                    self.assertEqual(named - names, set())
            firing = {alert["labels"]["alertname"] for alert in self.ask("alerts")["data"]["alerts"]
                      if alert["state"] == "firing"}
            self.assertEqual(firing, set())
        finally:
            process.stop(30)


if __name__ == "__main__":
    unittest.main()
