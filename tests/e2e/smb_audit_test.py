# SPDX-License-Identifier: Apache-2.0
"""Each promise that was not kept has a line in the log, and so has each report to the client: which file, ranges, client, server
and cause, and how it was reported. `longhaul why` shows the same, with the time of the report."""

import json
import os
import pathlib
import sys
import time
import unittest

sys.path.append(os.fspath(pathlib.Path(__file__).resolve().parent / "promises"))

import smb
import smb_client
from faults import silence
from lab import CLIENT, SERVER, Lab, until
from pair import Pair
from smb_client import Broken, DISK_FULL, LOST_WRITES, READ, SmbError, WRITE

BLOCK = bytes(range(256)) * 64
SECOND = [len(BLOCK), 2 * len(BLOCK)]  # what is lost in each of these tests


class Audit(unittest.TestCase):
    def start(self, dialect, share="share", **smbd):
        self.dialect, self.share = dialect, share
        self.name = f"robbed-{dialect}"
        self.lab = self.enterContext(Lab("51.84mbit,20"))
        if share == "small":
            teller = self.lab.scratch / "dfree"  # by the server's word there is room
            teller.write_text("#!/bin/sh\necho 1000000 900000 1024\n")
            teller.chmod(0o755)
            smbd = {"small": "2m", "shares": {"small": {"dfree command": teller}}}
        self.smbd = smb.Smbd(self.lab, **smbd)
        self.pair = self.enterContext(Pair(self.lab, both={"log": {"json": True}}))
        self.branch = self.pair.branch
        self.before = time.time()

    def connect(self):
        return self.enterContext(smb_client.connect(self.lab, self.smbd, self.dialect, share=self.share))

    def begun(self):
        """A file whose first block is there for good, and whose next WRITE is acknowledged early."""
        file = self.connect().open(self.name, READ | WRITE, smb_client.CREATE)
        file.write(0, BLOCK)
        file.flush()
        return file

    def promise(self, file):
        def promised():
            return sum(module["counters"]["promised_bytes"] for module in self.branch.status()["modules"])

        before = promised()
        file.write(len(BLOCK), BLOCK)
        self.assertEqual(promised() - before, len(BLOCK))

    def fill_the_disk(self):
        with open(self.smbd.path_of("filler", "small"), "wb", buffering=0) as filler:
            with self.assertRaises(OSError):
                while True:
                    filler.write(bytes(65536))

    def events(self, site, name):
        lines = [json.loads(line) for line in site.process.log().split("\n")[:-1] if line.startswith("{")]
        return [{key: value for key, value in line.items() if key not in ("time", "event")}
                for line in lines if line["event"] == name]

    def assert_logged(self, site, lost, *reports, ranges=SECOND):
        """`lost`: cause, status and certainty. `reports`: how. All else is the same in each line."""
        cause, status, certain = lost
        same = {"file": f"{self.share}\\{self.name}".upper(), "client": CLIENT, "server": SERVER, "cause": cause,
                "ranges": f"{ranges[0]}-{ranges[1]}" if ranges else "unknown", "not_logged": 0}
        wanted = [{**same, "level": "warn", "how": how} for how in reports]
        until(lambda: len(self.events(site, "promise_reported")) >= len(reports), what="the reports are logged")
        self.assertEqual(self.events(site, "promise_lost"),
                         [{**same, "level": "error", "status": f"{status:#010x}", "certain": certain}])
        self.assertEqual(self.events(site, "promise_reported"), wanted)

    def assert_why(self, site, cause, *reports, ranges=SECOND):
        """The latest report first, each with its time."""
        why = site.get(f"/v1/why?tuple={CLIENT}-{SERVER}:445")
        told = why["told_files"]
        self.assertEqual([{key: value for key, value in each.items() if key != "at_s"} for each in told],
                         [{"file": f"{self.share}\\{self.name}".upper(), "cause": cause, "ranges": [ranges] if ranges else [],
                           "how": how} for how in reversed(reports)])
        for each in told:
            self.assertTrue(int(self.before) <= each["at_s"] <= time.time(), each)
        said = site.longhaul("why", f"{CLIENT}-{SERVER}:445")
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(told[0]["at_s"]))
        bytes_ = f"bytes {ranges[0]}-{ranges[1]}" if ranges else "unknown bytes"
        self.assertIn(f"{told[0]['file']} {bytes_} ({cause}): the client was notified at {moment} by", said)

    def assert_told_at_opens(self):
        again = self.connect()
        for access in READ, READ | WRITE:
            with self.assertRaises(SmbError) as refused:
                again.open(self.name, access)
            self.assertEqual(refused.exception.status, LOST_WRITES)
        again.open(self.name, READ | WRITE).close()


class AuditOfDaemons(Audit):
    def test_writes_lost_with_the_far_daemon_are_audited_by_the_near_one(self):
        for dialect in "NT1", "3.1.1":
            with self.subTest(dialect):
                self.start(dialect)
                file = self.begun()
                with silence(self.lab, "branch", "wan0"):
                    self.promise(file)
                    self.pair.datacenter.kill()
                self.pair.datacenter.start()
                self.pair.wait_link()
                why = until(lambda: self.branch.get(f"/v1/why?tuple={CLIENT}-{SERVER}:445")["lost_files"], what="the loss is known")
                self.assertEqual(why, [{"file": f"SHARE\\{self.name}".upper(), "cause": "link_lost", "ranges": [SECOND]}])
                self.assert_told_at_opens()
                self.assert_logged(self.branch, ("link_lost", 0, True), "next_open", "next_open")
                self.assert_why(self.branch, "link_lost", "next_open", "next_open")

    def test_writes_that_may_be_lost_with_the_near_daemon_are_audited_by_the_next_one(self):
        for dialect in "NT1", "3.1.1":
            with self.subTest(dialect):
                self.start(dialect)
                file = self.begun()
                with silence(self.lab, "branch", "wan0"):
                    self.promise(file)
                    self.branch.kill()
                self.branch.start()
                self.pair.wait_link()
                self.assert_told_at_opens()
                self.assert_logged(self.branch, ("interrupted", 0, False), "next_open", "next_open", ranges=None)
                self.assert_why(self.branch, "interrupted", "next_open", "next_open", ranges=None)


class AuditOfDisks(Audit):
    def test_refused_writes_are_audited_with_a_late_error_and_with_a_reset(self):
        for dialect in "NT1", "3.1.1":
            for ending, how in (("flush", "late_error"), ("close", "reset")):
                with self.subTest(dialect, ending=ending):
                    self.start(dialect, "small")
                    file = self.begun()
                    self.fill_the_disk()
                    self.promise(file)
                    with self.assertRaises((Broken, SmbError)) as told:
                        getattr(file, ending)()
                    if ending == "flush":
                        self.assertEqual(told.exception.status, LOST_WRITES)
                    self.assert_told_at_opens()
                    self.assert_logged(self.branch, ("refused", DISK_FULL, True), how, "next_open", "next_open")
                    self.assert_why(self.branch, "refused", how, "next_open", "next_open")


if __name__ == "__main__":
    unittest.main()
