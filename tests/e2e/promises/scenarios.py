# SPDX-License-Identifier: Apache-2.0
"""Rounds of scenarios: several clients write at a time, one thing breaks, and each client's file is compared, block
by block, with the results that the client got. A round is drawn from its seed; the stage on which it runs outlives
it."""

import collections
import contextlib
import dataclasses
import itertools
import os
import pathlib
import random
import re
import signal

import smb
from disk import Disk
from faults import FAULTS, Fault
from guest import Guest
from lab import PATIENCE, SERVER, Lab, until
from pair import Pair
from writers import KINDS, UNFINISHED, KernelWriter, Scenario, Writer

LINE = "25mbit,60"
OLD = b"\xee"  # what is in a file that is written in place


@dataclasses.dataclass(frozen=True)
class Round:
    seed: int
    fault: Fault
    scenarios: tuple
    moment: float  # at this part of the blocks of one client the fault begins
    watched: int  # that client
    pause: float


def drawn(seed, faults, kinds, most=8, longest=70, keys=False):
    """The round that belongs to a seed. `faults` and `kinds` are names, of which it takes one and several; no client waits for an
    answer for more than `longest` seconds. `keys`: of the stage."""
    chance = random.Random(seed)
    fault = FAULTS[chance.choices(faults, [FAULTS[name].weight for name in faults])[0]]
    named = [KINDS[name] for name in kinds if KINDS[name].flushes or not fault.unsynced]
    scenarios = []
    if "kernel" in kinds and not fault.unsynced:
        scenarios.append(scenario(chance, KINDS["kernel"], fault, longest))
    while len(scenarios) < most and any(kind.weight for kind in named):
        kind = chance.choices(named, [kind.weight for kind in named])[0]
        if kind.is_heavy and any(told.kind == kind.name for told in scenarios):
            continue
        scenarios.append(scenario(chance, kind, fault, longest))
    return played(chance, seed, fault, scenarios, keys)


def played(chance, seed, fault, scenarios, keys):
    # So that it begins amid promises, where there are any.
    watched = [number for number, told in enumerate(scenarios)
               if KINDS[told.kind].may_be_promised(told.dialect, told.ask, has_keys=keys)]
    return Round(seed, fault, tuple(scenarios), chance.random(), chance.choice(watched or range(len(scenarios))),
                 fault.pause * chance.random())


def scenario(chance, kind, fault, longest, cell=None):
    """Of a cell of the table, or of any in which the kind has a part."""
    cell = cell or chance.choice([cell for cell in cells(kind, fault) for _ in range(1 + (cell.policy == "continue"))])
    seed = chance.getrandbits(32)
    flush_every = chance.choice((3, 8)) if fault.unsynced else chance.choice((0, 0, 0, 8))
    least = int(PATIENCE) if fault.name == "nothing" else 0  # where nothing breaks, no client may give up, on a busy machine either
    return Scenario(kind.name, cell.dialect, cell.ask, cell.policy, chance.choice((20, 40, 60)),
                    chance.choice((4096, 16384, 32768, 60000)) if kind.name != "pysmb" else chance.choice((4096, 16384)),
                    chance.choice((0, 5, 20, 40)),
                    max(least, min(longest, chance.choices((3, 8, 20, 70), (3, 4, 4, 1))[0])),
                    kind.in_place and cell.policy != "rename" and chance.random() < 0.3, flush_every if kind.flushes else 0, seed)


# -- the cells of the table

@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    """What the table tells apart beside the fault. `behaviour`: the policy of the program, unless its library or its kernel
    opens files again by itself."""

    behaviour: str
    dialect: str
    ask: str
    policy: str

    def place(self):
        return self.behaviour, self.dialect, self.ask


def cells(kind, fault):
    """In which a kind has a part. Not where the server loses what was not flushed: a client that cannot flush; one that only writes and
    closes; Linux, which opens the file again by itself, and whose next FLUSH succeeds although the server has forgotten what it
    answered before, without the pair as with it."""
    if fault.unsynced and (not kind.flushes or kind.is_kernel):
        return []
    return [Cell(kind.behaviour or policy, dialect, ask, policy)
            for dialect in kind.dialects for ask in kind.asks_in(dialect) for policy in kind.policies
            if policy not in ("close-only", "rename") or not fault.unsynced]


