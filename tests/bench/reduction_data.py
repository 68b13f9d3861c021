# SPDX-License-Identifier: Apache-2.0
"""The files that reduction is measured with, as reduction/fetch_data has made them."""

import functools
import hashlib
import json
import os
import pathlib
import subprocess

FETCH = pathlib.Path(__file__).parent / "reduction" / "fetch_data"


def folder():
    """As fetch_data says it."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("LONGHAUL_BENCH_DATA") or pathlib.Path(cache) / "longhaul-bench")


def manifest():
    path = folder() / "manifest.json"
    return json.loads(path.read_text()) if path.exists() else {"files": {}, "notes": {}}


def fetch(*kinds):
    """What is there already is not fetched again, whatever Debian offers by now."""
    made = {"headers": "headers-2.tar", "modules": "modules-2.tar", "source": "source-2.tar", "doc": "doc-edited.tar",
            "edited": "headers-1.zip", "random": "random.bin"}
    files = manifest()["files"]
    if missing := [kind for kind in kinds if made[kind] not in files or not (folder() / made[kind]).exists()]:
        subprocess.run([FETCH, *missing], check=True)


class File:
    """One of them: its bytes in memory, so that no disk is measured."""

    def __init__(self, name, data=None):
        self.name = name
        self.bytes = (folder() / name).read_bytes() if data is None else data
        self.size = len(self.bytes)

    @functools.cached_property
    def sha256(self):
        return hashlib.sha256(self.bytes).hexdigest()

    def part(self, start, size):
        return File(f"{self.name} from {start}", self.bytes[start:start + size])


def origin(name):
    facts = manifest()["files"][name]
    return f"{name}: {facts['from']}, {facts['bytes']:,} bytes"


def pairs():
    """Of what kinds there are two versions, and of which why not."""
    known = manifest()
    have = [kind for kind in ("headers", "modules", "source") if f"{kind}-2.tar" in known["files"]]
    return have, known["notes"]
