# SPDX-License-Identifier: Apache-2.0
"""Metrics over OTLP/HTTP and HTTPS: what a receiver in the branch gets, parsed by OpenTelemetry's own definitions, compared
with the Prometheus metrics; a collector that fails, or is another; and the OpenTelemetry Collector itself."""

import contextlib
import http.server
import json
import re
import os
import pathlib
import ssl
import subprocess
import threading
import unittest

import tcp
import tls
from lab import PYTHON, REPOSITORY, SERVER, until
from pair import PairTest

PORT, PATH = 4318, "/base"
TLS_PORT = 4319
NAME = "collector.test"
OTELCOL = pathlib.Path(os.environ.get("LONGHAUL_OTELCOL") or REPOSITORY / "build" / "otelcol") / "otelcol"
STRICT = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest as Request
request = json_format.Parse(sys.stdin.read(), Request())  # unknown names and wrong types are errors
assert request.SerializeToString()
"""


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps the bodies, and answers as configured."""

    def __init__(self, lab, node, port=PORT, certificate=None):
        self.bodies, self.requests, self.answer = [], [], (200, b"{}")
        with lab.inside(node):
            super().__init__(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def close(self):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, *_):
        pass  # clients that do not trust it

    def latest(self):
        return json.loads(self.bodies[-1])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["Content-Type"], self.headers["Host"]))
        self.server.bodies.append(body.decode())
        status, answer = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with contextlib.suppress(OSError):  # it is not read to its end
            self.wfile.write(answer)

    def log_message(self, *_):
        pass


def points(request):
    """{(name, labels): value}"""
    found = {}
    for metric in request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        for point in (metric.get("sum") or metric["gauge"])["dataPoints"]:
            labels = {label["key"]: label["value"]["stringValue"] for label in point["attributes"]}
            found[metric["name"], tuple(sorted(labels.items()))] = point["asDouble"]
    return found