def places(fault, kinds):
    """The whole table of one fault, and who plays each of its places."""
    table = collections.defaultdict(list)
    for name in kinds:
        for cell in cells(KINDS[name], FAULTS[fault]):
            table[cell.place()].append((KINDS[name], cell))
    return table


def covering(seed, fault, kinds, most=8, longest=70, keys=False):
    """Rounds of one fault in which each place of the table is played once, by one of the clients that can. Those of a
    round differ as much as they can: the first round alone is a sample, of clients with promises where there are any."""
    chance = random.Random(f"{seed} {fault}")
    table = places(fault, kinds)
    left = sorted(table)
    chance.shuffle(left)

    def is_promised(found):
        kind, cell = found
        return kind.may_be_promised(cell.dialect, cell.ask, has_keys=keys)

    uses, rounds = collections.Counter(), []
    while left:
        scenarios, seen, heavy = [], set(), set()
        while len(scenarios) < most:
            free = [place for place in left if any(kind.name not in heavy for kind, _ in table[place])]
            if not free:
                break
            able = {place: [found for found in table[place] if found[0].name not in heavy] for place in free}
            place = max(free, key=lambda place, seen=seen, able=able: (not seen and any(map(is_promised, able[place])),
                                                                       len(set(place) - seen)))
            chance.shuffle(able[place])
            kind, cell = min(able[place], key=lambda found: (not rounds and not is_promised(found), uses[found[0].name]))
            uses[kind.name] += 1
            heavy |= {kind.name} if kind.is_heavy else set()
            seen |= set(place)
            left.remove(place)
            scenarios.append(scenario(chance, kind, FAULTS[fault], longest, cell))
        rounds.append(played(chance, seed, FAULTS[fault], scenarios, keys))
    return rounds


@dataclasses.dataclass
class Outcome:
    """The result of a scenario. Blocks are named by their numbers."""

    told: Scenario
    end: str
    acknowledged: int
    logins: int
    errors: list
    lost: list  # acknowledged, and the run ended in success, and they are not in the file
    unflushed: list  # the same of blocks that a FLUSH has covered, however the run ended
    wrong: list  # neither what was written nor what was there before
    promised: int = 0  # bytes acknowledged early on one of its connections before the fault began
    at_work: bool = False  # its program had not ended by then


