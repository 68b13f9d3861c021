# SPDX-License-Identifier: Apache-2.0
"""[log] syslog: what a listener gets over UDP and over a socket of the host is what the daemon writes to standard error; the
same with rsyslogd; and a syslog daemon that is gone."""

import contextlib
import os
import re
import shutil
import socket
import unittest

from lab import until
from pair import PairTest

PORT = 5514
RFC5424 = re.compile(r"<(\d+)>1 (\S+Z) (\S+) longhaul (\d+) (\S+) - (.*)", re.S)
LOCAL = re.compile(r"<(\d+)>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d longhaul\[(\d+)\]: (.*)", re.S)
SEVERITY = {"error": 27, "warn": 28, "info": 30, "debug": 31, "trace": 31}
TEXT = {"warn": "warning", "error": "err"}
RSYSLOG = """
module(load="imuxsock" SysSock.Use="off")
module(load="imudp")
input(type="imuxsock" Socket="{socket}")
input(type="imudp" address="127.0.0.1" port="{port}")
template(name="row" type="string" string="%inputname% %syslogfacility-text%.%syslogseverity-text% %app-name%[%procid%] %msg%\\n")
action(type="omfile" file="{file}" template="row")
"""


class Listener:
    def __init__(self, sock, address):
        self.socket = sock
        sock.bind(address)
        if isinstance(address, str):
            os.chmod(address, 0o666)
        sock.settimeout(0.1)
        self.messages = []

    def receive(self):
        with contextlib.suppress(TimeoutError):
            while True:
                self.messages.append(self.socket.recv(65536).decode())
        return self.messages


def split(line):
    """Time, level and the rest of a line of standard error."""
    return line.split(" ", 2)


class Syslog(PairTest):
    branch_has = {"log": {"syslog": f"udp:syslog.test:{PORT}"}}

    @classmethod
    def prepare(cls):
        cls.branch.hosts = {"syslog.test": "127.0.0.1"}
        with cls.lab.inside("branch"):
            cls.remote = Listener(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", PORT))
        cls.path = str(cls.lab.scratch / "log")
        cls.local = Listener(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), cls.path)
        cls.datacenter.settings["log"]["syslog"] = f"unix:{cls.path}"

    def change(self, site):
        """Something that is logged: the events `feature` and `control`."""
        site.set(fec="off")

    def lines(self, site, so_many=0):
        """Of standard error, at least so many."""
        return until(lambda: len(found := site.process.log().splitlines()) >= so_many and found, what="the lines")

    def test_rfc_5424_over_udp(self):
        self.change(self.branch)
        received = until(lambda: any("control method=PATCH" in message for message in self.remote.receive()) and
                         self.remote.messages, what="the change in syslog")
        written = self.lines(self.branch, len(received))
        for line, message in zip(written, received):
            time, level, text = split(line)
            priority, stamp, host, process, event, content = RFC5424.fullmatch(message).groups()
            self.assertEqual((int(priority), stamp, content, event), (SEVERITY[level], time, text, text.split()[0]))
            self.assertEqual(host, socket.gethostname())
            self.assertTrue(process.isdigit())

    def test_a_socket_of_this_host_and_a_daemon_that_comes_back(self):
        self.change(self.datacenter)
        received = until(lambda: any("control method=PATCH" in message for message in self.local.receive()) and
                         self.local.messages, what="the change in syslog")
        for line, message in zip(self.lines(self.datacenter, len(received)), received):
            _, level, text = split(line)
            priority, process, content = LOCAL.fullmatch(message).groups()
            self.assertEqual((int(priority), content), (SEVERITY[level], text))
            self.assertTrue(process.isdigit())

        def counted():
            return self.datacenter.status()["exports"]["syslog"]

        self.local.socket.close()
        os.unlink(self.path)
        self.change(self.datacenter)
        until(lambda: counted()["lost"], what="lines are lost")
        until(lambda: "warn syslog" in self.datacenter.process.log(), what="the log says so")
        type(self).local = Listener(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), self.path)
        until(lambda: (self.change(self.datacenter), self.local.receive())[1], what="lines come again")
        self.assertIn(f'longhaul_syslog_lines_total{{outcome="lost"}} {counted()["lost"]}', self.datacenter.get("/metrics"))

    @unittest.skipUnless(shutil.which("rsyslogd"), "rsyslogd is not installed")
    def test_rsyslogd_takes_both_forms(self):
        path, port, file = self.lab.scratch / "rsyslog.socket", PORT + 1, self.lab.scratch / "rsyslog.log"
        conf = self.lab.scratch / "rsyslog.conf"
        conf.write_text(RSYSLOG.format(socket=path, port=port, file=file))
        for site, to in ((self.branch, f"udp:127.0.0.1:{port}"), (self.datacenter, f"unix:{path}")):
            daemon = self.lab.start(site.node, "rsyslogd", "-n", "-f", conf, "-i", self.lab.scratch / "rsyslog.pid", name="rsyslogd")
            try:
                until(path.exists, what="rsyslogd listens")
                until(lambda: f":{port} " in self.lab.run(site.node, "ss", "-uln"), what="rsyslogd listens")
                site.stop()
                before, site.settings["log"]["syslog"] = site.settings["log"]["syslog"], to
                site.start()
                self.change(site)
                wanted = [split(line) for line in site.process.lines_with(" info control method=PATCH")]
                until(lambda: file.exists() and all(text in file.read_text() for _, _, text in wanted), what="rsyslogd has the lines")
                rows = file.read_text().splitlines()
                for _, level, text in wanted:
                    row = next(row for row in rows if text in row)
                    self.assertRegex(row, rf"^im(udp|uxsock) daemon\.{TEXT.get(level, level)} longhaul\[\d+\] +{re.escape(text)}$")
            finally:
                daemon.stop()
            file.unlink()
            site.stop()
            site.settings["log"]["syslog"] = before
            site.start()
        self.pair.wait_link()


if __name__ == "__main__":
    unittest.main()
