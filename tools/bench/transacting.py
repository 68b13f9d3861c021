# SPDX-License-Identifier: Apache-2.0
"""Transactions done: an agent of longhaul-txn at the client, one at the server, and the console, whose words to the
server's agent do not cross the line that is measured."""

import contextlib
import json
import re
import socket
import threading

import tcp
from applications import Moved, Work
from lab import BUILD, SERVER, until

PROGRAM = BUILD / "tools" / "txn" / "longhaul-txn"
FIRST_PORT = 7700  # of the data, in a node of the lab's own; others count up
COMPARED = "by longhaul-txn's agents, byte by byte"


class Txn(Work):
    def __init__(self, rig, application, seed, count, seconds):
        super().__init__(rig, application, seed)
        self.transaction, self.count, self.seconds = application.transaction, count, seconds
        self.kind = "short transactions" if self.transaction.connects else "transactions"
        self.expected = COMPARED
        self.agents, self.shortcut = [], None
        try:
            self.agents = [self.lab.start(node, PROGRAM, "agent", "--listen", "127.0.0.1:0") for node in ("client", "server")]
            here, there = (until(lambda agent=agent: self._port(agent), 30, "longhaul-txn's agent listens")
                           for agent in self.agents)
            self.shortcut = Shortcut(self.lab, there)
        except BaseException:
            self.remove()
            raise
        self.words = [PROGRAM, "run", "--from", f"127.0.0.1:{here}", "--to", f"127.0.0.1:{self.shortcut.port}",
                      "--data-address", SERVER, "--data-port", FIRST_PORT, "--json", "-", "--quiet",
                      *self.transaction.words(count, seconds)]

    @property
    def ports(self):
        return range(FIRST_PORT, FIRST_PORT + self.transaction.pairs)

    @staticmethod
    def _port(agent):
        found = re.search(r"listens at \S+:(\d+)", agent.log())
        return found and int(found[1])

    def place(self, data):
        """The agents make the bytes, others for each transaction."""

    def prime(self):
        if not self.rig.is_running:
            return
        for port in self.ports:
            with tcp.Listener(self.lab, port=port) as listener:  # the agent's own comes only with its transactions
                tcp.connect(self.lab, SERVER, port).close()
                listener.accept().close()
        self.rig.wait_quiet()

    def move(self):
        done = self.lab.run("client", *self.words, seconds=3600, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"longhaul-txn ended with {done.returncode}")
        row = json.loads(done.stdout)["rows"][0]
        facts = {name: row[name] for name in ("transactions", "response_ms", "datagrams_sent_again", "timeouts")}
        return Moved(row["seconds"], COMPARED, facts={"size": row["transactions"] * self.transaction.bytes, **facts})

    def remove(self):
        if self.shortcut:
            self.shortcut.close()
        for agent in self.agents:
            agent.stop()
            self.lab.processes.remove(agent)
            agent.log_file.unlink(missing_ok=True)


class Shortcut:
    """A port at the client that leads to one at the server past the line: for what steers, not for what is measured."""

    def __init__(self, lab, port, start="client", end="server"):
        self.lab, self.target, self.end = lab, port, end
        with lab.inside(start):
            self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(here,), daemon=True).start()

    def _carry(self, here):
        with here, contextlib.suppress(OSError):
            with self.lab.inside(self.end):
                there = socket.create_connection(("127.0.0.1", self.target), timeout=30)
            with there:
                there.settimeout(None)
                back = threading.Thread(target=self._pump, args=(there, here), daemon=True)
                back.start()
                self._pump(here, there)
                back.join()

    @staticmethod
    def _pump(from_, to):
        """Ends by shutdown, which works even if other processes have inherited the socket."""
        with contextlib.suppress(OSError):
            while piece := from_.recv(1 << 16):
                to.sendall(piece)
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_WR)

    def close(self):
        tcp.with_shutdown(self.listener)
        self.thread.join(30)