class Stage:
    """A lab with a server, and with the pair unless `direct`. `power`: the server's share and the daemons' state are on
    disks of their own. `keys`: the far side can open signed sessions. It is left as it was found by each round."""

    def __init__(self, direct=False, power=False, guest=False, both=None, keys=False):
        self.direct, self.power, self.with_guest, self.both, self.keys = direct, power, guest, both, keys
        self.guest = self.pair = None
        self.numbers, self.rounds = itertools.count(1), itertools.count()
        self.host = SERVER

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.lab = stack.enter_context(Lab(LINE))
            # It has an address for each round, by which a client could reach it past the pair.
            single = {"server multi channel support": "no"}
            self.smbd = smb.Smbd(self.lab, single, small="64m", disk=Disk(self.lab.scratch, "share") if self.power else None)
            if not self.direct:
                both = dict(self.both or {}, **({"dictionary": {"disk": 0}} if self.power else {}))
                # The server has an address for each round.
                keys = [{"addresses": ["10.10.2.0/24"], "ntlm_hashes": str(self.smbd.ntlm_hashes())}] if self.keys else None
                self.pair = Pair(self.lab, both=both, datacenter={"smb_server": keys})
                for site in self.pair.sites if self.power else ():
                    site.disk = Disk(self.lab.scratch, site.name)
                stack.enter_context(self.pair)
            if self.with_guest:
                self.guest = Guest(self.lab).__enter__()
                stack.callback(lambda: self.guest.__exit__(None, None, None))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def site(self, name):
        return {"near": self.pair.branch, "far": self.pair.datacenter}[name]

    def fail_power(self, victim):
        """Everything that `victim` has not synced is lost, and it is down."""
        owner = self.smbd if victim == "server" else self.site(victim)
        pids = [owner.process.pid, *smb.descendants(owner.process.pid)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        owner.disk.fail()
        owner.crash() if victim == "server" else owner.kill()

    def mend(self):
        """Everything runs again, without remains that could affect the next round."""
        if not self.smbd.process.is_running():
            self.smbd.start()
        with contextlib.suppress(FileNotFoundError):
            self.smbd.path_of("filler", "small").unlink()
        for site in self.pair.sites if self.pair else ():
            if not site.process.is_running():
                if (code := site.process.popen.returncode) not in (0, -signal.SIGKILL):  # not the fault's work
                    raise AssertionError(f"{site.name} ended with {code}\n{site.process.log()[-20000:]}")
                site.start()
        if self.pair:
            self.pair.wait_link()

    def promised(self):
        """Bytes that the near half has acknowledged early, since it started."""
        if not self.pair or not self.pair.branch.process.is_running():
            return 0
        return sum(module["counters"].get("promised_bytes", 0) for module in self.pair.branch.status()["modules"])

    def reasons(self):
        """Why flows of the near half were not optimised, or were reset, since it started."""
        return self.pair.branch.reasons() if self.pair and self.pair.branch.process.is_running() else {}

    # -- a round

    def play(self, round_):
        """Gives the outcomes of a round, one for each of its scenarios."""
        self.mend()
        # The near half routes connections plainly for a while to an address that refused one.
        self.host = f"10.10.2.{20 + next(self.rounds) % 200}"
        self.lab.run("server", "ip", "address", "replace", f"{self.host}/24", "dev", "eth0")
        fault = round_.fault
        writers = [self._prepared(told, fault) for told in round_.scenarios]
        try:
            for writer in writers:
                writer.start()
            until(lambda: all(writer.is_ready() for writer in writers), what="the clients are ready")
            promised = Promised(self, writers)
            for writer in writers:
                writer.go()
            watched = writers[round_.watched]
            enough = max(1, int(round_.moment * watched.scenario.blocks))
            self._wait(lambda: promised.look() or watched.progress() >= enough or watched.has_ended(), PATIENCE)
            # A fault before the first promise to a client breaks none of its.
            able = [writer for writer in writers if self.may_promise(writer.scenario)]
            self._wait(lambda: promised.look() or all(promised.bytes[writer] or writer.has_ended() for writer in able), PATIENCE)
            at_work = {writer for writer in writers if not writer.has_ended()}
            fault.begin(self, round_.pause)
            longest = max(told.timeout for told in round_.scenarios)
            self._wait(lambda: all(writer.has_ended() for writer in writers), 30 + fault.patience + 2 * longest)
        finally:
            for writer in writers:
                if writer.popen or isinstance(writer, KernelWriter):
                    writer.stop()
        self.mend()
        if any(isinstance(writer, KernelWriter) and not writer.has_ended() for writer in writers):
            self.guest.__exit__(None, None, None)  # it does nothing else while a program hangs
            self.guest = Guest(self.lab).__enter__()
        return [dataclasses.replace(self._judged(writer, promised.bytes[writer]), at_work=writer in at_work) for writer in writers]

    def may_promise(self, told):
        """Whether the pair should acknowledge writes of this scenario early."""
        kind = KINDS[told.kind]
        cached = (self.both or {}).get("features", {}).get("smb.write_behind_cached")
        return bool(self.pair) and kind.may_be_promised(told.dialect, told.ask, bool(cached), self.keys)

    @staticmethod
    def _wait(condition, seconds):
        """Until then at most; what is missing shows in the outcome."""
        with contextlib.suppress(AssertionError):
            until(condition, seconds)

    def _prepared(self, told, fault):
        name = f"file-{os.getpid()}-{next(self.numbers)}"
        data = self.lab.scratch / f"{name}.data"
        data.write_bytes(random.Random(told.seed).randbytes(told.blocks * told.size))
        if told.in_place:
            self.smbd.path_of(name, fault.share).write_bytes(OLD * (told.blocks * told.size))
        kind = KernelWriter if KINDS[told.kind].is_kernel else Writer
        return kind(self, told, name, data, fault.share, fault.patience)

    def _judged(self, writer, promised):
        told = writer.scenario
        path = self.smbd.path_of(writer.name, writer.share)
        if writer.scenario.policy == "rename" and not path.exists():
            path = path.with_name(path.name + UNFINISHED)
        try:
            there = path.read_bytes()
            path.unlink()
        except FileNotFoundError:
            there = b""
        wanted = random.Random(told.seed).randbytes(told.blocks * told.size)
        (self.lab.scratch / f"{writer.name}.data").unlink()

        def has(number):
            at = number * told.size
            return there[at:at + told.size] == wanted[at:at + told.size]

        def may_be(number):
            before = OLD[0] if told.in_place else 0
            at = number * told.size
            return all(byte in (new, before) for byte, new in zip(there[at:at + told.size], wanted[at:at + told.size]))

        acknowledged, since_error, flushed = set(), set(), set()
        for line in writer.lines:
            if "acked" in line:
                acknowledged.add(line["acked"])
                since_error.add(line["acked"])
            elif "flushed" in line:
                flushed |= {number for number in since_error if number <= line["flushed"]}
            elif "error" in line:
                since_error.clear()
        missing = [number for number in range(told.blocks) if not has(number)]
        errors = [f"{line['call']}: {line['error']}"[:300] for line in writer.lines if "error" in line]
        if writer.end() == "hung":
            errors.append(f"stopped: {writer.complaint()}")
        return Outcome(told, writer.end(), len(acknowledged), len(writer.said("opened")), errors,
                       [number for number in missing if number in acknowledged and writer.end() == "success"],
                       [number for number in missing if number in flushed],
                       [number for number in missing if not may_be(number)], promised)


class Promised:
    """What was acknowledged early to each of the writers, by the ports of their connections."""

    def __init__(self, stage, writers):
        self.stage, self.bytes = stage, collections.Counter()
        self.writer_of = {writer.popen.pid: writer for writer in writers if writer.popen and stage.pair}

    def owner(self, pid):
        """The writer whose process it is, or a child of that."""
        if pid not in self.writer_of:
            try:
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            except OSError:  # it has ended
                parent = 0
            self.writer_of[pid] = self.owner(parent) if parent > 1 else None
        return self.writer_of[pid]

    def look(self):
        """Gives nothing, so that it can be a part of a condition that is awaited."""
        if not self.writer_of:
            return
        listed = self.stage.lab.run("client", "ss", "-tnpH", "state", "established", "dport = :445 or dport = :139")
        owners = {line.split()[2].rpartition(":")[2]: self.owner(int(pid)) for line in listed.splitlines()
                  for pid in re.findall(r"pid=(\d+)", line)}
        for flow in self.stage.pair.branch.flows("?limit=1000"):
            writer = owners.get(flow["client"].rpartition(":")[2])
            if writer and flow["module"]:
                self.bytes[writer] = max(self.bytes[writer], flow["module"]["counters"].get("promised_bytes", 0))


# -- the table

class Table:
    """Sums of outcomes for each fault, or for whatever else is asked."""

    columns = ("scenarios", "success", "told", "hung", "acknowledged", "promised", "lost", "lost after flush", "wrong")

    def __init__(self):
        self.rows = collections.defaultdict(collections.Counter)

    def add(self, key, outcome):
        row = self.rows[key]
        row["scenarios"] += 1
        row[{"success": "success", "failure": "told"}.get(outcome.end, "hung")] += 1
        row["acknowledged"] += outcome.acknowledged
        row["promised"] += outcome.promised
        row["lost"] += len(outcome.lost)
        row["lost after flush"] += len(outcome.unflushed)
        row["wrong"] += len(outcome.wrong)

    def lines(self):
        width = max(map(len, self.rows), default=4)
        yield " ".join((" " * width, *self.columns))
        for key in (*sorted(self.rows), None):
            row = self.rows[key] if key else sum(self.rows.values(), collections.Counter())
            yield " ".join(((key or "all").ljust(width), *(str(row[name]).rjust(len(name)) for name in self.columns)))
