# SPDX-License-Identifier: Apache-2.0
"""Scenario files: what is to be measured, as a person writes it in TOML, and as the list of cells that it means. A file
that cannot be meant is refused with the place of the mistake."""

import dataclasses
import itertools
import pathlib
import re
import tomllib

import packet_tests
import transactions

HERE = pathlib.Path(__file__).resolve().parent / "scenarios"
NAMED_RATES = {"T1": "1.544mbit", "OC-1": "51.84mbit"}
# bare: no proxy at all, the end hosts as they come. tuned: the same with BBR and buffers for any line. The others are
# the presets of the daemon. What a stream is carried by has more: several TCP connections at once, SCTP, SCTP and TCP of
# Linux between two emulated machines, and the pair's two carriers alone, without reduction and modules.
IN_GUESTS = ("guest-tcp", "guest-sctp")
FEATURES = ("bare", "tuned", "parallel", "sctp", *IN_GUESTS, "B", "T", "A", "F", "A+F", "carrier-udp", "carrier-tcp")
TRANSPORTS = ("bare", "tuned", "parallel", "sctp", *IN_GUESTS, "carrier-udp", "carrier-tcp")
PARALLEL = 8  # connections
PACKETS_OVER = ("bare", "tuned", "carrier-udp", "carrier-tcp")
WITHOUT_PAIR = ("bare", "tuned", "parallel", "sctp", *IN_GUESTS)
PASSES = ("cold", "warm", "edited", "restart")
DATA = ("random", "text")
SMB_WORK = ("read", "write", "files", "document")
SMB_CLIENTS = ("impacket", "smbclient", "kernel")
SMB_DIALECTS = ("SMB1", "2.1", "3.0", "3.1.1")
PAYLOAD_SHARE = 1448 / 1500  # of IP bytes, in full packets


class BadScenario(Exception):
    """One sentence for the author of the scenario."""


@dataclasses.dataclass(frozen=True)
class Application:
    """What is done, by which program: "smb read SMB1 impacket", "http", "tcp write 10 flows", "txn EFT-SHORT",
    "stream 30 s", "packets udp 512"."""

    protocol: str
    work: str  # read, write; for smb also files, document
    dialect: str = ""
    client: str = ""
    flows: int = 1
    transaction: transactions.Transaction | None = None
    seconds: float = 0  # of a stream, which has no size
    packets: packet_tests.PacketTest | None = None

    @property
    def is_captured(self):
        """Is time read from a capture? The others have receivers that count, and are measured for what a capture would cost."""
        return self.protocol not in ("stream", "packets")

    def is_for_pair(self):
        """Does the pair carry it? It leaves UDP alone."""
        return not (self.transaction and self.transaction.over == "udp" or self.packets and not self.packets.is_tcp)

    def __str__(self):
        if self.transaction or self.packets:
            return str(self.transaction or self.packets)
        if self.protocol == "stream":
            return f"stream {self.seconds:g} s"
        words = {"http": ["http"], "tcp": ["tcp", self.work]}.get(
            self.protocol, ["smb", self.work, self.dialect, self.client])
        return " ".join([*words, *([f"{self.flows} flows"] if self.flows > 1 else [])])


