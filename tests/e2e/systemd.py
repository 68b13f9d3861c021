# SPDX-License-Identifier: Apache-2.0
"""A Debian in a directory with systemd as its first process, in namespaces of its own: processes, mounts, control groups,
and network unless it is to be a node of a lab. Nothing of it is seen outside, but a control group while it runs."""

import itertools
import os
import pathlib
import shutil
import subprocess

from lab import until

# Becomes process 1 of the directory that it is given.
BOOT = r"""set -e
root=$1
mount --make-rprivate /
mount --rbind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for place in run tmp dev; do mount -t tmpfs tmpfs "$root/$place"; done
for name in null zero full random urandom tty; do
  touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
cd "$root"
pivot_root . mnt
exec chroot . /bin/sh -c '
  umount -l /mnt
  mount --make-rshared /    # as it is on a host: units hand their mounts on
  hostname longhaul-test
  ip link set lo up
  exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null --show-status=no'
"""


class System:
    """`root` is a directory with a system that has systemd and iproute2; `network` the file of a network namespace."""

    numbers = itertools.count(1)

    def __init__(self, root, log, network=None):
        self.root = root
        self.log = log
        self.network = network
        self.process = None
        unified = pathlib.Path("/sys/fs/cgroup/unified")
        self.group = (unified if unified.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"longhaul-{os.getpid()}-{next(System.numbers)}"

    def __enter__(self):
        self.group.mkdir()
        own_group = f'echo $$ >"{self.group}/cgroup.procs" && exec "$@"'
        namespaces = ("unshare", "--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc", "--cgroup")
        namespaces = ("nsenter", f"--net={self.network}", *namespaces) if self.network else (*namespaces, "--net")
        self.process = subprocess.Popen(
            ["sh", "-c", own_group, "sh", *namespaces, "sh", "-c", BOOT, "boot", str(self.root)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            until(self._has_started, what="systemd has started")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()  # and with it, its child: process 1, and so all others
        self.process.wait()

        def is_empty():
            try:
                for folder in sorted(self.group.rglob("*/"), reverse=True):
                    if folder.is_dir():
                        folder.rmdir()
                self.group.rmdir()
                return True
            except OSError:
                return False

        until(is_empty, what="the control group is empty")

    def _has_started(self):
        if self.process.poll() is not None:
            raise AssertionError("the system could not be started")
        said = self._children() and self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return said in ("running", "degraded")

    def _children(self):
        return pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()

    def first_process(self):
        """The number that process 1 of the system has here."""
        return self._children()[0]

    def run(self, *words, check=True, seconds=120):
        done = subprocess.run(["nsenter", "-t", self.first_process(), "--all", "--", *map(str, words)], text=True,
                              capture_output=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def show(self, unit, name):
        """A property of a unit."""
        return self.run("systemctl", "show", unit, "--property", name, "--value").stdout.strip()

    def journal(self, *units):
        return self.run("journalctl", "--no-pager", *(word for unit in units for word in ("--unit", unit))).stdout

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def copy(self, file, path):
        shutil.copy(file, self.root / path)
