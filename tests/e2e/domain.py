# SPDX-License-Identifier: Apache-2.0
"""A Windows domain that Samba serves: a domain controller in a node of a lab, with a KDC, users and a share whose
connections are signed. Clients log in with Kerberos; the keytab of its file server is what the far side gets."""

import os
import shutil
import socket
import unittest.mock

import smb
import smb_client
import tcp
from lab import SERVER, until
from web import sha256_of

REALM, DOMAIN, HOST = "LONGHAUL.TEST", "LONGHAUL", "files"
NAME = f"{HOST}.{REALM.lower()}"  # of the file server, which is the domain controller
USER, PASSWORD = "alice", "Passw0rd-of-alice"
ADMINISTRATOR_PASSWORD = "Passw0rd-of-nobody"

KRB5_CONF = """
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  forwardable = false
[realms]
  {realm} = {{
    kdc = {address}
    kpasswd_server = {address}
  }}
[domain_realm]
  .{zone} = {realm}
"""


def is_there():
    return shutil.which("samba") is not None and shutil.which("kinit") is not None


class Files:
    """What clients do with the share of a file server in a domain: of its controller, or of a member (member.py). It
    has `name`, `share` (its folder) and `site`, the domain."""

    def make(self, name, size, seed=1):
        with open(self.share / name, "wb") as file:
            for piece in tcp.pieces(size, seed):
                file.write(piece)
        return sha256_of(self.share / name)

    def sha256_of(self, name):
        return sha256_of(self.share / name)

    def words(self, command, *options, protection="sign", kerberos=True, dialect="3.1.1"):
        """The command line of smbclient with the user's tickets, or with its password over NTLM. `protection` is sign,
        encrypt or off."""
        how = ("--use-kerberos=required",) if kerberos else ("--use-kerberos=off", f"--password={PASSWORD}")
        return self.site.knowing("smbclient", f"//{self.name}/share", "-s", self.site.client_conf, "-U", USER, *how,
                                 "-m", smb.DIALECTS[dialect], f"--client-protection={protection}", "-c", command, *options)

    def lets_users_in(self):
        """Over NTLM, for which it asks all its other processes."""
        words = self.words("", kerberos=False)
        return self.site.lab.run(self.site.node, *words, check=False).returncode == 0

    def log_in_with(self, connection):
        """Of impacket, with a ticket from the client's cache."""
        self.site.run("kvno", "-q", f"cifs/{self.name}")
        with unittest.mock.patch.dict(os.environ, KRB5CCNAME=str(self.site.folder / "tickets")):
            connection.kerberosLogin("", "", useCache=True)

    def connect(self, dialect="3.1.1", protection="sign"):
        """A client that the test leads (smb_client.py)."""
        return smb_client.connect(self.site.lab, self, dialect, host=self.address, protection=protection, name=self.name)

    def smbclient(self, command, *options, node="client", seconds=120, **how):
        return self.site.lab.run(node, *self.words(command, *options, **how), seconds=seconds)

    def get(self, name, *options, **how):
        """Copies a file of the share to the client and gives the SHA-256 of the copy."""
        copy = self.site.lab.scratch / f"copy-{next(self.site.lab.counter)}"
        self.smbclient(f"get {name} {copy}", *options, **how)
        sha256 = sha256_of(copy)
        copy.unlink()
        return sha256

    def put(self, path, name, *options, **how):
        """Copies a file of the client into the share and gives the SHA-256 of the copy."""
        self.smbclient(f"put {path} {name}", *options, **how)
        return self.sha256_of(name)


