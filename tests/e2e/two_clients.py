# SPDX-License-Identifier: Apache-2.0
"""What tests with two SMB clients on one file share: files whose bytes a seed tells, copies in blocks, and stories that
are told once for each dialect. The stories are in smb_two_clients_test.py, and where something breaks in
smb_trouble_test.py."""

import functools

import smb_client
import tcp
from smb_client import SmbError

BLOCK = 60_000


def made(size, seed):
    return b"".join(tcp.pieces(size, seed))


def write_blocks(file, data, start=0):
    for at in range(0, len(data), BLOCK):
        file.write(start + at, data[at:at + BLOCK])


def read_all(file, start=0):
    data = bytearray()
    while got := file.read(start + len(data), BLOCK):
        data += got
    return bytes(data)


def errors_of(*calls):
    """Makes the calls one after the other; gives the statuses of those that failed."""
    found = []
    for call in calls:
        try:
            call()
        except SmbError as error:
            found.append(error.status)
    return found


def crashes_at_close(smbd):
    """How often one of smbd's processes has crashed as it ended a file: 4.17 does, now and then, where an SMB1 CLOSE comes
    while a READ of the file has no answer yet. The connection is gone then, and tells nothing of the pair."""
    return smbd.process.log().count("(close_file_smb+")


def each_dialect(story):
    """Runs the test once for each of its class's dialects, with two clients and a file of 600,000 bytes: `here` is
    behind the pair, with the class's `protection`, `there` is beside the server. It is repeated, twice at most, if smbd itself crashed."""

    def tell(self, dialect):
        for path in self.smbd.share.iterdir():
            path.unlink()
        protection = getattr(self, "protection", "none")
        with smb_client.connect(self.lab, self.smbd, dialect, protection=protection) as here, \
                smb_client.connect(self.lab, self.smbd, dialect, node="server") as there:
            self.smbd.make("file", len(self.data), seed=1)
            story(self, here, there)

    @functools.wraps(story)
    def test(self):
        for dialect in self.dialects:
            with self.subTest(dialect):
                for last in False, False, True:
                    crashes = crashes_at_close(self.smbd)
                    try:
                        tell(self, dialect)
                        break
                    except Exception:
                        if last or crashes_at_close(self.smbd) == crashes:
                            raise

    return test
