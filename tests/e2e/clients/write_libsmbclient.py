#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes with Samba's libsmbclient, as file managers and backup programs do: every dialect, unsigned; it asks for no
oplock. The library is called as it is (ctypes), so that no package for developers is needed."""

import ctypes
import errno
import os
import tempfile

import looking
import writing

BROKEN = {errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.ENOTCONN,
          errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EBADF, errno.ENETRESET}
AUTHENTICATE = ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 2, *[ctypes.c_void_p, ctypes.c_int] * 3)
NAME_IN_ENTRY = 28  # of struct smbc_dirent: type, length, comment's length, comment, name's length
PROTOCOLS = {"NT1": "NT1", "2.1": "SMB2_10", "3.0": "SMB3_00", "3.1.1": "SMB3_11"}


class Libsmbclient(writing.Client):
    can_flush = False
    descriptor = -1

    def __init__(self, options, data):
        super().__init__(options, data)
        home = tempfile.TemporaryDirectory()
        self.home = home  # goes with the program
        os.environ["HOME"] = home.name  # ~/.smb/smb.conf wins over the host's
        os.mkdir(f"{home.name}/.smb")
        with open(options.configuration, encoding="utf-8") as given, \
                open(f"{home.name}/.smb/smb.conf", "w", encoding="utf-8") as own:
            protocol = PROTOCOLS[options.dialect]
            lines = [line for line in given if "protocol" not in line]
            own.write("".join(lines) + f"  client min protocol = {protocol}\n  client max protocol = {protocol}\n")
        self.library = ctypes.CDLL("libsmbclient.so.0", use_errno=True)
        self.library.smbc_new_context.restype = ctypes.c_void_p
        self.library.smbc_init_context.restype = ctypes.c_void_p
        self.library.smbc_set_context.restype = ctypes.c_void_p
        self.library.smbc_lseek.restype = ctypes.c_int64
        self.library.smbc_lseek.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int)
        self.library.smbc_write.restype = ctypes.c_ssize_t
        self.library.smbc_write.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
        self.library.smbc_read.restype = ctypes.c_ssize_t
        self.library.smbc_read.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
        self.library.smbc_readdir.restype = ctypes.c_void_p
        self.authenticate = AUTHENTICATE(self.tell_password)
        self.context = self.new_context()

    def tell_password(self, _server, _share, group, group_room, user, user_room, password, password_room):
        for place, room, text in ((group, group_room, "LAB"), (user, user_room, self.options.user),
                                  (password, password_room, self.options.password)):
            value = text.encode()[:room - 1] + b"\0"
            ctypes.memmove(place, value, len(value))

    def new_context(self):
        """A context keeps its connections: a new login is a new one."""
        library = self.library
        context = ctypes.c_void_p(library.smbc_new_context())
        library.smbc_setFunctionAuthData(context, self.authenticate)
        library.smbc_setTimeout(context, int(self.options.timeout * 1000))
        library.smbc_setOptionUseKerberos(context, 0)
        if not library.smbc_init_context(context):
            raise OSError(ctypes.get_errno(), "smbc_init_context")
        library.smbc_set_context(context)
        return context

    def ask(self, what, returned, opening=False):
        if returned >= 0:
            return returned
        number = ctypes.get_errno()
        text = f"{what}: {os.strerror(number)}"
        # EBUSY, ETXTBSY: a sharing violation, perhaps with the connection before.
        if number in BROKEN or (opening and number in (errno.EBUSY, errno.ETXTBSY)):
            raise writing.Broken(text)
        raise OSError(number, text)

    def login(self):
        """With the first call."""

    def open(self, replace):
        options = self.options
        path = f"smb://{options.host}/{options.share}/{options.name}".encode()
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else 0)
        try:
            self.descriptor = self.ask("open", self.library.smbc_open(path, flags, 0o644), opening=True)
        except OSError as error:
            # What connects and logs in says so with these.
            if error.errno in (errno.EINVAL, errno.ENOENT, errno.EPERM, errno.ENODEV, errno.EIO) and self.is_away():
                raise writing.Broken(str(error)) from error
            raise

    def is_away(self):
        """Whether the server does not answer a stat of the share either."""
        path = f"smb://{self.options.host}/{self.options.share}".encode()
        return self.library.smbc_stat(path, ctypes.create_string_buffer(1024)) < 0

    def write(self, offset, block):
        self.ask("seek", self.library.smbc_lseek(self.descriptor, offset, os.SEEK_SET))
        written = self.ask("write", self.library.smbc_write(self.descriptor, block, len(block)))
        if written != len(block):
            raise OSError(f"wrote {written} of {len(block)} bytes")

    def close(self):
        descriptor, self.descriptor = self.descriptor, -1
        self.ask("close", self.library.smbc_close(descriptor))

    def url(self, path=""):
        return f"smb://{self.options.host}/{self.options.share}/{path}".encode()

    def looker(self, what):
        name = self.options.name
        if what == "held":
            self.descriptor = self.ask("open", self.library.smbc_open(self.url(name), os.O_RDONLY, 0))
            return looking.walk(self.read)
        return {"opened": lambda: self.read_once(self.url(name)), "size": lambda: self.size(self.url(name)),
                "names": lambda: self.names(self.url(name.rpartition("/")[0]))}[what]

    def read(self, offset, size):
        room = ctypes.create_string_buffer(size)
        self.ask("seek", self.library.smbc_lseek(self.descriptor, offset, os.SEEK_SET))
        length = self.ask("read", self.library.smbc_read(self.descriptor, room, size))
        return room.raw[:length]

    def read_once(self, url):
        self.descriptor = self.ask("open", self.library.smbc_open(url, os.O_RDONLY, 0))
        try:
            return self.read(0, looking.BYTES)
        finally:
            self.close()

    def size(self, url):
        room = ctypes.create_string_buffer(1024)  # struct stat: st_size is at 48 where words have 64 bits
        self.ask("stat", self.library.smbc_stat(url, room))
        return int.from_bytes(room.raw[48:56], "little")

    def names(self, url):
        folder = self.ask("open folder", self.library.smbc_opendir(url))
        names = []
        while entry := self.library.smbc_readdir(folder):
            names.append(ctypes.string_at(entry + NAME_IN_ENTRY).decode())
        self.ask("close folder", self.library.smbc_closedir(folder))
        return names

    def drop(self):
        # Not freed: that would close the file first, over the broken connection.
        self.context = self.new_context()


if __name__ == "__main__":
    writing.main(Libsmbclient)
    os._exit(0)  # what was dropped is not closed