@dataclasses.dataclass(frozen=True)
class Place:
    """A line and how the hosts at its ends are set: what one lab is made for."""

    rate: str
    round_trip_ms: float
    loss: float = 0.0
    burst_length: float = 1.0  # mean packets lost in a row
    queue: str = "auto"
    tuned: bool = False
    mtu: int = 1500
    buffers: int = 0  # bytes, of the end hosts' sockets; 0: as the kernel has them
    lose_after_s: float = 0  # one packet with data, so long after the start; 0: none

    @property
    def bits_per_second(self):
        return bits_per_second(self.rate)

    @property
    def payload_bytes_per_second(self):
        """The most that TCP can carry."""
        return self.bits_per_second / 8 * PAYLOAD_SHARE

    def line_name(self):
        return next((name for name, rate in NAMED_RATES.items() if rate == self.rate),
                    self.rate.replace("bit", "").replace("m", " Mbit/s").replace("k", " kbit/s").replace("g", " Gbit/s"))

    def __str__(self):
        words = [self.line_name(), f"{self.round_trip_ms:g} ms"]
        if self.loss:
            words.append(f"loss {100 * self.loss:g} %" + (f" in bursts of {self.burst_length:g}"
                                                          if self.burst_length > 1 else ""))
        if self.queue != "auto":
            words.append(f"queue {self.queue}")
        if self.mtu != 1500:
            words.append(f"MTU {self.mtu}")
        if self.buffers:
            words.append(f"buffers {self.buffers / 1e6:g} MB")
        if self.lose_after_s:
            words.append(f"one packet lost after {self.lose_after_s:g} s")
        return ", ".join(words)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of the tables: measured once for each repetition."""

    place: Place
    application: Application
    features: str
    turn: str  # the pass
    data: str
    size: int  # bytes that are moved

    @property
    def key(self):
        return " | ".join((str(self.place), str(self.application), self.data, self.features, self.turn, str(self.size)))


@dataclasses.dataclass
class Matrix:
    """One [[matrix]]: every combination of its lists."""

    title: str
    places: list
    applications: list
    features: list
    passes: list
    data: list
    source: str  # the rows of sources/ that are shown beside it

    @property
    def is_of_streams(self):
        return self.applications[0].protocol == "stream"

    @property
    def is_of_packets(self):
        return self.applications[0].packets is not None


@dataclasses.dataclass(frozen=True)
class Confidence:
    """Repeats until the mean is known so well, as netperf does: `least` times, `most` times."""

    level: float
    within: float  # of the mean, to each side
    least: int
    most: int


@dataclasses.dataclass
class Scenario:
    name: str
    title: str
    text: str  # the file, for the report
    seed: int
    repetitions: int
    told_rate: bool  # the proxies are told the line's rate
    seconds: float  # of the line that a file takes
    least: int
    most: int
    files: int  # how many "smb files" reads
    transactions: int  # of 100 bytes, of each pair
    matrices: list
    pending: list  # {"rows": …, "why": …}: what cannot be measured yet
    quick: bool
    confidence: Confidence | None = None

    @property
    def expected_repetitions(self):
        return self.confidence.least if self.confidence else self.repetitions

    def cells(self):
        """In the order in which they are measured: place by place; each once, whatever asks for it twice, and the passes of
        the same file next to each other."""
        files = {}
        for matrix in self.matrices:
            for place, application, features, data in itertools.product(matrix.places, matrix.applications, matrix.features,
                                                                        matrix.data):
                if not application.is_for_pair() and features != "bare":
                    continue  # what stands beside is the same line once more
                where = dataclasses.replace(place, tuned=features == "tuned")
                files.setdefault((where, application, features, data), set()).update(matrix.passes)
        order = list(dict.fromkeys(place for place, *_ in files))
        return [Cell(place, application, features, turn, data, self.size(place, application))
                for place, application, features, data in sorted(files, key=lambda file: order.index(file[0]))
                for turn in PASSES if turn in files[place, application, features, data]]

    def size(self, place, application):
        """As much as the line carries in some seconds, within bounds; the same for all that is compared."""
        if application.protocol == "stream":
            return 0  # it ends by the clock
        if application.work == "files":
            return self.files * 10_000
        if application.work == "document":
            return 1_000_000 if self.quick else 5_000_000
        if application.transaction:  # at most: time bounds them, too
            each = application.transaction.bytes * application.flows
            line = max(each, place.bits_per_second / 8 * self.seconds)
            return int(min(each * application.transaction.count(self.transactions), float(f"{line:.2g}")))
        wanted = min(self.most, max(self.least, place.bits_per_second / 8 * self.seconds))
        return int(float(f"{wanted:.2g}"))


def bits_per_second(rate):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg])bit", rate)
    if not found:
        raise BadScenario(f"'{rate}' is not a rate such as 51.84mbit, nor one of {', '.join(NAMED_RATES)}")
    return float(found[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[found[2]]


def parse_application(text):
    words = text.split()
    flows = 1
    if len(words) > 2 and words[-1] == "flows" and words[-2].isdigit():
        flows, words = int(words[-2]), words[:-2]
    match words:
        case ["http"] if flows == 1:
            return Application("http", "read")
        case ["stream", seconds, "s"] if re.fullmatch(r"\d{1,4}(\.\d+)?", seconds) and float(seconds) >= 1 and flows == 1:
            return Application("stream", "write", seconds=float(seconds))
        case ["tcp", "read" | "write"] if 1 <= flows <= 1000:
            return Application("tcp", words[1], flows=flows)
        case ["smb", work, dialect, client] if (work in SMB_WORK and dialect in SMB_DIALECTS and client in SMB_CLIENTS
                                                and flows == 1):
            if client != "impacket" and work not in ("read", "write"):
                raise BadScenario(f"'{text}': {client} can only read and write")
            return Application("smb", work, dialect, client)
        case ["packets", *rest] if flows == 1 and (test := packet_tests.parse(rest)):
            return Application("packets", "write", packets=test)
        case ["txn", *rest] if flows == 1 and (transaction := transactions.parse(rest)):
            return Application("txn", transaction.script, flows=transaction.pairs, transaction=transaction)
    raise BadScenario(f"'{text}' is not an application: http, tcp read|write [N flows], stream N s, smb {'|'.join(SMB_WORK)} "
                      f"{'|'.join(SMB_DIALECTS)} {'|'.join(SMB_CLIENTS)}, {packet_tests.GRAMMAR}, or {transactions.GRAMMAR}")


def parse_size(text, what):
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kMG]?)B", str(text))
    if not found:
        raise BadScenario(f"{what} = '{text}' is not a size such as 5MB")
    return int(float(found[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[found[2]])


class _Table:
    """A TOML table of which every key must be known and of its type."""

    def __init__(self, table, where):
        self.table, self.where = dict(table), where

    def take(self, key, kind, default=None):
        if key not in self.table:
            if default is None:
                raise BadScenario(f"{self.where}: '{key}' is missing")
            return default
        value = self.table.pop(key)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise BadScenario(f"{self.where}: '{key}' must be {_NAMES[kind]}, not {value!r}")
        return value

    def take_list(self, key, kind, default=None, allowed=None):
        values = self.take(key, list, default)
        if not values:
            raise BadScenario(f"{self.where}: '{key}' is empty")
        for value in values:
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise BadScenario(f"{self.where}: each entry of '{key}' must be {_NAMES[kind]}, not {value!r}")
            if allowed and value not in allowed:
                raise BadScenario(f"{self.where}: '{key}' has '{value}', but there are only {', '.join(allowed)}")
        return list(dict.fromkeys(values))

    def end(self):
        if self.table:
            raise BadScenario(f"{self.where}: unknown key '{next(iter(self.table))}'")


_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


def names():
    return sorted(path.stem for path in HERE.glob("*.toml"))


def load(name, quick=False):
    """A scenario by the name of an included one, or by the path of a file."""
    path = pathlib.Path(name)
    if not path.suffix and (HERE / f"{name}.toml").exists():
        path = HERE / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) and path.suffix else "there is no such scenario"
        raise BadScenario(f"{name}: {said}; included are {', '.join(names())}") from None
    return parse(text, path.stem, quick)


def parse(text, name, quick=False):
    try:
        top = _Table(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario(f"{name}: {error}") from None
    try:
        return _parse(top, text, name, quick)
    except BadScenario as error:
        raise BadScenario(str(error) if str(error).startswith(name) else f"{name}: {error}") from None


def _parse(top, text, name, quick):
    title, seed = top.take("title", str), top.take("seed", int, 1)
    told = top.take("told_rate", bool, False)
    confidence = _confidence(top, name)
    usual = {"repetitions": confidence.most if confidence else top.take("repetitions", int, 3), "size": top.take("size", dict, {})}
    short = _Table(top.take("quick", dict, {}), f"{name}: quick")
    short = {"repetitions": short.take("repetitions", int, 1), "size": short.take("size", dict, {}), "end": short.end()}
    chosen = short if quick else usual
    size = _Table(chosen["size"], f"{name}: size")
    seconds = size.take("seconds", float, 2.0 if quick else 20.0)
    least = parse_size(size.take("least", str, "256kB" if quick else "5MB"), "least")
    most = parse_size(size.take("most", str, "4MB" if quick else "100MB"), "most")
    files = size.take("files", int, 50 if quick else 1000)
    count = size.take("transactions", int, 50 if quick else 1000)
    size.end()
    matrices = [_matrix(table, f"{name}: matrix {number}", quick)
                for number, table in enumerate(top.take("matrix", list), 1)]
    pending = top.take("pending", list, [])
    for number, table in enumerate(pending, 1):
        row = _Table(table, f"{name}: pending {number}")
        row.take("rows", str), row.take("why", str)
        row.end()
    top.end()
    if chosen["repetitions"] < 1 or seconds <= 0 or files < 1 or count < 1 or least < 1 or least > most:
        raise BadScenario("repetitions and sizes must be positive, and least must not exceed most")
    matrices = [matrix for matrix in matrices if matrix]
    if not matrices:
        raise BadScenario("it contains nothing to measure")
    return Scenario(name, title, text, seed, chosen["repetitions"], told, seconds, least, most, files, count, matrices,
                    pending, quick, None if quick else confidence)


def _confidence(top, name):
    table = top.take("confidence", dict, {})
    if not table:
        return None
    row = _Table(table, f"{name}: confidence")
    found = Confidence(row.take("level", float, 0.95), row.take("within", float, 0.025), row.take("least", int, 3),
                       row.take("most", int, 9))
    row.end()
    if not 0 < found.level < 1 or found.within <= 0 or not 2 <= found.least <= found.most:
        raise BadScenario("confidence: level is a share below 1, within above 0, and 2 <= least <= most")
    if "repetitions" in top.table:
        raise BadScenario("give either 'repetitions' or [confidence], not both")
    return found


def _matrix(table, where, quick):
    table = dict(table)
    short = table.pop("quick", {})
    if quick:
        if short is False:
            return None
        table |= short
    matrix = _Table(table, where)
    rates = [NAMED_RATES.get(rate, rate) for rate in matrix.take_list("rates", str)]
    for rate in rates:
        bits_per_second(rate)
    queue, bursts = matrix.take("queue", str, "auto"), matrix.take_list("burst_lengths", float, [1.0])
    round_trips, losses = matrix.take_list("round_trips_ms", float), matrix.take_list("losses", float, [0.0])
    if any(not 0 <= loss < 1 for loss in losses) or any(trip < 0 for trip in round_trips):
        raise BadScenario(f"{where}: losses are shares from 0 to 1, round trips at least 0 ms")
    if any(length < 1 for length in bursts):
        raise BadScenario(f"{where}: a burst has at least one packet")
    mtus, buffers = matrix.take_list("mtus", int, [1500]), parse_size(matrix.take("buffers", str, "0B"), "buffers")
    if any(not 1280 <= mtu <= 16384 for mtu in mtus):
        raise BadScenario(f"{where}: an MTU is from 1280 to 16384 bytes")
    lose_after = matrix.take("lose_after_s", float, 0.0)
    if lose_after < 0:
        raise BadScenario(f"{where}: a packet is lost at least 0 s after the start")
    places = [Place(rate, float(trip), float(loss), float(length) if loss else 1.0, queue, mtu=mtu, buffers=buffers,
                    lose_after_s=lose_after)
              for rate, mtu, length, loss, trip in itertools.product(rates, mtus, bursts, losses, round_trips)]
    found = Matrix(title=matrix.take("title", str), places=list(dict.fromkeys(places)),
                   applications=[parse_application(text) for text in matrix.take_list("applications", str)],
                   features=matrix.take_list("features", str, allowed=FEATURES),
                   passes=sorted(matrix.take_list("passes", str, ["cold"], PASSES), key=PASSES.index),
                   data=matrix.take_list("data", str, ["random"], DATA), source=matrix.take("source", str, " ").strip())
    matrix.end()
    if found.passes[0] != "cold":
        raise BadScenario(f"{where}: the first pass is cold")
    counted = [each for each in found.applications if not each.is_captured]
    if counted and (len({each.protocol for each in found.applications}) > 1 or found.passes != ["cold"] or found.data != ["random"]):
        raise BadScenario(f"{where}: '{counted[0]}' has a matrix of its own, with one pass")
    if lose_after and any(each.protocol not in ("tcp", "http") or each.work != "read" for each in found.applications):
        raise BadScenario(f"{where}: one packet is lost for 'http' and 'tcp read' alone, where the capture shows its repair")
    udp = [str(each) for each in found.applications if not each.is_for_pair()]
    if udp and "bare" not in found.features:
        raise BadScenario(f"{where}: '{udp[0]}' is measured with 'bare' alone, which is not among the features")
    over = PACKETS_OVER if found.is_of_packets else TRANSPORTS if counted else [each for each in FEATURES if each not in TRANSPORTS[2:]]
    if alone := [name for name in found.features if name not in over]:
        raise BadScenario(f"{where}: '{alone[0]}' " + (f"is not a transport of '{counted[0]}': {', '.join(over)}" if counted
                                                      else "is only for streams"))
    if any(mtu != 1500 for mtu in mtus) and (guests := [name for name in found.features if name in IN_GUESTS]):
        raise BadScenario(f"{where}: '{guests[0]}' has an MTU of 1500 alone: the emulated machines' cards have no other")
    many = [str(each) for each in found.applications if each.work not in ("read", "write")]
    if many and (found.passes != ["cold"] or found.data != ["random"]):
        raise BadScenario(f"{where}: '{many[0]}' has one pass, cold, with random bytes")
    return found
