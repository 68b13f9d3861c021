# SPDX-License-Identifier: Apache-2.0
"""A file server that announces what no server has, and a client on the other LAN that takes it at its word. Neither holds
a key; both proxies must go on carrying others' flows."""

import contextlib
import os
import struct

import fake_smb2
import tcp
from fake_smb2 import CREATE, NEGOTIATE, READ, SESSION_SETUP, TREE_CONNECT
from lab import SERVER
from pair import PairTest

MOST = 0xFFFFFFFF
LARGE = 17 << 20  # more than the length of a frame can say


class Client:
    """Of the fake server, one request at a time."""

    def __init__(self, connection):
        self.connection, self.next_id = connection, 0

    def ask(self, command, body, charge=1):
        self.connection.send(fake_smb2.request(command, self.next_id, body, charge))
        self.next_id += charge

    def answer(self):
        size, = struct.unpack(">I", self.connection.receive(4))
        return self.connection.receive(size)

    def connect(self):
        for command, body in ((NEGOTIATE, fake_smb2.negotiate()), (SESSION_SETUP, fake_smb2.session_setup()),
                              (TREE_CONNECT, fake_smb2.tree_connect())):
            self.ask(command, body)
            self.answer()


class Server(PairTest):
    line = ("51.84mbit,10",)

    def assert_alive(self):
        for site in self.pair.sites:
            self.assertTrue(site.process.is_running(), site.process.log()[-2000:])
            site.wait_link()  # or again: on a busy machine it may be silent for a moment

    def test_a_server_that_announces_unlimited_sizes_disturbs_no_other_flow(self):
        fake = fake_smb2.Server(most_bytes=MOST)
        data = os.urandom(100_000)
        with tcp.Server(self.lab, fake, port=445), tcp.Server(self.lab, tcp.echo) as echo, \
                contextlib.closing(tcp.connect(self.lab, SERVER, echo.port)) as beside, \
                contextlib.closing(tcp.connect(self.lab, SERVER, 445)) as connection:
            client = Client(connection)
            client.connect()
            client.ask(CREATE, fake_smb2.create("large", oplock=0x09))
            file = fake_smb2.opened_file(client.answer())  # the far proxy may have opened the folder before
            for length in (LARGE, MOST):
                client.ask(READ, fake_smb2.read(file, 0, length), charge=min(1 + (length - 1) // 65536, 400))
                beside.send(data)
                self.assertEqual(beside.receive(len(data)), data)
                client.answer()
        self.assert_alive()
