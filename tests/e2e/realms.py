# SPDX-License-Identifier: Apache-2.0
"""Kerberos realms of MIT's key distribution centre, and a file server of one of them. They start within seconds and
have what Samba's domain (domain.py) does not: tickets of any encryption type, a trust, and hosts with wrong clocks."""

import os
import shutil
import unittest.mock

import smb
import tcp
from lab import SERVER, until

CORP, OTHER = "CORP.TEST", "OTHER.TEST"  # the server's, and one that it trusts
PORTS = {CORP: 88, OTHER: 8888}
NAME = "files.corp.test"  # of the file server
USER, PASSWORD, TRUST = "alice", "Passw0rd-of-alice", "Passw0rd-of-the-trust"
TYPES = {17: "aes128-cts-hmac-sha1-96", 18: "aes256-cts-hmac-sha1-96", 19: "aes128-cts-hmac-sha256-128",
         20: "aes256-cts-hmac-sha384-192", 23: "arcfour-hmac"}
KDC, ADMIN, DATABASE, LOGIN, CLOCK = (
    shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("krb5kdc", "kadmin.local", "kdb5_util", "kinit", "faketime"))

KRB5_CONF = """
[libdefaults]
  default_realm = {corp}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  allow_weak_crypto = true
[realms]
  {corp} = {{
    kdc = {server}:{corp_port}
  }}
  {other} = {{
    kdc = {server}:{other_port}
  }}
[domain_realm]
  .corp.test = {corp}
[dbmodules]
  {corp} = {{
    db_library = db2
    database_name = {folder}/{corp}
  }}
  {other} = {{
    db_library = db2
    database_name = {folder}/{other}
  }}
"""
# Without a PAC, which a server takes from a domain alone.
KDC_CONF = """
[kdcdefaults]
  kdc_listen = {port}
  kdc_tcp_listen = {port}
[realms]
  {realm} = {{
    key_stash_file = {folder}/{realm}.stash
    acl_file = {folder}/acl
    disable_pac = true
    supported_enctypes = {types}
  }}
"""


def are_there():
    return all((KDC, ADMIN, DATABASE, LOGIN, CLOCK))


class Realms:
    """`realms = self.enterContext(Realms(lab))`, in the server's node. Both realms have the user."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = lab.scratch / f"realms-{next(lab.counter)}"
        self.folder.mkdir()
        (self.folder / "acl").touch()
        self.krb5_conf = self.folder / "krb5.conf"
        self.krb5_conf.write_text(KRB5_CONF.format(corp=CORP, other=OTHER, server=SERVER, corp_port=PORTS[CORP],
                                                   other_port=PORTS[OTHER], folder=self.folder))
        for realm, port in PORTS.items():
            self.kdc_conf(realm).write_text(KDC_CONF.format(
                realm=realm, port=port, folder=self.folder, types=" ".join(f"{name}:normal" for name in TYPES.values())))
        self.tickets = self.folder / "tickets"

    def __enter__(self):
        for realm in PORTS:
            self.run(DATABASE, "create", "-s", "-r", realm, "-P", TRUST, realm=realm)
            self.admin(f"addprinc -pw {PASSWORD} {USER}", f"addprinc -pw {TRUST} krbtgt/{CORP}@{OTHER}", realm=realm)
        self.admin(f"addprinc -randkey cifs/{NAME}")
        for realm in PORTS:
            self.lab.start("server", *self.words(KDC, "-n", "-r", realm, realm=realm), name=f"kdc-{realm}")
        for port in PORTS.values():
            until(lambda port=port: self.answers(port), what="the key distribution centre answers")
        return self

    def __exit__(self, *_):
        """The lab ends its processes."""

    def kdc_conf(self, realm):
        return self.folder / f"{realm}.kdc.conf"

    def answers(self, port):
        try:
            tcp.connect(self.lab, SERVER, port, "server").close()
            return True
        except (ConnectionError, TimeoutError):
            return False

    def words(self, *words, realm=CORP):
        """The command line of a program that knows the realms."""
        return ("env", f"KRB5_CONFIG={self.krb5_conf}", f"KRB5_KDC_PROFILE={self.kdc_conf(realm)}",
                f"KRB5CCNAME=FILE:{self.tickets}", "KRB5RCACHENAME=none:", *words)

    def run(self, *words, realm=CORP, node="server", **how):
        return self.lab.run(node, *self.words(*words, realm=realm), **how)

    def admin(self, *commands, realm=CORP):
        for command in commands:
            self.run(ADMIN, "-r", realm, "-q", command, realm=realm)

    def log_in(self, realm=CORP):
        """The client node has tickets of this realm's user from here on, and no older ones."""
        self.run(LOGIN, f"{USER}@{realm}", node="client", text=f"{PASSWORD}\n")

    def fetch_ticket(self, name):
        """For the file server of that name."""
        self.run("kvno", "-q", f"cifs/{name}@{CORP}", node="client")

    def export_keytab(self, *principals, name="files.keytab"):
        """The keys of these services as they are; those of older versions stay in it."""
        keytab = self.folder / name
        for principal in principals or (f"cifs/{NAME}",):
            self.admin(f"ktadd -k {keytab} -norandkey {principal}")
        os.chmod(keytab, 0o600)
        return keytab


class Server(smb.Smbd):
    """A file server of the first realm: its users are root. Its clients log in with tickets. `clock`: how wrong its own is,
    such as "+10m"."""

    def __init__(self, realms, keytab, names=(NAME,), clock=None):
        self.realms, self.clock = realms, clock
        users = realms.folder / "users"
        users.write_text("!root = *\n")
        super().__init__(realms.lab, {"realm": CORP, "kerberos method": "dedicated keytab",
                                      "dedicated keytab file": keytab, "username map": users})
        with open(self.hosts, "a", encoding="ascii") as hosts:
            hosts.writelines(f"{SERVER} {name}\n" for name in names)

    def knowing_its_name(self, words):
        if self.clock and words[0] == "smbd":
            words = wrong(self.clock, words)
        return super().knowing_its_name(self.realms.words(*words))

    def words(self, command, *options, host=NAME, share="share", dialect="3.1.1", protection="sign", clock=None):
        """The command line of smbclient with the tickets that the client node has. `clock`: how wrong the client's is."""
        words = ("smbclient", f"//{host}/{share}", "-s", self.client_configuration, "--use-kerberos=required",
                 "-m", smb.DIALECTS[dialect], f"--client-protection={protection}", "-c", command, *options)
        return super().knowing_its_name(self.realms.words(*(wrong(clock, words) if clock else words)))

    def log_in_with(self, connection):
        """Of impacket, with a ticket from the client's cache."""
        self.realms.fetch_ticket(connection.getRemoteName())
        with unittest.mock.patch.dict(os.environ, KRB5CCNAME=str(self.realms.tickets)):
            connection.kerberosLogin("", "", useCache=True)

    def smbclient(self, command, *options, node="client", seconds=120, check=True, **how):
        return self.lab.run(node, *self.words(command, *options, **how), seconds=seconds, check=check)


def wrong(clock, words):
    """The command line of a program whose host's clock is wrong. As faketime would start it, which itself would stay beside
    the program and end alone where the test ends it."""
    return ("env", "LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1", f"FAKETIME={clock}", *words)
