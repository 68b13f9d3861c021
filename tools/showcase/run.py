# SPDX-License-Identifier: Apache-2.0
"""The demo once everything is built: makes two lanes, bare and with the pair, runs each step in both at the same time,
draws the race, and writes the page. The lab, the servers and the pair are those of the end-to-end tests."""

import argparse
import contextlib
import json
import math
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path[0:0] = [str(TOOLS.parent / "tests" / "e2e"), str(TOOLS / "showcase")]
sys.path.append(str(TOOLS / "sites"))  # after the tests' directory, whose lab.py is used here

import lanes
import steps
import table
import wording
from failure import Failure
from lab import BUILD
from line import bits_per_second, parse_line
from page import page
from screen import Screen

BOUND_SECONDS = 45.0  # of one step: where the bare line takes longer, it is cut
FREE_BYTES = 1_000_000_000  # for the archives, their copies and the dictionaries


class Line:
    """The line that was asked for, and the one with losses."""

    def __init__(self, words):
        self.words, self.settings = words, parse_line(words)
        self.rate = bits_per_second(self.settings["rate"])
        if not self.rate or not 64e3 <= self.rate <= 1e9:
            raise Failure("the rate must be from 64kbit to 1gbit, such as 20mbit")
        self.round_trip = 2 * float(self.settings["delay"].removesuffix("ms")) / 1000
        try:
            loss = self.settings["loss"]
            self.loss = float(loss.removesuffix("%")) / (100 if loss.endswith("%") else 1)
        except ValueError:
            raise Failure(f"'{loss}' is not a share of lost packets, such as 0.01 or 1%") from None
        if not 0 <= self.loss <= 0.5:
            raise Failure("the loss must be a share of packets from 0 to 0.5")

    def with_loss(self, loss):
        """The words for a step's line."""
        return ",".join([*self.words.split(",")[:2], f"{loss:g}"])

    def bare_rate(self, loss):
        """Bits per second that one TCP connection is expected to carry (Mathis et al. 1997), within what the line can."""
        return min(self.rate, 1.22 * 1448 * 8 / max(0.005, self.round_trip) / math.sqrt(loss)) if loss else self.rate


def run(arguments, line, chosen, screen):
    began = time.monotonic()
    result = {"began": time.strftime("%Y-%m-%d %H:%M"), "line": wording.line_text(line.rate, line.round_trip, line.loss),
              "line_settings": line.settings,
              "rate": line.rate, "version": version(), "bound_seconds": BOUND_SECONDS, "rows": []}
    screen.say("Longhaul demo", colour="title")
    screen.say(f"Two sites and a line of {result['line']}, twice: \"bare\" without and \"pair\" with a proxy at each site. "
               "Both lanes run at the same time. Bars show the progress, and at the end the time taken.")
    screen.say("Collecting files of this system, starting both lanes ...", colour="dim")
    with contextlib.ExitStack() as stack:
        try:
            plan = steps.plan(chosen, line, arguments.quick)
            needs = {"smb" if step.name == "smb" else "http" for step in plan}
            words = line.with_loss(line.loss)
            both = [lanes.Lane(way, words, stack, needs) for way in wording.WAYS]
            for number, step in enumerate(plan, 1):
                if line.with_loss(step.loss) != words:
                    words = line.with_loss(step.loss)
                    for lane in both:
                        lane.lab.link(words)
                screen.begin(number, len(plan), step)
                works = [step.make(lane) for lane in both]
                found = lanes.race(both, works, BOUND_SECONDS, screen.show)
                row = {"step": step.name, "short": step.short, "title": step.title, "why": step.why, "size": works[0].size,
                       "unit": works[0].unit, **dict(zip(wording.WAYS, found))}
                screen.end(row)
                result["rows"].append(row)
            result |= {"hosts": lanes.conditions_of(both[0]), "link": lanes.carrier_of(both[1]),
                       "flows": lanes.flows_of(both[1]), "emulator_late_p99_ms": max(
                           row[way]["emulator_late_p99_ms"] for row in result["rows"] for way in wording.WAYS)}
        finally:
            screen.abandon()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # what is being removed is removed whole
                signal.signal(number, signal.SIG_IGN)
    result["seconds"] = time.monotonic() - began
    return result


def version():
    """Of the sources, where git knows it."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["git", "-C", TOOLS.parent, "log", "-1", "--format=commit %h of %cs"], capture_output=True,
                              text=True)
        return done.stdout.strip() if done.returncode == 0 else ""
    return ""


def check(arguments, chosen):
    """What would end the demo later is said now."""
    for path in filter(None, (arguments.json, arguments.page)):
        if not path.absolute().parent.is_dir():
            raise Failure(f"{path.parent} is not a directory")
        if path.is_dir():
            raise Failure(f"{path} is a directory, not a file to write")
    if arguments.check:
        return  # nothing is installed or built yet
    for program in (BUILD / "proxy" / "longhaul", BUILD / "tools" / "wan" / "longhaul-wan"):
        if not program.exists():
            raise Failure(f"{program} does not exist: set LONGHAUL_BUILD to a build directory that has it, or leave it unset")
    if shutil.disk_usage(tempfile.gettempdir()).free < FREE_BYTES:
        raise Failure(f"{tempfile.gettempdir()} has less than {FREE_BYTES / 1e9:g} GB free; set TMPDIR to another directory")
    if "smb" in chosen:
        try:
            import smb_client  # noqa: F401  pylint: disable=unused-import
        except ImportError:
            raise Failure("the SMB steps need impacket: tests/e2e/python/setup installs it, or omit them: --steps "
                          + ",".join(name for name in chosen if name != "smb")) from None


def steps_of(text):
    chosen = text.split(",")
    for name in chosen:
        if name not in steps.NAMES:
            raise argparse.ArgumentTypeError(f"'{name}' is not a step: {', '.join(steps.NAMES)}")
    return chosen


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tools/demo")
    parser.add_argument("--link", default="20mbit,80", metavar="RATE,RTT[,LOSS]")
    parser.add_argument("--steps", type=steps_of, default=list(steps.NAMES), metavar="NAME,...")
    parser.add_argument("--page", type=pathlib.Path, default=pathlib.Path("longhaul-demo.html"), metavar="FILE")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments only; prints the steps
    return parser.parse_args()


def end(number, _):
    sys.exit(128 + number)


def main():
    arguments = parse_arguments()
    try:
        line = Line(arguments.link)
        check(arguments, arguments.steps)
        if arguments.check:
            print(*arguments.steps)
            return 0
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, end)
        screen = Screen()
        results = run(arguments, line, arguments.steps, screen)
    except Failure as failure:
        print(f"tools/demo: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ntools/demo: interrupted; the sites and everything in them were removed", file=sys.stderr)
        return 130
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        print(f"\ntools/demo: {error}", file=sys.stderr)
        return 1
    rows = results["rows"]
    right = all(map(wording.is_right, rows))
    failed = any(row[way]["failure"] for row in rows for way in wording.WAYS)
    screen.text(f"\n{table.table(results)}\n\n{table.conditions_text(results)}\n")
    try:
        arguments.page.write_text(page(results), encoding="utf-8")
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    except OSError as error:
        print(f"tools/demo: {error}", file=sys.stderr)
        return 1
    verdict = "SOME BYTES WERE WRONG" if not right else "SOME STEPS FAILED" if failed else "All bytes were correct"
    screen.say(f"{verdict}; {results['seconds']:.0f} s in total. Everything except the page was removed.",
               colour="good" if right and not failed else "bad")
    screen.say(f"The page with the plots: {arguments.page}")
    return 0 if right and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