class MetricExport(PairTest):
    branch_has = {"export": {"otlp": f"http://127.0.0.1:{PORT}{PATH}/", "otlp_interval": 1}}

    @classmethod
    def prepare(cls):
        cls.receiver = Receiver(cls.lab, "branch")
        cls.addClassCleanup(cls.receiver.close)

    def otlp(self):
        return self.branch.status()["exports"]["otlp"]

    def next_request(self):
        count = len(self.receiver.bodies)
        until(lambda: len(self.receiver.bodies) > count + 1, what="a request that began after this moment")
        return self.receiver.latest()

    def alike(self):
        """A request and what Prometheus gets after it, if both have the same names."""
        request, scraped = self.next_request(), self.branch.get("/metrics")
        names = set(re.findall(r"^# TYPE (\S+)", scraped, re.M)) & {
            re.match(r"\w+", line)[0] for line in scraped.splitlines() if not line.startswith("#")}
        return {name for name, _ in points(request)} == names and (request, scraped)

    def test_the_collector_gets_every_metric_with_the_value_that_prometheus_gets(self):
        with tcp.Server(self.lab, tcp.report_digest) as server:
            self.assertEqual(tcp.upload(self.lab, SERVER, server.port, 100_000, 1), tcp.digest(100_000, 1))
        self.branch.wait_flows()
        # A name may be new, such as those of UDP when it is first used: once they are the same.
        request, scraped = until(self.alike, what="the same names are sent and scraped")
        self.assertEqual(set(self.receiver.requests), {(PATH + "/v1/metrics", "application/json", f"127.0.0.1:{PORT}")})
        resource = {entry["key"]: entry["value"]["stringValue"] for entry in request["resourceMetrics"][0]["resource"]["attributes"]}
        self.assertEqual((resource["service.name"], resource["service.instance.id"]), ("longhaul", "branch"))
        sent = points(request)
        for side, direction in (("lan", "in"), ("lan", "out"), ("wan", "in"), ("wan", "out")):
            value = re.search(rf'longhaul_flow_bytes_total{{side="{side}",direction="{direction}"}} (\S+)', scraped)[1]
            self.assertEqual(sent["longhaul_flow_bytes_total", (("direction", direction), ("side", side))], float(value))

    def test_opentelemetrys_own_definitions_accept_the_request(self):
        if subprocess.run([PYTHON, "-c", "import opentelemetry.proto"], capture_output=True, check=False).returncode:
            self.skipTest("opentelemetry-proto is not installed (tests/e2e/python/setup)")
        self.next_request()
        done = subprocess.run([PYTHON, "-c", STRICT], input=self.receiver.bodies[-1], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_failures_and_rejected_points_are_counted(self):
        until(lambda: self.otlp()["sent"], what="a request that succeeds")
        before = self.otlp()
        self.receiver.answer = (200, json.dumps({"partialSuccess": {"rejectedDataPoints": "5", "errorMessage": "why"}}).encode())
        try:
            until(lambda: self.otlp()["rejected_points"] >= before["rejected_points"] + 5, what="rejected points are counted")
            self.receiver.answer = (503, b"busy" * 100_000)  # more than is read
            failed = self.otlp()["failed"]
            until(lambda: self.otlp()["failed"] >= failed + 2, what="failures are counted")
        finally:
            self.receiver.answer = (200, b"")
        sent = self.otlp()["sent"]
        until(lambda: self.otlp()["sent"] > sent, what="the next request succeeds")


class MetricExportOverTls(PairTest):
    """The datacenter exports; each test starts its daemon with settings of its own."""

    @classmethod
    def prepare(cls):
        cls.authority = tls.Authority(cls.lab.scratch / "authority")
        cls.other = tls.Authority(cls.lab.scratch / "other", "Another CA")
        cls.right, cls.wrong = cls.authority.issue(NAME), cls.authority.issue("other.test")
        cls.datacenter.hosts = {NAME: "127.0.0.1"}

    def begin(self, environment=None, **export):
        self.datacenter.stop()
        self.datacenter.settings["export"] = {"otlp": f"https://{NAME}:{TLS_PORT}{PATH}", "otlp_interval": 1} | export
        self.datacenter.environment = environment or {}
        self.datacenter.start()
        self.addCleanup(self.pair.wait_link)

    def receiver(self, certificate):
        receiver = Receiver(self.lab, "datacenter", TLS_PORT, certificate)
        self.addCleanup(receiver.close)
        return receiver

    def sent(self):
        return self.datacenter.status()["exports"]["otlp"]["sent"]

    def assert_refused(self, reason):
        self.assertIn(reason, self.datacenter.process.lines_with("export_failed")[0])
        self.assertEqual(self.sent(), 0)

    def test_the_collectors_certificate_is_verified_with_the_ca_that_the_file_names(self):
        receiver = self.receiver(self.right)
        self.begin(otlp_ca=str(self.authority.certificate))
        until(self.sent, what="a request is taken")
        self.assertEqual(set(receiver.requests), {(PATH + "/v1/metrics", "application/json", f"{NAME}:{TLS_PORT}")})
        self.assertIn("longhaul_flow_bytes_total", receiver.bodies[-1])
        self.assertIn(f"go to https://{NAME}:{TLS_PORT}{PATH}/v1/metrics every 1 s; the collector's certificate must be signed by a "
                      f"CA in {self.authority.certificate}.", self.datacenter.longhaul("check", self.datacenter.file))

    def test_without_a_ca_in_the_file_the_systems_are_trusted(self):
        self.receiver(self.right)
        self.begin({"SSL_CERT_FILE": self.authority.certificate})  # as if it were the system's list
        until(self.sent, what="a request is taken")
        self.datacenter.stop()
        self.begin()
        self.assert_refused("unable to get local issuer certificate; [export] otlp_ca names the file with its CA")

    def test_a_collector_of_another_name_gets_nothing(self):
        receiver = self.receiver(self.wrong)
        self.begin(otlp_ca=str(self.authority.certificate))
        self.assert_refused("hostname mismatch")
        self.assertEqual(receiver.bodies, [])

    def test_a_collector_of_another_ca_or_addressed_by_number_gets_nothing(self):
        receiver = self.receiver(self.right)
        self.begin(otlp_ca=str(self.other.certificate))
        self.assert_refused("the collector's certificate is not accepted")
        self.datacenter.stop()
        self.begin(otlp=f"https://127.0.0.1:{TLS_PORT}", otlp_ca=str(self.authority.certificate))
        self.assert_refused("IP address mismatch")
        self.assertEqual(receiver.bodies, [])

    def test_a_server_that_does_not_speak_tls_is_reported(self):
        receiver = self.receiver(None)
        self.begin(otlp_ca=str(self.authority.certificate))
        self.assert_refused("the TLS handshake failed")
        self.assertEqual(receiver.bodies, [])

    @unittest.skipUnless(OTELCOL.exists(), "the OpenTelemetry Collector is not built (tools/setup --long)")
    def test_the_opentelemetry_collector_takes_the_metrics_over_http_and_https(self):
        file = self.lab.scratch / "otelcol.yaml"
        certificate, key = self.right
        file.write_text(f"""
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{PORT}"}}}}}}
  otlp/tls: {{protocols: {{http: {{endpoint: "127.0.0.1:{TLS_PORT}", tls: {{cert_file: "{certificate}", key_file: "{key}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service: {{pipelines: {{metrics: {{receivers: [otlp, otlp/tls], exporters: [debug]}}}}, telemetry: {{metrics: {{level: none}}}}}}
""")
        for settings in ({"otlp": f"http://127.0.0.1:{PORT}"},
                         {"otlp": f"https://{NAME}:{TLS_PORT}", "otlp_ca": str(self.authority.certificate)}):
            with self.subTest(settings):
                collector = self.lab.start("datacenter", OTELCOL, "--config", f"file:{file}", name="otelcol")
                try:
                    self.begin(**settings)
                    until(self.sent, what="the collector takes a request")
                    until(lambda: "Name: longhaul_flow_bytes_total" in collector.log() and "AggregationTemporality: Cumulative" in
                          collector.log() and "service.instance.id: Str(datacenter)" in collector.log(), what="it shows the metrics")
                    self.assertEqual(self.datacenter.status()["exports"]["otlp"]["rejected_points"], 0)
                finally:
                    collector.stop()


if __name__ == "__main__":
    unittest.main()
