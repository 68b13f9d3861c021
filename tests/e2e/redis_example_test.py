# SPDX-License-Identifier: Apache-2.0
"""The example of a module (examples/modules/redis) in a program with it: Redis' own server and client, with every byte of
the replies compared with those that the same commands get without the pair."""

import shutil
import unittest
from unittest import mock

import tcp
from lab import BUILD, SERVER, Lab, until
from pair import Pair

PROGRAM = BUILD / "tests" / "longhaul-redis"
PORT = 6379
COMMANDS = """\
set greeting hello
multi
set a 1
incr a
get greeting
rpush list x y z
exec
get a
multi
incr greeting
get a
exec
multi
nosuchcommand
get a
exec
multi
set a 5
discard
get a
lrange list 0 -1
"""


def request(*words):
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)


@unittest.skipUnless(shutil.which("redis-server") and shutil.which("redis-cli"), "needs redis-server and redis-tools")
class RedisExample(unittest.TestCase):
    def setUp(self):
        self.lab = self.enterContext(Lab())
        self.enterContext(mock.patch("pair.PROGRAM", PROGRAM))
        server = self.lab.start("server", "redis-server", "--port", PORT, "--bind", "0.0.0.0", "--protected-mode", "no",
                                "--save", "", "--appendonly", "no")
        until(lambda: "Ready to accept connections" in server.log(), what="redis-server is ready")

    def play(self, node):
        """The output of redis-cli, which waits for each reply; from an empty database."""
        self.lab.run("server", "redis-cli", "-p", PORT, "flushall")
        return self.lab.run(node, "redis-cli", "-h", SERVER, "-p", PORT, text=COMMANDS)

    def test_replies_are_those_of_the_server_and_round_trips_are_saved(self):
        wanted = self.play("server")
        with Pair(self.lab) as pair:
            self.assertEqual(self.play("client"), wanted)
            # In the four transactions, what the server queues: nosuchcommand waits for it.
            until(lambda: self.counters(pair.branch).get("round_trips_saved") == 8, what="the near half has answered")
            far = self.counters(pair.datacenter)
            self.assertEqual((far["promises_kept"], far["promises_failed"]), (8, 0))
            self.assertEqual(pair.branch.reasons(), {"optimised": 1})
            pair.branch.longhaul("set", "redis=false")
            self.assertEqual(self.play("client"), wanted)
            self.assertEqual(self.counters(pair.branch)["round_trips_saved"], 8)

    def test_a_command_that_the_server_has_no_memory_for_fails_exec(self):
        with Pair(self.lab):
            client = tcp.connect(self.lab, SERVER, PORT)

            def says(*words):
                client.send(request(*words))
                reply = b""
                while not reply.endswith(b"\r\n"):
                    reply += client.receive(1)
                return reply

            self.assertEqual(says("MULTI"), b"+OK\r\n")
            self.assertEqual(says("SET", "a", "1"), b"+QUEUED\r\n")
            self.lab.run("server", "redis-cli", "-p", PORT, "config", "set", "maxmemory", "1")
            self.assertEqual(says("SET", "b", "2"), b"+QUEUED\r\n")
            self.assertTrue(says("EXEC").startswith(b"-EXECABORT "))
            self.lab.run("server", "redis-cli", "-p", PORT, "config", "set", "maxmemory", "0")
            self.assertEqual(says("GET", "a"), b"$-1\r\n")
            client.close()

    def test_publish_and_subscribe_pass(self):
        with Pair(self.lab) as pair:
            client = tcp.connect(self.lab, SERVER, PORT)
            subscribe = b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
            client.send(request("SUBSCRIBE", "news"))
            self.assertEqual(client.receive(len(subscribe)), subscribe)
            self.lab.run("server", "redis-cli", "-p", PORT, "publish", "news", "hello")
            message = b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
            self.assertEqual(client.receive(len(message)), message)
            until(lambda: pair.branch.reasons().get("redis_other_mode") == 1, what="the flow tells why")
            client.close()

    def counters(self, site):
        return next((each["counters"] for each in site.status()["modules"] if each["module"] == "redis"), {})


if __name__ == "__main__":
    unittest.main()
