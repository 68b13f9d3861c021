# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules of examples/monitoring: with a real Prometheus that scrapes a running daemon, and the
dashboard by Grafana's schema."""

import http.client
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

import smb
import tcp
from lab import PYTHON, SERVER, until
from pair import CONTROL_PORT, PairTest, use_two_paths

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "monitoring"
PORT = 9090


# Reads the dashboard into Grafana's own classes and writes it again: names that the schema lacks get lost, wrong types fail.
READ_AND_WRITE = """
import sys, json
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
register_default_plugins()
print(JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))
"""


def panel_queries():
    """All of the dashboard, with values for its variables."""
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            text = target["expr"]
            for variable, value in (("$instance", ".*"), ("$__rate_interval", "1m"), ("$__range", "1h")):
                text = text.replace(variable, value)
            yield panel["title"], text


def rule_expressions():
    return re.findall(r"^ +expr: (.+)$", (FOLDER / "alerts.yml").read_text(), re.M)


def not_in(ours, theirs, at="dashboard"):
    """Where `theirs` lacks something that `ours` has, or has another value."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            yield from not_in(value, theirs[name], f"{at}.{name}") if name in theirs else [f"{at}.{name}"]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs)):
            yield from not_in(one, other, f"{at}[{number}]")
    elif ours != theirs:
        yield at


def fires(alert, series, at="20m"):
    """Whether one alert of that name fires at that time. `series`: {series: values, a value that stays, or "0+1x30"}."""
    values = {name: value if isinstance(value, str) else f"{value}x30" for name, value in series.items()}
    expected = {"expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})', "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": 1}]}
    case = {"rule_files": [str(FOLDER / "alerts.yml")],
            "tests": [{"interval": "1m", "promql_expr_test": [expected],
                       "input_series": [{"series": name, "values": value} for name, value in values.items()]}]}
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(case, file)  # JSON is YAML
        file.flush()
        return subprocess.run(["promtool", "test", "rules", file.name], capture_output=True).returncode == 0


class Rules(unittest.TestCase):
    def test_missing_udp_is_an_alert_only_where_udp_was_wanted(self):
        def firing(transport, state):
            link = 'instance="a", peer="b"'
            series = {f'longhaul_link_carrier{{{link}, carrier="udp"}}': 0,
                      f'longhaul_link_state{{{link}, state="up"}}': 1,
                      f'longhaul_udp_state{{{link}, state="failed"}}': int(state == "failed"),
                      f'longhaul_udp_unanswered{{{link}}}': int(state == "unanswered"),
                      f'longhaul_feature{{instance="a", feature="transport", value="{transport}"}}': 1}
            return fires("LonghaulNoUdp", series)

        self.assertTrue(firing("auto", "failed"))
        self.assertTrue(firing("udp", "unanswered"))
        self.assertFalse(firing("auto", "none"))
        self.assertFalse(firing("tcp", "failed"))

    def test_a_path_that_does_not_work_for_five_minutes_is_an_alert_and_one_that_stands_by_is_not(self):
        def paths(role):
            of = lambda path, each: f'longhaul_path_role{{instance="a", peer="b", path="{path}", role="{each}"}}'
            return {of("fibre", "carries"): 1, of("fibre", "none"): 0,
                    of("lte", "standby"): int(role == "standby"), of("lte", "none"): int(role == "none")}

        self.assertTrue(fires("LonghaulPathDown", paths("none"), at="6m"))
        self.assertFalse(fires("LonghaulPathDown", paths("none"), at="4m"))
        self.assertFalse(fires("LonghaulPathDown", paths("standby")))

    def test_an_export_that_goes_on_failing_is_an_alert_and_a_single_failure_is_not(self):
        for alert, series in (("LonghaulMetricsNotExported", 'longhaul_otlp_requests_total{outcome="failed"}'),
                              ("LonghaulFlowRecordsNotExported", "longhaul_ipfix_failures_total"),
                              ("LonghaulLogLinesLost", 'longhaul_syslog_lines_total{outcome="lost"}')):
            with self.subTest(alert):
                self.assertTrue(fires(alert, {series: "0+1x30"}))
                self.assertFalse(fires(alert, {series: "0x10 1x20"}))
                self.assertFalse(fires(alert, {series.replace("failed", "taken").replace("lost", "sent"): "0"}))


class Schema(unittest.TestCase):
    def test_grafanas_schema_knows_everything_in_the_dashboard(self):
        text = (FOLDER / "dashboard.json").read_text()
        done = subprocess.run([PYTHON, "-c", READ_AND_WRITE], input=text, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(not_in(json.loads(text), json.loads(done.stdout))), [])


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class Monitoring(PairTest):
    line = ("51.84mbit,30",)  # on which UDP carries
    # All that has metrics. Nobody takes the exports.
    branch_has = {"export": {"otlp": "http://127.0.0.1:9", "ipfix": "127.0.0.1:9"}, "log": {"syslog": "udp:127.0.0.1:9"}}

    @classmethod
    def prepare(cls):
        use_two_paths(cls.pair, "failover")

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

    def data_of(self, text):
        answer = self.ask("query", query=text)
        self.assertEqual(answer["status"], "success")
        return answer["data"]["result"]

    def test_prometheus_understands_metrics_rules_and_dashboard_and_every_panel_has_data(self):
        smbd = smb.Smbd(self.lab)
        ends = tcp.pair(self.lab)  # a flow that stays
        ends[0].send(b"alive")
        self.assertEqual(ends[1].receive(5), b"alive")
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
            until(self.scraped, what="Prometheus has scraped the daemon")
            there = smbd.make("there", 300_000, seed=1)
            server = self.enterContext(tcp.Server(self.lab, tcp.report_digest))

            def data_of(text):
                """A rate needs two scrapes of a series that exists, and traffic between them."""
                if not self.data_of(text):
                    self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 100_000, 1), tcp.digest(100_000, 1))
                    self.assertEqual(smbd.get("there"), there)
                return self.data_of(text)

            for panel, text in panel_queries():
                with self.subTest(panel, query=text):
                    until(lambda: data_of(text), what="the query returns data")
            for text in rule_expressions():
                with self.subTest(text):
                    self.data_of(text)
            names = set(self.ask("label/__name__/values")["data"])
            self.assertEqual(set(re.findall(r"longhaul_\w+", " ".join(rule_expressions()))) - names, set())
            firing = {alert["labels"]["alertname"] for alert in self.ask("alerts")["data"]["alerts"]
                      if alert["state"] == "firing"}
            self.assertEqual(firing, set())
        finally:
            process.stop(30)


if __name__ == "__main__":
    unittest.main()
