#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the comparison of documents and program can fail: each test changes one file, as if by mistake, and asks for
the sentence that names it."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("check", str(HERE / "check"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
loader.exec_module(check)


class Mistakes(unittest.TestCase):
    def found(self, path, old, new):
        before = (check.ROOT / path).read_text(encoding="utf-8")
        self.assertTrue(old in before, f"{path} has no {old!r} to change")
        return "\n".join(check.problems(check.pages.Tree(check.ROOT, {path: before.replace(old, new)})))

    def row(self, path, name):
        """The whole line of the table that begins with it."""
        lines = (check.ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)
        return next(line for line in lines if line.startswith(f"| `{name}`"))

    def missing_row(self, path, name):
        return self.found(path, self.row(path, name), "")

    def test_nothing_is_wrong_with_the_pages_as_they_are(self):
        self.assertEqual(list(check.problems(check.pages.Tree(check.ROOT))), [])

    def test_a_key_without_a_row(self):
        self.assertIn("key of [limits] `handshakes` exists", self.missing_row("docs/configuration.md", "handshakes"))

    def test_a_row_without_a_key(self):
        self.assertIn("`hand_shakes` is documented and does not exist",
                      self.found("docs/configuration.md", "| `handshakes`", "| `hand_shakes`"))

    def test_a_new_key_in_the_program(self):
        found = self.found("proxy/config/daemon_tables.cc", '"user", "sandbox"', '"user", "colour", "sandbox"')
        self.assertIn("key of [process] `colour` exists", found)
        self.assertIn("every_key.toml: the key colour of [process] is missing", found)

    def test_a_table_of_a_module_without_a_heading(self):
        self.assertIn("no heading names the table [http]",
                      self.found("docs/configuration.md", "`[smb]`, `[tls]` and `[http]`", "`[smb]` and `[tls]`"))

    def test_a_key_of_the_modules_tables_without_a_row(self):
        self.assertIn("key of [http] `any_port` exists", self.missing_row("docs/configuration.md", "any_port"))

    def test_a_new_feature_in_the_program(self):
        self.assertIn("key of [features] `rdma` exists",
                      self.found("proxy/config/features.cc", '"paths"};', '"paths", "rdma"};'))
        self.assertIn("key of [features] `smb.rdma` exists",
                      self.found("proxy/modules/smb/features.h", '{.name = "smb"},', '{.name = "smb"}, {.name = "smb.rdma"},'))

    def test_a_reason_without_a_row(self):
        self.assertIn("reason `destination_refused` exists", self.missing_row("docs/troubleshooting.md", "destination_refused"))

    def test_a_reason_of_a_module_without_a_row(self):
        self.assertIn("reason `smb_signed` exists", self.missing_row("docs/troubleshooting.md", "smb_signed"))

    def test_a_new_reason_of_a_module(self):
        self.assertIn("reason `smb_compressed` exists",
                      self.found("proxy/modules/smb/reasons.h", '"smb_signed",', '"smb_compressed",'))

    def test_a_metric_of_a_module_without_a_row(self):
        name = "longhaul_smb_lost_files"
        self.assertIn(f"metric `{name}` exists", self.missing_row("docs/operation.md", name))

    def test_a_panel_or_a_rule_with_a_metric_that_does_not_exist(self):
        for file in ("dashboard.json", "alerts.yml"):
            self.assertIn(f"examples/monitoring/{file}: there is no metric longhaul_link_mood",
                          self.found(f"examples/monitoring/{file}", "longhaul_link_state", "longhaul_link_mood"))

    def test_a_refusal_without_a_row(self):
        self.assertIn("refusal `not_tls` exists", self.missing_row("docs/troubleshooting.md", "not_tls"))

    def test_a_refusal_with_another_text(self):
        row = self.row("docs/troubleshooting.md", "not_tls")
        self.assertIn(f"the row is: {row.strip()}", self.found("docs/troubleshooting.md", row, row.replace("TLS", "QUIC")))

    def test_a_metric_without_a_row(self):
        self.assertIn("metric `longhaul_link_state` exists", self.missing_row("docs/operation.md", "longhaul_link_state"))

    def test_a_module_counter_without_a_row(self):
        name = "longhaul_module_breaks_total"
        self.assertIn(f"metric `{name}` exists", self.missing_row("docs/operation.md", name))

    def test_an_alert_on_a_metric_that_does_not_exist(self):
        self.assertIn("there is no metric longhaul_smb_promise_lost_total",
                      self.found("README.md", "longhaul_smb_promises_lost_total", "longhaul_smb_promise_lost_total"))

    def test_a_log_event_without_a_row(self):
        self.assertIn("log event `link_silent` exists", self.missing_row("docs/operation.md", "link_silent"))

    def test_a_message_that_the_program_never_prints(self):
        self.assertIn('the program never prints "the link is grumpy"',
                      self.found("docs/troubleshooting.md", "| log: `link_failed`,", '| log: `link_failed`, "the link is grumpy",'))

    def test_a_path_of_the_api_without_a_heading(self):
        self.assertIn("path `/v1/why` exists", self.found("proxy/control/README.md", "### `GET /v1/why`", "### Why"))

    def test_a_field_of_the_api_without_a_row(self):
        self.assertIn("the field `policed` exists", self.found("proxy/control/README.md", "`rate.policed`", "`rate`"))

    def test_a_link_to_a_page_that_moved(self):
        self.assertIn("leads nowhere", self.found("README.md", "docs/quick-start.md)", "docs/quickstart.md)"))

    def test_a_link_to_a_heading_that_was_renamed(self):
        self.assertIn("has no heading #memory", self.found("docs/operation.md", "### Memory", "### Working memory"))

    def test_a_source_that_was_renamed(self):
        self.assertIn("there is no source send_streams.h", self.found("proxy/link/README.md", "`send_stream.h`", "`send_streams.h`"))

    def test_an_example_with_a_wrong_key(self):
        self.assertIn("an example has the key mod of [intercept]", self.found("docs/quick-start.md", "mode =", "mod ="))

    def test_a_readme_that_grows(self):
        self.assertIn("at most 150", self.found("README.md", "## Licence", "\n" * 150 + "## Licence"))


if __name__ == "__main__":
    unittest.main()
