# SPDX-License-Identifier: Apache-2.0
"""The demo once everything is built: creates the lab, runs each workload without and then with the pair, and prints the
results. The lab, the servers and the pair are those of the end-to-end tests."""

import argparse
import contextlib
import json
import pathlib
import re
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path[0:0] = [str(TOOLS.parent / "tests" / "e2e"), str(TOOLS / "showcase")]
sys.path.append(str(TOOLS / "sites"))  # after the tests' directory, whose lab.py is used here

import table
from failure import Failure
from line import bits_per_second, parse_line, words_of

BOUND_SECONDS = 25.0  # of one transfer, so that ten transfers take less than five minutes


class Progress:
    """One line per transfer, on a terminal with a progress bar."""

    def __init__(self, words, workload):
        self.words, self.workload = words, workload
        self.ended = threading.Event()
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self):
        if sys.stdout.isatty():
            self.thread.start()
        return self

    def _show(self):
        while not self.ended.wait(0.25):
            share = min(1.0, self.workload.arrived / self.workload.size)
            bar = "#" * int(share * 24)
            print(f"\r  {self.words:36} [{bar:24}] {share:4.0%} {time.monotonic() - self.began:5.1f} s", end="",
                  flush=True)

    def __exit__(self, *_):
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()
            print("\r\033[K", end="")

    def say(self, outcome):
        print(f"  {self.words:36} {outcome}", flush=True)


def wait_for_quiet(lab, seconds=5.0):
    """Waits until buffers are empty, so that the rest of a cut transfer is not counted for the next one."""
    deadline = time.monotonic() + seconds
    before = None
    while time.monotonic() < deadline:
        now = [lab.stats()[direction]["ip_bytes_in"] for direction in ("a_to_b", "b_to_a")]
        if before and sum(now) - sum(before) < 10_000:
            return
        before = now
        time.sleep(0.5)


def measure(lab, workload, way, rate):
    with Progress(f"{workload.name}, {way}", workload) as progress:
        wait_for_quiet(lab)
        lab.stats(reset=True)
        moved = workload.move(BOUND_SECONDS)
        counted = lab.stats()
    to_server, to_client = (counted[direction]["ip_bytes_out"] for direction in ("a_to_b", "b_to_a"))
    seconds = moved.seconds or BOUND_SECONDS
    took = (f"FAILED: {moved.failure}" if moved.failure else f"{moved.seconds:.1f} s" if moved.seconds else
            f"cut after {BOUND_SECONDS:g} s")
    right = "bytes right" if moved.right else "BYTES WRONG"
    progress.say(", ".join(filter(None, (took, right if moved.sha256 and not moved.failure else "", moved.note))))
    return {"seconds": moved.seconds, "right": moved.right, "bytes_arrived": moved.bytes_arrived,
            "sha256": moved.sha256, "note": moved.note, "failure": moved.failure, "wan_to_server": to_server, "wan_to_client": to_client,
            "line_share": max(to_server, to_client) * 8 / rate / seconds,
            "emulator_late_p99_ms": max(counted[direction]["lateness_us"]["p99"] or 0
                                        for direction in ("a_to_b", "b_to_a")) / 1000}


def link_of(lab, pair):
    """What carried the flows between the proxies, in words."""
    if pair.branch.link()["carrier"] == "udp":
        return "the link over UDP, its rate measured"
    return f"the link over TCP with {kernel_congestion_control(lab)}"


def kernel_congestion_control(lab):
    """What the kernel says of the connection between the proxies."""
    shown = lab.run("branch", "ss", "-tinH", "dport", "=", ":7600", check=False).stdout
    found = re.search(r"^\s+(?:ts |sack |ecn |ecnseen )*(\w+)\b", shown, re.MULTILINE)
    return found[1] if found else "unknown congestion control"


def flows_of(pair):
    """How many flows used the link: those that bypassed it measure the bare line."""
    counts = {code: number for code, number in pair.branch.status()["flows"]["by_reason"].items() if number}
    over = counts.pop("optimised", 0) + counts.pop("source_fallback", 0)
    past = ", ".join(f"{number} bypassed it ({code})" for code, number in counts.items())
    return f"{over} over the link" + (f"; {past}" if past else ", none bypassed it")


def run(line_words):
    from lab import Lab  # after the build folder is known
    from pair import Pair

    line = parse_line(line_words)
    rate = bits_per_second(line["rate"])
    print(f"Two sites, connected by a line of {words_of(line)}. Ten transfers of at most {BOUND_SECONDS:g} s each.",
          flush=True)
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(Lab(line_words, prefix="demo"))
        import workloads
        works = workloads.make(lab, rate)
        print("bare: client and server use the line directly")
        bare = [measure(lab, work, "bare", rate) for work in works]
        print("pair: the same with longhaul at both sites, in transparent mode")
        pair = stack.enter_context(Pair(lab, both={"log": {"level": "info"}}))
        accelerated = [measure(lab, work, "pair", rate) for work in works]
        nodes = lab.status()["nodes"]
        return {"line": words_of(line), "line_settings": line, "loss": line["loss"] not in ("0", "0%"),
                "bound_seconds": BOUND_SECONDS,
                "rows": [{"what": f"{work.count} {work.name}" if is_transactions(work) else work.name, "size": work.size,
                          "transactions": is_transactions(work), "bare": before, "pair": after}
                         for work, before, after in zip(works, bare, accelerated)],
                "hosts": {"congestion_control": nodes["client"]["congestion_control"],
                          "rmem": nodes["server"]["tcp_rmem"][2], "wmem": nodes["server"]["tcp_wmem"][2]},
                "proxy_buffer": nodes["branch"]["tcp_rmem"][2],
                "link": link_of(lab, pair), "flows": flows_of(pair),
                "emulator_late_p99_ms": max(result["emulator_late_p99_ms"] for result in bare + accelerated)}


def is_transactions(work):
    return hasattr(work, "count")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tools/demo")
    parser.add_argument("--link", default="51.84mbit,100", metavar="RATE,RTT[,LOSS]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments only
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        rate = bits_per_second(parse_line(arguments.link)["rate"])
        if not rate or not 64e3 <= rate <= 1e9:
            raise Failure("the rate must be from 64kbit to 1gbit, such as 51.84mbit")
        if arguments.json and not arguments.json.absolute().parent.is_dir():
            raise Failure(f"{arguments.json.parent} is not a directory")
    except Failure as failure:
        print(f"tools/demo: {failure}", file=sys.stderr)
        return 2
    if arguments.check:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    began = time.monotonic()
    try:
        results = run(arguments.link)
    except KeyboardInterrupt:
        print("\ntools/demo: interrupted; the sites and everything in them were removed", file=sys.stderr)
        return 130
    except AssertionError as error:
        print(f"\ntools/demo: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    right = all(row[way]["right"] for row in results["rows"] for way in ("bare", "pair"))
    failed = any(row["pair"]["failure"] for row in results["rows"])  # a bare failure is the line's
    print(f"\n{table.table(results)}\n\n{table.conditions(results)}\n\n{table.conclusions(results)}\n")
    verdict = "SOME BYTES WERE WRONG" if not right else "SOME TRANSFERS FAILED" if failed else "All bytes were correct"
    print(f"{verdict}; {time.monotonic() - began:.0f} s in total. "
          "Everything was removed.")
    return 0 if right and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
