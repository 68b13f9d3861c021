# SPDX-License-Identifier: Apache-2.0
"""The command line of longhaul-bench. What it runs is in runner.py, what it writes in report.py."""

import argparse
import contextlib
import datetime
import fcntl
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys

import compare
import plots
import report
import scenario
from progress import Progress, duration, expected_seconds
from scenario import IN_GUESTS, BadScenario
from store import Store, StoreFailure

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ("longhaul", "longhaul-wan", "longhaul-txn", "longhaul-ttcp")
LOCK = pathlib.Path("/run/lock/longhaul-bench")
# What each kind of cell needs: program, and the Debian package that tools/setup installs it with.
ALWAYS = {"tcpdump": "tcpdump", "ping": "iputils-ping", "ip": "iproute2", "ethtool": "ethtool", "nft": "nftables"}
BY_NEED = {"http": {"nginx": "nginx-light", "curl": "curl"},
           "smb": {"smbd": "samba", "smbpasswd": "samba-common-bin", "smbclient": "smbclient"},
           **dict.fromkeys(("kernel", *IN_GUESTS), {"qemu-system-x86_64": "qemu-system-x86"}), "stream": {"iperf3": "iperf3"}}


class Failure(Exception):
    """One sentence for the user."""

    code = 2


class Interrupted(Failure):
    code = 130  # as a shell says of SIGINT


