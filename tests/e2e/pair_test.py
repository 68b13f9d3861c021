# SPDX-License-Identifier: Apache-2.0
"""The configuration that the harness writes for the daemons; the daemons' own behaviour is tested elsewhere."""

import tomllib
import unittest

from pair import merge, to_toml


class Configuration(unittest.TestCase):
    def test_toml_reads_back_as_it_was_meant(self):
        meant = {
            "site": "branch \"1\"",
            "link": {"listen": "0.0.0.0:7600", "allow": ["10.10.1.0/24", "fd10:1::/64"]},
            "peer": [{"name": "a", "networks": []}, {"name": "b", "networks": ["::/0"]}],
            "rule": [{"to_ports": [445, 139], "features": {"fec": "off", "compression": True}}],
            "features": {"window": 65535, "fast_connect": False},
        }
        self.assertEqual(tomllib.loads(to_toml(meant)), meant)

    def test_changes_are_merged_into_tables_and_none_takes_a_key_away(self):
        merged = merge({"intercept": {"mode": "tproxy", "interfaces": ["lan0"]}, "peer": [{}]},
                       {"intercept": {"mode": "off", "interfaces": None}, "socks": {"listen": "127.0.0.1:1080"}})
        self.assertEqual(tomllib.loads(to_toml(merged)),
                         {"intercept": {"mode": "off"}, "peer": [{}], "socks": {"listen": "127.0.0.1:1080"}})


if __name__ == "__main__":
    unittest.main()