class Domain(Files):
    """`domain = self.enterContext(Domain(lab))`; ends with the lab. `share` is its folder of files."""

    def __init__(self, lab, node="server", address=SERVER):
        self.lab, self.node, self.address = lab, node, address
        self.site, self.name = self, NAME
        self.folder = lab.scratch / f"domain-{next(lab.counter)}"
        self.share = self.folder / "files"
        self.share.mkdir(parents=True)
        self.share.chmod(0o777)
        self.krb5_conf = self.folder / "krb5.conf"
        self.krb5_conf.write_text(KRB5_CONF.format(realm=REALM, zone=REALM.lower(), address=address))
        self.hosts = self.folder / "hosts"
        # With the host's own name, for which Samba would wait for a name server (see smb.py).
        self.hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n::1 localhost\n{address} {NAME} {HOST}\n")
        self.resolver = self.folder / "resolv.conf"
        self.resolver.write_text(f"nameserver {address}\n")
        self.client_conf = self.folder / "client.conf"
        self.client_conf.write_text(smb.section("global", {**smb.CLIENT, "workgroup": DOMAIN, "realm": REALM},
                                                self.folder / "client"))
        (self.folder / "client").mkdir()
        (self.folder / "run").mkdir(mode=0o755)
        self.conf = self.folder / "dc" / "etc" / "smb.conf"
        self.process = None

    def __enter__(self):
        self._provision()
        self.process = self.lab.start(self.node, *self.knowing("samba", "--foreground", "--no-process-group",
                                                               "--debug-stdout", "-s", self.conf), name="samba")
        until(self._serves, seconds=120, what="the domain controller serves files and tickets")
        return self

    def __exit__(self, *_):
        if self.process.is_running():
            self.process.popen.terminate()
            self.process.popen.wait(20)

    def _provision(self):
        words = ("samba-tool", "domain", "provision", f"--realm={REALM}", f"--domain={DOMAIN}", "--server-role=dc",
                 "--dns-backend=SAMBA_INTERNAL", f"--adminpass={ADMINISTRATOR_PASSWORD}", f"--host-name={HOST}",
                 f"--host-ip={self.address}", f"--targetdir={self.folder / 'dc'}", "--option=bind interfaces only=yes",
                 f"--option=interfaces=lo {self.address}/24", "--option=vfs objects=dfs_samba4 acl_xattr",
                 "--option=ldb:nosync=true", "--quiet")
        self.run(*words, node=self.node, seconds=300)
        with open(self.conf, "a", encoding="ascii") as conf:
            conf.write(smb.section("share", {"path": self.share, "read only": "no"}, self.folder))
        settings = {"disable netbios": "yes", "server services": "s3fs, rpc, ldap, cldap, kdc, winbindd, dns",
                    "load printers": "no", "printing": "bsd", "printcap name": "/dev/null", "kernel oplocks": "no",
                    "smb2 leases": "yes", "server min protocol": "NT1", "ldb:nosync": "true", "pid directory": self.folder / "dc", "log level": "1",
                    "ncalrpc dir": self.folder / "dc" / "ncalrpc"}
        text = self.conf.read_text().replace("[global]", smb.section("global", settings, self.folder).rstrip(), 1)
        self.conf.write_text(text)
        self.tool("user", "create", USER, PASSWORD)

    def _serves(self):
        if not self.process.is_running():
            raise AssertionError(f"samba ended at its start\n{self.process.log()}")
        for port in (88, 389, 445):
            try:
                tcp.connect(self.lab, self.address, port, self.node).close()
            except (ConnectionError, TimeoutError):
                return False
        return self.lets_users_in()

    # -- programs that know the domain

    def knowing(self, *words):
        """The command line of a program to which the names and the realm of the domain are its host's; nothing that it
        stores has to outlive the host, or a busy disk would delay it by a minute. What runs
        inside a namespace has mounts of its own, so the host's files stay as they are."""
        # And its winbindd's socket: the smbd of any other test would ask it for its own users.
        mounts = ('for f in hosts resolv.conf; do [ ! -e /etc/$f ] || mount --bind "$0/$f" /etc/$f || exit; done; '
                  'mkdir -p /run/samba && mount --bind "$0/run" /run/samba || exit; '
                  'exec env KRB5_CONFIG="$0/krb5.conf" KRB5CCNAME="FILE:$0/tickets" KRB5RCACHENAME=none: TDB_NO_FSYNC=1 "$@"')
        return ("sh", "-c", mounts, self.folder, *words)

    def run(self, *words, node="client", **how):
        return self.lab.run(node, *self.knowing(*words), **how)

    def tool(self, *words):
        """samba-tool at the domain controller, on its database."""
        return self.run("samba-tool", *words, "-s", self.conf, node=self.node)

    def log_in(self, user=USER, password=PASSWORD):
        """The client node has the user's tickets from here on."""
        self.run("kinit", f"{user}@{REALM}", text=f"{password}\n")

    def export_keytab(self, *principals, name="files.keytab"):
        """What an administrator of the domain gives the far side: the keys of the file server's account alone."""
        keytab = self.folder / name
        for principal in principals or (f"{HOST.upper()}$",):
            self.tool("domain", "exportkeytab", keytab, f"--principal={principal}")
        os.chmod(keytab, 0o600)
        return keytab
