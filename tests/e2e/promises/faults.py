# SPDX-License-Identifier: Apache-2.0
"""The faults of a scenario, and their end. A fault begins at a moment that the scenario draws; it is repaired after
a while or, if it is permanent, when the clients have ended."""

import contextlib
import dataclasses
import os
import re
import signal
import time

from smb import descendants


@contextlib.contextmanager
def silence(lab, node, interface=None):
    """Packets of a node are dropped: those of one interface, or all, as of a host without power."""
    sides = {"input": ("iifname",), "output": ("oifname",), "forward": ("iifname", "oifname")}
    rules = {hook: "policy drop;" if interface is None else
             "policy accept; " + " ".join(f'{side} "{interface}" drop;' for side in sides[hook]) for hook in sides}
    chains = "\n".join(f"chain {hook} {{ type filter hook {hook} priority -300; {rule} }}" for hook, rule in rules.items())
    lab.run(node, "nft", "-f", "-", text=f"table inet silence {{\n{chains}\n}}")
    try:
        yield
    finally:
        lab.run(node, "nft", "delete", "table", "inet", "silence")


@dataclasses.dataclass(frozen=True)
class Fault:
    """`needs_pair`: it breaks one of the daemons. `power`: it takes place on a stage whose disks can fail. `patience`:
    seconds that a client goes on trying which logs in again."""

    name: str
    begin: object  # begin(stage, pause), returns when all is mended that is mended by itself
    needs_pair: bool = False
    power: bool = False
    unsynced: bool = False  # the server loses what was not flushed: what else was acknowledged is nobody's promise
    share: str = "share"
    pause: float = 1.5  # seconds, at most, before what was broken is there again
    patience: float = 15
    weight: int = 4


def kill_smbd(stage, pause):
    stage.smbd.crash()
    time.sleep(pause)
    stage.smbd.start()


def restart_smbd(stage, pause):
    stage.smbd.stop()
    time.sleep(pause)
    stage.smbd.start()


def lose_smbd(stage, _):
    stage.smbd.crash()


def kill_daemon(site):
    def begin(stage, pause):
        stage.site(site).kill()
        time.sleep(pause)
        stage.site(site).start()
    return begin


def restart_daemon(site):
    def begin(stage, pause):
        stage.site(site).stop()
        time.sleep(pause)
        stage.site(site).start()
    return begin


def lose_daemon(site):
    return lambda stage, _: stage.site(site).kill()


def fail_power(*victims):
    """Of one host, or of one shortly after the other."""

    def begin(stage, pause):
        for victim in victims:
            node = {"near": "branch", "far": "datacenter"}.get(victim, victim)
            with silence(stage.lab, node):
                stage.fail_power(victim)
                time.sleep(pause / len(victims))
            (stage.smbd if victim == "server" else stage.site(victim)).start()
    return begin


def cut_line(seconds):
    def begin(stage, _):
        with silence(stage.lab, "branch", "wan0"):
            time.sleep(seconds)
    return begin


def fill_disk(is_freed):
    def begin(stage, pause):
        filler = stage.smbd.path_of("filler", "small")
        with open(filler, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(65536))
        if is_freed:
            time.sleep(pause)
            filler.unlink()
    return begin


def end_sessions(stage, _):
    """As an administrator ends them: the processes that serve the clients are asked to go."""
    listed = stage.lab.run("server", "ss", "-tnpH", "state", "established", "sport", "=", ":445")
    serving = {int(pid) for pid in re.findall(r"pid=(\d+)", listed)}
    for pid in serving & set(descendants(stage.smbd.process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def close_share(stage, _):
    """The connections stay; the share disappears for its users."""
    stage.lab.run("server", "smbcontrol", "-s", stage.smbd.configuration, "smbd", "close-share", "share", check=False)


FAULTS = {fault.name: fault for fault in (
    Fault("nothing", lambda stage, pause: None, weight=1),
    Fault("smbd killed", kill_smbd),
    Fault("smbd restarted", restart_smbd),
    Fault("smbd gone", lose_smbd, patience=2, weight=1),
    *(Fault(f"{site} {what}", how(site), needs_pair=True, weight=weight) for site in ("near", "far") for what, how, weight in (
        ("killed", kill_daemon, 6), ("restarted", restart_daemon, 4))),
    # smbd gives a dead client's oplock up after 35 s.
    *(Fault(f"{site} gone", lose_daemon(site), needs_pair=True, patience=45) for site in ("near", "far")),
    Fault("server's power", fail_power("server"), power=True, unsynced=True),
    *(Fault(f"{name}'s power", fail_power(*victims), needs_pair=True, power=True) for name, victims in (
        ("near", ("near",)), ("far", ("far",)), ("far's, then near", ("far", "near")), ("near's, then far", ("near", "far")))),
    *(Fault(f"line cut {seconds} s", cut_line(seconds), patience=seconds + 20, weight=weight)
      for seconds, weight in ((4, 4), (15, 3), (90, 1))),
    Fault("disk full", fill_disk(False), share="small", patience=4, weight=2),
    Fault("disk full, then freed", fill_disk(True), share="small", weight=2),
    Fault("session ended", end_sessions),
    Fault("share closed", close_share),
)}
