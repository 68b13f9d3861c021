# SPDX-License-Identifier: Apache-2.0
"""SMB clients that a test leads step by step, in every dialect: connection, login, signing and encryption are
impacket's, the requests on files are built in smb1_client.py and smb2_client.py, so that oplocks, flags and sizes are the
test's to choose. What programs do with files is in smb_work.py."""

import concurrent.futures
import os
import select
import struct
import sys
import time

from lab import PATIENCE, REPOSITORY, SERVER

_PACKAGES = REPOSITORY / "build" / "python" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
if not (_PACKAGES / "impacket").exists():
    raise ImportError("impacket is not installed: run tools/setup")
sys.path.append(os.fspath(_PACKAGES))

from impacket import nt_errors, smb3structs  # pylint: disable=wrong-import-position
from impacket.smb import SMB_DIALECT  # pylint: disable=wrong-import-position
from impacket.smbconnection import SMBConnection  # pylint: disable=wrong-import-position

DIALECTS = {"NT1": SMB_DIALECT, "2.02": smb3structs.SMB2_DIALECT_002, "2.1": smb3structs.SMB2_DIALECT_21,
            "3.0": smb3structs.SMB2_DIALECT_30, "3.1.1": smb3structs.SMB2_DIALECT_311}

# Access masks, dispositions, sharing, options ([MS-SMB2] 2.2.13; the same in [MS-CIFS] 2.2.4.64)
READ, WRITE, DELETE, ATTRIBUTES = 0x00120089, 0x00120116, 0x00010000, 0x00100080
WRITE_ATTRIBUTES = 0x00100100
SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
SHARE_NONE, SHARE_READ, SHARE_WRITE, SHARE_DELETE, SHARE_ALL = 0, 1, 2, 4, 7
DIRECTORY_FILE, WRITE_THROUGH, NON_DIRECTORY_FILE, DELETE_ON_CLOSE = 0x1, 0x2, 0x40, 0x1000
NO_INTERMEDIATE_BUFFERING = 0x8

NO_OPLOCK, LEVEL_II, EXCLUSIVE, BATCH, LEASE = 0x00, 0x01, 0x08, 0x09, 0xFF  # as SMB2 writes them
LEASE_READ, LEASE_HANDLE, LEASE_WRITE, LEASE_ALL = 1, 2, 4, 7

OK, PENDING, END_OF_FILE, NO_MORE_FILES = 0, 0x103, 0xC0000011, 0x80000006
SHARING_VIOLATION, FILE_LOCK_CONFLICT, LOCK_NOT_GRANTED = 0xC0000043, 0xC0000054, 0xC0000055
DELETE_PENDING, NAME_NOT_FOUND, DISK_FULL, NAME_COLLISION = 0xC0000056, 0xC0000034, 0xC000007F, 0xC0000035
LOST_WRITES = 0xC0000222  # STATUS_LOST_WRITEBEHIND_DATA
RANGE_NOT_LOCKED, PATH_NOT_FOUND = 0xC000007E, 0xC000003A

LARGEST_SMB1_READ = 61440  # what the older redirectors ask for at once
FOREVER = 60.0


class SmbError(Exception):
    def __init__(self, status, what=""):
        name = nt_errors.ERROR_MESSAGES.get(status, (f"status {status:#010x}",))[0]
        super().__init__(f"{what}: {name}")
        self.status = status


class Broken(ConnectionError):
    """The connection ended or was reset before the answer."""


def connect(lab, smbd, dialect="3.1.1", node="client", host=SERVER, share="share", protection="none", port=445, name=None):
    """A connection to a share. `name`: the server's, for its tickets. `smbd.log_in_with` logs in. `protection` is none,
    sign or encrypt. With none a session of 3.1.1 is what smbclient's is: the requests up to the tree connect are signed, as the dialect demands, and those on files are not."""
    with lab.inside(node):
        called = name or ("LABSERVER" if port == 139 else host)  # any name will do; for *SMBSERVER impacket asks port 137 first
        outer = SMBConnection(called, host, sess_port=port, timeout=FOREVER, preferredDialect=DIALECTS[dialect])
    from smb1_client import Smb1Client  # pylint: disable=import-outside-toplevel,cyclic-import
    from smb2_client import Smb2Client  # pylint: disable=import-outside-toplevel,cyclic-import
    kind = Smb1Client if dialect == "NT1" else Smb2Client  # both build on this module
    return kind(outer, dialect, smbd, share, protection)


def beside(call):
    """Starts a call that may have to wait for another client. The returned object waits for its result."""
    thread = concurrent.futures.ThreadPoolExecutor(1)
    future = thread.submit(call)
    thread.shutdown(wait=False)
    return lambda seconds=FOREVER: future.result(seconds)


class Client:
    """The common part of both. An unsolicited break from the server waits in `breaks` until the test looks."""

    def __init__(self, outer, dialect, share):
        self.outer, self.dialect, self.share_name = outer, dialect, share
        self.inner = outer.getSMBServer()
        self.breaks = []
        self.requests = 0  # sent so far, those of the login included
        self.socket = self.inner.get_socket()
        self.session = self._session()
        self._receive, self._send = self.session.recv_packet, self.session.send_packet
        self.session.recv_packet, self.session.send_packet = self._receive_filtered, self._send_counted

    def _send_counted(self, data):
        self.requests += 1
        try:
            self._send(data)
        except OSError as error:
            raise Broken(str(error)) from error

    def _receive_filtered(self, timeout=FOREVER):
        while True:
            try:
                packet = self._receive(timeout)
            except Exception as error:
                raise Broken(f"{type(error).__name__}: {error}") from error
            found = self._break_in(packet.get_trailer())
            if found is None:
                return packet
            self.breaks.append(found)

    def wait_break(self, seconds=PATIENCE):
        """The next break that the server sends while this client asks nothing."""
        deadline = time.monotonic() + seconds
        while not self.breaks:
            ready, _, _ = select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no break within {seconds:g} s")
            try:
                found = self._break_in(self._receive(FOREVER).get_trailer())
            except Exception as error:
                raise Broken(f"{type(error).__name__}: {error}") from error
            if found is None:
                raise AssertionError("an answer without a request")
            self.breaks.append(found)
        return self.breaks.pop(0)

    def close(self):
        """Ends the TCP connection, as a program that exits does."""
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def names_and_sizes(buffer, name_at):
    """Of a chain of directory entries ([MS-FSCC] 2.4); . and .. are left out."""
    at, found = 0, {}
    while at < len(buffer):  # the last entry of SMB1 names its own end as the next
        (following,) = struct.unpack_from("<I", buffer, at)
        (size,) = struct.unpack_from("<Q", buffer, at + 40)
        (length,) = struct.unpack_from("<I", buffer, at + 60)
        name = buffer[at + name_at:at + name_at + length].decode("utf-16-le").rstrip("\0")
        if name not in (".", ".."):
            found[name] = size
        if not following:
            break
        at += following
    return found
