# SPDX-License-Identifier: Apache-2.0
"""Under what a figure was measured: the machine, how busy it was, and the kernel settings of a lab's ends."""

import datetime
import os
import pathlib
import platform
import re
import subprocess


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.M)
    commit = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "describe", "--always", "--dirty"],
                            capture_output=True, text=True).stdout.strip()
    return {"cpu": model[1] if model else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(int(memory[1]) / (1 << 20), 1), "kernel": platform.release(),
            "commit": commit or None, "time": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "load_average": list(os.getloadavg())}


def of_lab(lab):
    """Congestion control and largest buffers of the lab's ends, in a few words."""
    node = lab.status()["nodes"]["client"]
    return (f"line {lab.line or 'unlimited'}; ends: {node['congestion_control']}, receive buffer up to "
            f"{node['tcp_rmem'][2]}, send buffer up to {node['tcp_wmem'][2]} bytes")