def main(words=None):
    arguments = parse_arguments(words)
    os.environ["PATH"] = "/usr/local/sbin:/usr/sbin:/sbin:" + os.environ.get("PATH", "/usr/bin:/bin")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup means it
            signal.signal(number, _interrupted)
    try:
        return arguments.do(arguments)
    except (Failure, BadScenario, StoreFailure) as failure:
        print(f"longhaul-bench: {failure}", file=sys.stderr)
        return getattr(failure, "code", 2)
    except KeyboardInterrupt:
        print("longhaul-bench: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _interrupted(*_):
    raise KeyboardInterrupt


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="longhaul-bench", description="Compares the pair of proxies with the bare line "
                                     "and writes a report: HTML with plots, Markdown, CSV, JSON.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="measure a scenario (as root) and write its report; continues an interrupted run")
    run.add_argument("scenario", help=f"one of {', '.join(scenario.names())}, or your own file")
    run.add_argument("--quick", action="store_true", help="measure everything once with short files, in a few minutes")
    run.add_argument("--into", type=pathlib.Path, metavar="FOLDER",
                     help="directory of the results (default: bench-SCENARIO[-quick]); an existing one is continued")
    run.add_argument("--cut", type=float, metavar="SECONDS", help="end a transfer after this time (default: 600; quick: 60)")
    run.add_argument("--keep-captures", action="store_true",
                     help="keep all packet captures in FOLDER/captures (can be gigabytes)")
    run.add_argument("--retry-failed", action="store_true", help="when continuing a run, repeat failed measurements")
    run.add_argument("--alongside", action="store_true",
                     help="run even if another longhaul-bench is running; each disturbs the other's results")
    run.add_argument("--build", type=pathlib.Path, metavar="FOLDER",
                     help="use the programs of this build directory; install and build nothing (also LONGHAUL_BUILD; "
                          "default: build/release, which is brought up to date first)")
    run.set_defaults(do=do_run)

    again = commands.add_parser("report", help="write the report of a run again")
    again.add_argument("folder", type=pathlib.Path)
    again.set_defaults(do=do_report)

    both = commands.add_parser("compare", help="compare two runs and show differences beyond the noise")
    both.add_argument("before", type=pathlib.Path)
    both.add_argument("after", type=pathlib.Path)
    both.add_argument("--fail-if-slower", action="store_true", help="exit code 1 if anything is slower beyond the noise")
    both.set_defaults(do=do_compare)

    show = commands.add_parser("show", help="list the cells of a scenario and estimate their duration")
    show.add_argument("scenario")
    show.add_argument("--quick", action="store_true")
    show.set_defaults(do=do_show)
    return parser.parse_args(words)


# -- run


def do_run(arguments):
    wanted = scenario.load(arguments.scenario, arguments.quick)
    build = arguments.build or os.environ.get("LONGHAUL_BUILD")
    if build:  # absolute: what uses it runs in other folders
        os.environ["LONGHAUL_BUILD"] = str(pathlib.Path(build).resolve())
    cut = arguments.cut or (60.0 if arguments.quick else 600.0)
    if os.geteuid() != 0:
        raise Failure("must be root: it creates network namespaces (nothing outside them is changed)")
    if not build:
        install_and_build(any(cell.features == "sctp" for cell in wanted.cells()))
    check_tools(wanted)
    folder = arguments.into or pathlib.Path(f"bench-{wanted.name}{'-quick' if arguments.quick else ''}")

    import conditions  # from here on everything is there
    import pair
    from runner import Runner
    check_room(wanted, folder)
    header = {"name": wanted.name, "scenario": wanted.text, "quick": wanted.quick, "sessions": [{
        "command": shlex.join(["longhaul-bench", *sys.argv[1:]]), "machine": conditions.machine(),
        "versions": versions(pair.PROGRAM)}]}
    progress = Progress(cut)
    with alone(arguments.alongside), Store(folder).writing(header) as store:
        if arguments.retry_failed:
            store.forget_failures()
        captures = None
        if arguments.keep_captures:
            captures = folder / "captures"
            captures.mkdir(exist_ok=True)
        began = datetime.datetime.now()
        try:
            Runner(wanted, store, progress, cut, captures).run()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is written now is short
            report.write(store)
            raise Interrupted(f"interrupted after {progress.done} of {progress.total} measurements, which are kept and reported "
                              f"in {folder}; run the same command again to continue") from None
        paths = report.write(store)
        progress.say(f"done in {duration((datetime.datetime.now() - began).total_seconds())}"
                     + ("" if plots.are_possible() else f"; {plots.HINT}"))
        for path in paths:
            progress.say(f"  {path}")
        failed = [sample for sample in store.samples.values() if "failure" in sample]
        for text in store.header.get("troubles", []):
            progress.say(f"problem: {text}")
        if failed:
            progress.say(f"{len(failed)} measurements FAILED; the report says which and why")
        return 1 if failed or store.header.get("troubles") else 0


def install_and_build(with_sctp):
    """Builds the current sources, so that a clean clone needs one command. Quick if everything exists."""
    def do(what, *command):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as process:
            try:
                said, _ = process.communicate()
            except BaseException:  # what it has started ends, too
                os.killpg(process.pid, signal.SIGTERM)
                raise
        if process.returncode != 0:
            print(said[-5000:], file=sys.stderr)
            raise Failure(f"{what} failed (see above)")

    built = (ROOT / "build" / "release" / "build.ninja").exists()
    if not built:
        print(f"longhaul-bench: installing missing packages and building {', '.join(TARGETS)} (takes some minutes the first time)",
              flush=True)
    do("tools/setup", ROOT / "tools" / "setup")
    if not built or with_sctp:  # its library may have come after the folder was made
        do("cmake --preset release", "cmake", "--preset", "release")
    targets = TARGETS + (("longhaul-sctp",) if with_sctp else ())
    do("building", "cmake", "--build", "--preset", "release", "--target", *targets, f"-j{os.cpu_count()}")


def check_tools(wanted):
    """Missing programs are reported before anything runs."""
    needs = {word for cell in wanted.cells() for word in (cell.application.protocol, cell.application.client,
                                                     cell.features)}
    programs = dict(ALWAYS)
    for need in needs:
        programs |= BY_NEED.get(need, {})
    missing = [f"{program} (package {package})" for program, package in programs.items() if not shutil.which(program)]
    if missing:
        raise Failure(f"{', '.join(missing)} is missing: run tools/setup")
    from lab import BUILD, REPOSITORY
    for program in ("proxy/longhaul", "tools/wan/longhaul-wan", *(["tools/txn/longhaul-txn"] if "txn" in needs else []),
                    *(["tools/ttcp/longhaul-ttcp"] if "packets" in needs else [])):
        if not (BUILD / program).exists():
            raise Failure(f"{BUILD / program} does not exist: run cmake --preset release && cmake --build --preset release --target "
                          f"{' '.join(TARGETS)}")
    if "sctp" in needs and not (BUILD / "tools/sctp/longhaul-sctp").exists():
        raise Failure(f"{BUILD / 'tools/sctp/longhaul-sctp'} does not exist: it is built if libusrsctp-dev is installed "
                      "(tools/setup; cmake --preset release && cmake --build --preset release --target longhaul-sctp)")
    if "impacket" in needs:
        try:
            import smb_client  # pylint: disable=unused-import
        except ImportError as error:
            raise Failure(str(error)) from None
    if needs & {"kernel", *IN_GUESTS} and not (REPOSITORY / "build" / "guest" / "made-by").exists():
        raise Failure("the emulated Linux guest is missing: run tools/setup")
    known = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    for features, control in (("tuned", "bbr"),):
        if any(cell.features == features for cell in wanted.cells()) and control not in known:
            raise Failure(f"'{features}' needs the TCP congestion control {control}, but this kernel has only {', '.join(known)}: modprobe "
                          f"tcp_{control}, or remove '{features}' from the scenario")


def check_room(wanted, folder):
    """For the files and their captures; found out before hours have gone by."""
    import tempfile
    needed = 6 * max(cell.size for cell in wanted.cells()) + 50_000_000  # more than runner.check_room asks for
    for where in (pathlib.Path(tempfile.gettempdir()), next(path for path in (folder, *folder.resolve().parents)
                                                            if path.exists())):
        free = shutil.disk_usage(where).free
        if free < needed:
            raise Failure(f"the disk under {where} has {free / 1e6:.0f} MB free, but {needed / 1e6:.0f} MB are needed for "
                          "files and captures: free some space, or set TMPDIR to another directory")


def versions(program):
    found = {}
    for name, words in (("longhaul", [program, "--version"]), ("tcpdump", ["tcpdump", "--version"]),
                        ("smbd", ["smbd", "--version"]), ("nginx", ["nginx", "-v"]), ("curl", ["curl", "--version"]),
                        ("iperf3", ["iperf3", "--version"]), ("usrsctp", ["pkg-config", "--modversion", "usrsctp"]),
                        ("python", [sys.executable, "--version"])):
        if name == "longhaul" or shutil.which(words[0]):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            said = re.search(r"\d+\.\d[\w.+~-]*", done.stdout + done.stderr)
            if said or name != "usrsctp":  # which need not be there
                found[name] = said[0] if said else "?"
    found["glibc"] = platform.libc_ver()[1]
    return found


@contextlib.contextmanager
def alone(alongside):
    """Two benches on one machine measure each other."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with open(LOCK, "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        except BlockingIOError:
            file.seek(0)
            if not alongside:
                raise Failure(f"another longhaul-bench is running (process {file.read().strip()}), and the two would disturb "
                              "each other; --alongside runs it anyway") from None
        yield


# -- the others


def do_report(arguments):
    for path in report.write(Store(arguments.folder).read()):
        print(path)
    if not plots.are_possible():
        print(plots.HINT)
    return 0


def do_compare(arguments):
    before, after = Store(arguments.before).read(), Store(arguments.after).read()
    table, slower, faster, alone_ = compare.compare(before, after)
    if not table.rows:
        raise Failure(f"{arguments.before} and {arguments.after} have no measured cells in common")
    print("\n".join(report.markdown_table(table)))
    for warning in compare.warnings(before, after):
        print(f"Note: {warning}.")
    print(f"{len(table.rows)} cells in both: {len(slower)} slower, {len(faster)} faster beyond the noise"
          + (f"; {len(alone_)} in only one of the runs" if alone_ else "") + ".")
    return 1 if slower and arguments.fail_if_slower else 0


def do_show(arguments):
    wanted = scenario.load(arguments.scenario, arguments.quick)
    progress = Progress(60.0 if arguments.quick else 600.0)
    cells = wanted.cells()
    progress.left = [cell for cell in cells for _ in range(
        1 if expected_seconds(cell, progress.cut_seconds) > 120 else wanted.expected_repetitions)]
    for cell in cells:
        print(cell.key)
    rule = wanted.confidence
    repetitions = f"{rule.least} to {rule.most}" if rule else wanted.repetitions
    print(f"{wanted.title}: {len(cells)} cells, {repetitions} times each, about {duration(progress.seconds_left())}")
    for row in wanted.pending:
        print(f"pending: {row['rows']}: {row['why']}")
    return 0
