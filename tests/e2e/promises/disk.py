# SPDX-License-Identifier: Apache-2.0
"""A disk whose power can fail: a file system in a file, mounted where a process keeps what must survive. What the process
has synced is in the file; what it has only written is in the kernel's memory, and a copy of the file lacks it."""

import itertools
import subprocess


class Disk:
    """`process = lab.start(node, *disk.mounted(folder, words))`. The mount is seen by that process alone, goes with it,
    and is taken up again by the next one."""

    def __init__(self, folder, name, mebibytes=64):
        self.folder, self.name = folder, name
        self.numbers = itertools.count(1)
        self.image = self._next_image()
        with open(self.image, "wb") as file:
            file.truncate(mebibytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True, capture_output=True)

    def _next_image(self):
        return self.folder / f"{self.name}-{next(self.numbers)}.ext4"

    def mounted(self, at, words):
        # Nothing is written back by itself before a minute has passed, or less where the host's settings say so.
        script = 'mkdir -p "$1" && mount -o loop,commit=600 "$0" "$1" && rm -rf "$1/lost+found" && shift && exec "$@"'
        return ["sh", "-c", script, self.image, at, *words]

    def fail(self):
        """Call it while the processes are stopped, and kill them then: the next one finds what was synced by now."""
        image, self.image = self.image, self._next_image()
        subprocess.run(["cp", "--sparse=always", image, self.image], check=True)
        image.unlink()  # the mount keeps it until its process is gone
