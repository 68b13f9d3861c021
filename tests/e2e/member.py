# SPDX-License-Identifier: Apache-2.0
"""A file server that is a member of a domain, in the node of the domain's controller under an address of its own: the
one whose keytab the far side gets."""

import smb
from domain import ADMINISTRATOR_PASSWORD, DOMAIN, NAME, REALM, USER, Files
from lab import until


class Member(Files):
    """`member = self.enterContext(Member(domain))`. `settings` and `share` are added to its smb.conf, as with smb.Smbd.
    The domain's user is root on its disk."""

    SETTINGS = {
        "security": "ads", "realm": REALM, "workgroup": DOMAIN, "server role": "member server",
        "passdb backend": None, "ntlm auth": None, "map to guest": None, "netbios name": "{name}",
        "interfaces": "{address}", "bind interfaces only": "yes", "username map": "{folder}/users",
        "kerberos method": "dedicated keytab", "dedicated keytab file": "{folder}/server.keytab",
        "winbindd socket directory": "{folder}/winbindd",
        "min domain uid": "0",  # users are root
        "idmap config * : backend": "tdb", "idmap config * : range": "100000-199999",
    }

    def __init__(self, site, settings=None, share=None, name="member", address="10.10.2.4"):
        self.site, self.lab, self.node = site, site.lab, site.node
        self.name, self.address = f"{name}.{REALM.lower()}", address
        self.account = f"{name.upper()}$"
        self.folder = self.lab.scratch / f"member-{next(self.lab.counter)}"
        for part in ("private", "state", "lock", "cache", "pid", "ncalrpc", "winbindd", "share"):
            (self.folder / part).mkdir(parents=True, mode=0o755)
        self.share = self.folder / "share"
        (self.folder / "users").write_text(f"root = {DOMAIN}\\{USER} {USER}\n")
        own = {key: value and value.format(folder=self.folder, name=name.upper(), address=address)
               for key, value in self.SETTINGS.items()}
        self.conf = self.folder / "smb.conf"
        self.conf.write_text(smb.section("global", {**smb.GLOBAL, **own, **(settings or {})}, self.folder) +
                             smb.section("share", {"path": self.share, "read only": "no", **(share or {})}, self.folder))
        self.keytab = self.folder / "server.keytab"  # of this server alone: what the far side gets
        self.processes = []

    def __enter__(self):
        self.lab.run(self.node, "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        with open(self.site.hosts, "a", encoding="ascii") as hosts:
            hosts.write(f"{self.address} {self.name} {self.name.partition('.')[0]}\n")
        net = ("-s", self.conf, "-U", f"Administrator%{ADMINISTRATOR_PASSWORD}", "-S", NAME)
        self.site.run("net", "ads", "join", *net, "--no-dns-updates", "osName=none", node=self.node)
        self.site.run("net", "ads", "keytab", "create", *net, node=self.node)
        for program in ("winbindd", "smbd"):
            self.processes.append(self.lab.start(self.node, *self.site.knowing(
                program, "--foreground", "--no-process-group", "--debug-stdout", "-s", self.conf), name=program))
        until(self._serves, seconds=120, what="the member serves files")
        return self

    def change_password(self):
        """As a member does by itself every month: its account has another password, and its keytab both versions."""
        net = ("-s", self.conf, "-P", "-S", NAME)
        self.site.run("net", "ads", "changetrustpw", *net, node=self.node)
        self.site.run("net", "ads", "keytab", "create", *net, node=self.node)

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.is_running():
                process.popen.terminate()
                process.popen.wait(20)

    def _serves(self):
        for process in self.processes:
            if not process.is_running():
                raise AssertionError(f"{process.name} ended at its start\n{process.log()}")
        return self.lets_users_in()
