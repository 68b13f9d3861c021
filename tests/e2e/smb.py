# SPDX-License-Identifier: Apache-2.0
"""File sharing with programs we did not write: Samba's smbd serves a folder in a node, smbclient copies files."""

import secrets

import tcp
from lab import SERVER, until
from web import sha256_of

# All state is in a folder of its own, so that neither the host's Samba nor another test is met.
CONFIGURATION = """
[global]
  workgroup = LAB
  netbios name = LABSERVER
  server role = standalone server
  map to guest = never
  passdb backend = tdbsam
  private dir = {folder}/private
  state directory = {folder}/state
  lock directory = {folder}/lock
  cache directory = {folder}/cache
  pid directory = {folder}/pid
  ncalrpc dir = {folder}/ncalrpc
  log file = {folder}/log.%m
  log level = 1
  bind interfaces only = no
  disable netbios = yes
  smb ports = 445
  server min protocol = NT1
  server signing = auto
  load printers = no
  printing = bsd
  printcap name = /dev/null
  disable spoolss = yes
  dns proxy = no
  smb2 leases = yes
  oplocks = yes
  kernel oplocks = no
  posix locking = no
  ea support = yes
  store dos attributes = yes
  vfs objects = streams_xattr acl_xattr
{more}
[share]
  path = {folder}/share
  read only = no
"""

# The client's own state has to have a place too, or smbclient writes to the host's.
CLIENT_CONFIGURATION = """
[global]
  workgroup = LAB
  client min protocol = NT1
  client max protocol = SMB3
  lock directory = {folder}/client
  cache directory = {folder}/client
  state directory = {folder}/client
  private dir = {folder}/client
"""

USER = "root"  # smbd maps to a Unix user; any other would have to be made on the host


class Smbd:
    def __init__(self, lab, node="server", more=""):
        self.lab = lab
        self.folder = lab.scratch / f"smb-{next(lab.counter)}"
        for name in ("private", "state", "lock", "cache", "pid", "ncalrpc", "share", "client"):
            (self.folder / name).mkdir(parents=True, mode=0o755)
        self.share = self.folder / "share"
        self.configuration = self.folder / "smb.conf"
        self.configuration.write_text(CONFIGURATION.format(folder=self.folder, more=more))
        self.client_configuration = self.folder / "client.conf"
        self.client_configuration.write_text(CLIENT_CONFIGURATION.format(folder=self.folder))
        self.password = secrets.token_hex(8)
        lab.run(node, "smbpasswd", "-c", self.configuration, "-s", "-a", USER, text=f"{self.password}\n" * 2)
        self.process = lab.start(node, "smbd", "--foreground", "--no-process-group", "--debug-stdout", "-s",
                                 self.configuration)
        until(lambda: self._answers(node), seconds=20, what="smbd accepts connections")

    def _answers(self, node):
        try:
            tcp.connect(self.lab, "127.0.0.1", 445, node).close()
            return True
        except ConnectionRefusedError:
            return False

    def make(self, name, size, seed=1):
        """Makes a file in the share and gives its SHA-256."""
        with open(self.share / name, "wb") as file:
            for piece in tcp.pieces(size, seed):
                file.write(piece)
        return sha256_of(self.share / name)

    def words(self, command, *options, host=SERVER):
        """The command line of smbclient that runs one of its commands in the share."""
        return ("smbclient", f"//{host}/share", self.password, "-s", self.client_configuration, "-U", USER, "-c", command,
                *options)

    def smbclient(self, command, *options, node="client", host=SERVER, seconds=120):
        return self.lab.run(node, *self.words(command, *options, host=host), seconds=seconds)

    def get(self, name, *options, **where):
        """Copies a file of the share to the client and gives the SHA-256 of the copy."""
        copy = self.lab.scratch / f"copy-{next(self.lab.counter)}"
        self.smbclient(f"get {name} {copy}", *options, **where)
        sha256 = sha256_of(copy)
        copy.unlink()
        return sha256

    def put(self, path, name, *options, **where):
        """Copies a file of the client into the share and gives the SHA-256 of the copy."""
        self.smbclient(f"put {path} {name}", *options, **where)
        return sha256_of(self.share / name)
