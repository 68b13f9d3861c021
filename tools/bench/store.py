# SPDX-License-Identifier: Apache-2.0
"""The results of a run: a folder with run.json (what and on what) and samples.jsonl, one line for each measurement,
written when it is made. A run that was cut off goes on from there."""

import contextlib
import errno
import fcntl
import json
import os
import pathlib

FORMAT = 1


class StoreFailure(Exception):
    """One sentence for the user."""


class Store:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.header_file = self.folder / "run.json"
        self.samples_file = self.folder / "samples.jsonl"
        self.header = None
        self.samples = {}  # by (key, repetition); what is measured again replaces what was there

    # -- opening

    @contextlib.contextmanager
    def writing(self, header):
        """Holds the folder: a new one is made, one of the same scenario is continued."""
        with saying_why(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / ".lock", "w", encoding="ascii")  # pylint: disable=consider-using-with
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreFailure(f"another run is writing to {self.folder}") from None
            if self.header_file.exists():
                self.read()
                for name in ("scenario", "quick"):
                    if self.header[name] != header[name]:
                        raise StoreFailure(f"{self.folder} contains another run (scenario {self.header['name']}"
                                           f"{', quick' if self.header['quick'] else ''}): choose another folder")
                self.header["sessions"] += header["sessions"]
            else:
                self.header = header | {"format": FORMAT}
            self._drop_torn_line()
            self.save_header()
            yield self

    def read(self):
        """Fails with a sentence where there is no run."""
        try:
            self.header = json.loads(self.header_file.read_text())
            if self.header["format"] != FORMAT:
                raise StoreFailure(f"{self.folder} was written by another version of this program")
            lines = self.samples_file.read_bytes().split(b"\n") if self.samples_file.exists() else []
        except OSError as error:
            raise StoreFailure(f"{self.folder} contains no run: {error.strerror}") from None
        except (ValueError, KeyError):
            raise StoreFailure(f"{self.header_file} is damaged") from None
        for line in lines[:-1]:  # what follows the last newline was cut off
            with contextlib.suppress(ValueError):
                sample = json.loads(line)
                self.samples[sample["key"], sample["repetition"]] = sample
        return self

    # -- writing

    def add(self, sample):
        with saying_why(self.folder), open(self.samples_file, "ab") as file:
            file.write(json.dumps(sample).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.samples[sample["key"], sample["repetition"]] = sample

    def save_header(self):
        with saying_why(self.folder):
            partial = self.header_file.with_suffix(".partial")
            partial.write_text(json.dumps(self.header, indent=1))
            partial.rename(self.header_file)

    def _drop_torn_line(self):
        if self.samples_file.exists():
            data = self.samples_file.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(self.samples_file, whole)

    def forget_failures(self):
        """So that they are measured again; the file keeps them until a later line replaces them."""
        self.samples = {name: sample for name, sample in self.samples.items() if "failure" not in sample}

    # -- asking

    def has(self, key, repetition):
        return (key, repetition) in self.samples

    def of(self, key):
        """The samples of a cell, by repetition."""
        return [sample for (name, _), sample in sorted(self.samples.items(), key=lambda item: item[0][1]) if name == key]


@contextlib.contextmanager
def saying_why(where):
    """Turns what the disk says into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFailure(f"the disk under {where} is full; the results so far are kept: free some space and run "
                               "the same command again") from None
        raise StoreFailure(f"{where}: {error.strerror}") from None
