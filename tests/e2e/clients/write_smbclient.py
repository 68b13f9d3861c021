#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes with the command smbclient, which puts a whole file and says at the end whether it did: several WRITEs are on
their way at a time, and none of them is told by itself. It stops at an error, and its policy is close-only."""

import subprocess

import writing

PROTOCOLS = {"NT1": "NT1", "2.1": "SMB2_10", "3.0": "SMB3_00", "3.1.1": "SMB3_11"}


class Smbclient(writing.Client):
    def write_from(self, first, replace, acked, flushed):
        options, protocol = self.options, PROTOCOLS[self.options.dialect]
        self.call = "put"
        done = subprocess.run(
            ["smbclient", f"//{options.host}/{options.share}", options.password, "-s", options.configuration, "-U",
             options.user, "-t", str(int(options.timeout)), f"--option=clientminprotocol={protocol}",
             f"--option=clientmaxprotocol={protocol}", "-c", f"put {options.data} {options.name}"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError((done.stdout + done.stderr).strip())
        pace, options.pace = options.pace, 0
        for number in range(options.blocks):
            acked(number)
        options.pace = pace


if __name__ == "__main__":
    writing.main(Smbclient)
