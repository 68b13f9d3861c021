# SPDX-License-Identifier: Apache-2.0
"""The common part of the writing clients in Python: the command line, the policies after an error, and the lines of
JSON that report what the library told the program. Each client adds one library; README.md describes the lines."""

import argparse
import json
import sys
import time

import looking

# The session, the tree or the handle is gone, and the server says so: a program that logs in again may go on.
SESSION_IS_GONE = {
    0xC0000008: "INVALID_HANDLE", 0xC00000B5: "IO_TIMEOUT", 0xC00000C9: "NETWORK_NAME_DELETED",
    0xC0000128: "FILE_CLOSED", 0xC0000203: "USER_SESSION_DELETED", 0xC000020C: "CONNECTION_DISCONNECTED",
    0xC000020D: "CONNECTION_RESET", 0xC000035C: "NETWORK_SESSION_EXPIRED",
}
UNFINISHED = ".new"  # behind the name of a file that is renamed when it is complete
SHARING_VIOLATION = 0xC0000043  # of an open: the server may not have noticed that the last connection is gone


class Broken(Exception):
    """The connection or the session is gone: what a program may answer with a new login."""


def check(status, what, opening=False):
    """Raises what a status means to a program: nothing for success."""
    if status in SESSION_IS_GONE or (opening and status == SHARING_VIOLATION):
        raise Broken(f"{what}: {status:#010x}")
    if status:
        raise OSError(f"{what}: status {status:#010x}")


def say(**line):
    print(json.dumps({"at": round(time.time(), 4), **line}), flush=True)


class Client:
    """One library. Its calls raise Broken, or anything else for an error that a new login does not mend."""

    def __init__(self, options, data):
        self.options = options
        self.data = data
        self.call = ""  # the one that is being made

    # Those of the library:

    def login(self):
        raise NotImplementedError

    def open(self, replace):
        """`replace`: the file is made, or emptied; otherwise it is opened as it is, or made."""
        raise NotImplementedError

    def write(self, offset, block):
        raise NotImplementedError

    can_flush = True

    def flush(self):
        """Where the library can."""

    def close(self):
        raise NotImplementedError

    def logout(self):
        """As a program that ends well does."""

    def rename(self, new):
        """Gives the file, which is closed, this name. For the policy `rename`."""
        raise NotImplementedError

    def drop(self):
        """Forgets a connection that is broken."""

    def looker(self, what):
        """Logs in, and gives the call that looking.py repeats: what the library shows of the file, or of its folder."""
        raise NotImplementedError

    # What programs do with them:

    def made(self, call, *arguments):
        self.call = call
        getattr(self, call)(*arguments)

    def write_from(self, first, replace, acked, flushed):
        """Logs in, writes the blocks from `first` to the last, and closes. Tells which the library has acknowledged."""
        options = self.options
        self.made("login")
        if first == options.blocks and options.policy == "rename":
            self.made("rename", options.final)  # all was acknowledged: it is complete, as far as a program knows
            return
        self.made("open", replace)
        say(opened=True)
        for number in range(first, options.blocks):
            self.made("write", number * options.size, self.block(number))
            acked(number)
            if self.can_flush and options.flush_every and (number + 1) % options.flush_every == 0:
                self.made("flush")
                flushed(number)
        if self.can_flush and options.policy not in ("close-only", "rename"):
            self.made("flush")
            flushed(options.blocks - 1)
        self.made("close")
        if options.policy == "rename":
            self.made("rename", options.final)
        if options.policy != "close-only":
            self.made("logout")

    def block(self, number):
        return self.data[number * self.options.size:(number + 1) * self.options.size]


def parse():
    parser = argparse.ArgumentParser(description="Writes blocks to a file of an SMB share and tells what it was told.")
    for name in "host", "share", "user", "password", "name":
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--data", help="the file with the bytes to write")
    parser.add_argument("--dialect", default="3.1.1", choices=("NT1", "2.1", "3.0", "3.1.1"))
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--size", type=int, default=32768, help="bytes of a block")
    parser.add_argument("--policy", default="stop", choices=("stop", "continue", "close-only", "rename"))
    parser.add_argument("--ask", default="none", choices=("none", "oplock", "lease", "durable"))
    parser.add_argument("--in-place", action="store_true", help="the file is there, and is not emptied at the first open")
    parser.add_argument("--flush-every", type=int, default=0, metavar="BLOCKS")
    parser.add_argument("--pace", type=float, default=0, help="milliseconds between two writes")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that the library waits for an answer")
    parser.add_argument("--patience", type=float, default=20, help="seconds without a new block that `continue` goes on trying")
    parser.add_argument("--configuration", help="an smb.conf, for clients that are Samba's")
    parser.add_argument("--no-wait", action="store_true", help="begins at once, not when a line comes in")
    parser.add_argument("--look", choices=looking.WHAT, help="writes nothing, but looks again and again, and tells of what is new")
    parser.add_argument("--until", default="", help="ends when a look shows this")
    return parser.parse_args()


def main(kind):
    options = parse()
    if options.look:
        looking.look(kind(options, b""), say)
        return
    with open(options.data, "rb") as file:
        data = file.read(options.blocks * options.size)
    if options.policy == "rename":
        options.final, options.name = options.name, options.name + UNFINISHED
    client = kind(options, data)
    say(ready=True)
    if not options.no_wait:
        sys.stdin.readline()
    begin = 0  # the first block that the next login has to write
    touched = options.in_place  # the file must not be emptied (any more)
    deadline = time.monotonic() + options.patience

    def acked(number):
        nonlocal begin, touched, deadline
        touched = True
        deadline = time.monotonic() + options.patience
        if not options.flush_every:
            begin = number + 1
        say(acked=number)
        time.sleep(options.pace / 1000)

    def flushed(number):
        nonlocal begin
        begin = number + 1
        say(flushed=number)

    while True:
        try:
            client.write_from(begin, not touched, acked, flushed)
            say(end="success")
            return
        except Broken as error:
            say(error=str(error), call=client.call, broken=True)
            client.drop()
            if options.policy not in ("continue", "rename") or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        except Exception as error:  # pylint: disable=broad-except
            say(error=f"{type(error).__name__}: {error}", call=client.call, broken=False)
            break
    say(end="failure")
