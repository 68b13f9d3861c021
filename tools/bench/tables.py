# SPDX-License-Identifier: Apache-2.0
"""The tables of a report, as headings and cells of text: what report.py writes in HTML and in Markdown."""

import dataclasses
import itertools

import sources
from scenario import WITHOUT_PAIR
from sources import NOT_FINISHED
from summary import KB, gain

NODES = ("branch", "datacenter")
MISSING = "–"


@dataclasses.dataclass
class Table:
    title: str
    headings: list
    rows: list  # of lists of texts
    note: str = ""


def number(value):
    digits = 0 if value >= 1000 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def percent(share):
    return MISSING if share is None else f"{100 * share:+,.0f} %"


def gain_text(figure, base):
    """Against one that was cut off the gain is known to be larger than something."""
    if figure and base and figure.is_there and base.cut and not base.is_there:
        return "> " + percent(figure.speed * base.cut[0]["cut"] / base.cell.size - 1)
    return percent(gain(figure, base))


def speed_text(figure):
    """KB/s with their spread; or what happened instead."""
    if figure is None:
        return MISSING
    if figure.failures:
        return "FAILED"
    if figure.cut:
        return f"cut after {figure.cut[0]['cut']:g} s ({number(figure.least_speed() / KB)} until then)"
    if not figure.is_there:
        return "not measured"
    many = len(figure.good)
    spread = f" ± {100 * figure.spread:.1f} %" if many > 1 else ""
    return number(figure.speed / KB) + spread + (" ?" if figure.doubts else "")


def size_text(count):
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.{2 if count < 10 * unit else 1}f} {name}"
    return f"{count:.0f} B"


def throughput(figures, block, subjects):
    """One row for each line and subject (application and data), one column for each set of features; beside them the
    source's."""
    matrix = figures.scenario.matrices[block]
    base = matrix.features[0]
    theirs = [name for name in matrix.features if any(name in sources.figures(matrix.source, place)
                                                      for place in matrix.places)] if matrix.source else []
    has_clean = [name for name in matrix.features if any(
        _clean(figures, place, *subject, name) for place in matrix.places if place.loss for subject in subjects)]
    headings = [*(["what"] if len(subjects) > 1 else []), "line", "size", *(f"{name}, KB/s" for name in matrix.features),
                *(f"{name} against {base}" for name in matrix.features[1:]), "best, share of the line",
                *(f"2006: {sources.letter(name)}, KB/s" for name in theirs),
                *(f"2006: {sources.letter(name)} against {sources.letter(base)}" for name in theirs
                  if name != base and base in theirs), *(f"{name} of loss-free" for name in has_clean)]
    rows = []
    for subject, place in itertools.product(subjects, matrix.places):
        found = {name: figures.find(place, *subject, name) for name in matrix.features}
        there = [figure for figure in found.values() if figure and figure.is_there]
        known = next((figure for figure in found.values() if figure), None)
        row = [*([title_of(*subject)] if len(subjects) > 1 else []), str(place), size_of(known) if known else MISSING,
               *(speed_text(found[name]) for name in matrix.features),
               *(gain_text(found[name], found[base]) for name in matrix.features[1:]),
               f"{100 * max(figure.speed for figure in there) / place.payload_bytes_per_second:.0f} %" if there else MISSING]
        source = sources.figures(matrix.source, place) if theirs else {}
        row += [_source_text(source.get(name)) for name in theirs]
        row += [percent(_source_gain(source, name, base)) for name in theirs if name != base and base in theirs]
        row += [_of_clean(figures, place, *subject, name) for name in has_clean]
        rows.append(row)
    note = ""
    if figures.scenario.repetitions > 1:
        note += "Median ± half the range between the slowest and the fastest. "
    if theirs:
        note += f"2006: {sources.ORIGIN}; its B is the bare line. {sources.calibration_note()} "
    if any(cell.endswith("?") for row in rows for cell in row):
        note += "?: every measurement is doubtful; see below. "
    return Table(title_of(*subjects[0]) if len(subjects) == 1 else "", headings, rows, note.strip())


RESPONSES = ("mean", "median", "p95", "p99")


def transactions(figures, block, applications):
    """Two tables: how much was done, and how long each took; one row for each line and kind of transaction."""
    matrix = figures.scenario.matrices[block]
    base = matrix.features[0]
    done, took = [], []
    for application, place in itertools.product(applications, matrix.places):
        found = {name: figures.find(place, application, "random", name) for name in matrix.features}
        if not any(found.values()):
            continue
        where = [title_of(application), str(place)]
        done.append([*where, *(_rate_text(figure) for figure in found.values()),
                     *(_per_second(figure) for figure in found.values()),
                     *(gain_text(found[name], found[base]) for name in matrix.features[1:])])
        took.append([*where, *(number(figure.response_ms(what)) if figure and figure.is_there else MISSING
                               for figure in found.values() for what in RESPONSES)])
    note = ("Only the bytes of the files, of all pairs together. Over UDP with longhaul-txn's own windows and acknowledgements; the pair "
            "does not change UDP. ")
    if figures.scenario.repetitions > 1:
        note += "Median ± half the range between the slowest and the fastest. "
    return [Table("Throughput", ["transaction", "line", *(f"{name}, Mbit/s" for name in matrix.features),
                                 *(f"{name}, transactions/s" for name in matrix.features),
                                 *(f"{name} against {base}" for name in matrix.features[1:])], done, note.strip()),
            Table("Response time, ms", ["transaction", "line", *(f"{name}, {what}" for name in matrix.features
                                                                 for what in RESPONSES)], took,
                  "Measured by longhaul-txn at the client, for all transactions of all pairs; EFT-SHORT includes the set-up and "
                  "the end of the connection." + (" Median of several repetitions." if figures.scenario.repetitions > 1 else ""))]


def _rate_text(figure):
    """As speed_text, in the unit of the transactions' source."""
    text = speed_text(figure)
    if figure and figure.is_there and not figure.failures and not figure.cut:
        megabits = figure.speed * 8 / 1e6
        return text.replace(number(figure.speed / KB), number(megabits) if megabits >= 0.1 else f"{megabits:.3g}", 1)
    return text


def _per_second(figure):
    if not figure or not figure.is_there:
        return MISSING
    return number(figure.speed / figure.cell.application.transaction.bytes)


def title_of(application, data="random"):
    if application.transaction:
        return application.transaction.title()
    if application.packets:
        return application.packets.title()
    words = {"tcp": "TCP", "http": "HTTP download by curl", "smb": "SMB",
             "stream": f"a stream of {application.seconds:g} s"}[application.protocol]
    if application.protocol == "tcp":
        words = f"TCP, {'download' if application.work == 'read' else 'upload'}"
    if application.protocol == "smb":
        what = {"read": "file read", "write": "file written", "files": "many small files read",
                "document": "document opened"}[application.work]
        dialect = application.dialect if application.dialect == "SMB1" else f"SMB {application.dialect}"
        words = f"{dialect}, {what} by {application.client}"
    return words + (f", {application.flows} connections" if application.flows > 1 else "") + \
        (f", {data}" if data != "random" else "")


def size_of(figure):
    return size_text(figure.cell.size) if figure.cell.size else f"{figure.cell.application.seconds:g} s"


def long_paths():
    """What one connection made of long paths in 2002, for lack of ours on the same ones."""
    rows = []
    for row in sources.long_paths():
        reached = [row[f"{way}_tokyo_mbit"] for way in ("to", "from")]
        rows.append([row["path"], f"{row['rtt_ms']:g} ms", number(row["bottleneck_mbit"]),
                     *(number(each) if each else MISSING for each in reached),
                     f"{100 * max(each for each in reached if each) / row['bottleneck_mbit']:.0f} %"])
    return Table("2002: one TCP connection over real long paths",
                 ["path", "round trip", "bottleneck, Mbit/s", "to Tokyo, Mbit/s", "from Tokyo, Mbit/s", "best, share of the bottleneck"], rows,
                 f"{sources.LONG_PATHS_ORIGIN}. Compare with the shares of the line above.")


def _source_text(value):
    return MISSING if value is None else value if value == NOT_FINISHED else number(value)


def _source_gain(source, name, base):
    ours, theirs = source.get(name), source.get(base)
    return ours / theirs - 1 if isinstance(ours, float) and isinstance(theirs, float) else None


def _clean(figures, place, application, data, features):
    return figures.find(dataclasses.replace(place, loss=0.0, burst_length=1.0), application, data, features)


def _of_clean(figures, place, application, data, features):
    clean, lossy = (_clean(figures, place, application, data, features),
                    figures.find(place, application, data, features))
    found = gain(lossy, clean) if place.loss else None
    return MISSING if found is None else f"{100 * (1 + found):.0f} %"


def passes(figures, block, application, data):
    """What the second time costs: seconds and bytes on the line of each pass."""
    matrix = figures.scenario.matrices[block]
    headings = ["line", "features", "size", *(f"{turn}, s" for turn in matrix.passes),
                *(f"{turn}, on the line" for turn in matrix.passes), *(f"{turn}, size : line" for turn in matrix.passes)]
    rows = []
    for place, name in itertools.product(matrix.places, matrix.features):
        found = [figures.find(place, application, data, name, turn) for turn in matrix.passes]
        known = [figure for figure in found if figure]
        rows.append([str(place), name, size_of(known[0]) if known else MISSING,
                     *(f"{figure.seconds:.2f}" if figure and figure.is_there else speed_text(figure) for figure in found),
                     *(size_text(figure.wan_bytes) if figure and figure.is_there else MISSING for figure in found),
                     *(f"{figure.cell.size / figure.wan_bytes:,.1f}" if figure and figure.is_there else MISSING
                       for figure in found)])
    return Table(f"{title_of(application)}, {data}: again, edited, after a restart", headings, rows,
                 "On the line: IP bytes in both directions as counted by the emulator, including the marking pings.")


def costs(figures):
    """CPU and memory of the proxies, for what moved enough to say."""
    rows = []
    for figure in figures.everything():
        transaction = figure.cell.application.transaction
        if transaction and transaction.bytes < 1000:  # costs for each, and next to none for a byte
            continue
        if figure.is_there and figure.cell.size and figure.cpu_seconds("branch") is not None:
            per_gb = [figure.cpu_seconds(node) / figure.cell.size * 1e9 for node in NODES]
            rows.append([str(figure.cell.place), title_of(figure.cell.application), figure.cell.data, figure.cell.features,
                         figure.cell.turn, *(number(value) for value in per_gb),
                         *(size_text(figure.peak_bytes(node)) for node in NODES)])
    return Table("CPU and memory of the proxies", ["line", "application", "bytes", "features", "pass", "branch, CPU s per GB",
                                              "datacenter, CPU s per GB", "branch, peak memory",
                                              "datacenter, peak memory"], rows,
                 "User and system time of the process for 10⁹ bytes of file; peak resident memory, caches included. For files of "
                 "a few MB most of it is fixed cost.")


def slower(figures):
    """Where the pair loses against the bare line by more than noise."""
    rows = []
    for figure in figures.everything():
        cell = figure.cell
        if cell.features in WITHOUT_PAIR:
            continue
        bare = figures.find(cell.place, cell.application, cell.data, "bare", cell.turn)
        found = gain(figure, bare)
        if found is not None and figure.speed * (1 + max(figure.noise, bare.noise)) < bare.speed:
            rows.append([str(cell.place), title_of(cell.application, cell.data), cell.features, cell.turn, size_of(figure),
                         speed_text(bare), speed_text(figure), percent(found),
                         f"± {100 * max(figure.noise, bare.noise):.0f} %"])
    return Table("Slower than the bare line", ["line", "what", "features", "pass", "size", "bare, KB/s", "pair, KB/s",
                                               "against bare", "noise"], rows, "Only differences beyond the noise.")


def clocks(figures, both_time_the_same):
    """The capture's time against the client's own, of these applications, in ms."""
    apart = []
    for figure in figures.everything():
        if both_time_the_same(figure.cell.application) and figure.is_there:
            apart += [(sample["client_seconds"] - sample["seconds"]) * 1000 for sample in figure.good]
    return sorted(apart)


def troubles(figures):
    """Failures, doubts and what was thrown away: nothing is hidden."""
    rows = []
    for figure in figures.everything():
        for sample in figure.samples:
            for kind, texts in (("failed", [sample["failure"]] if "failure" in sample else []),
                                ("doubtful", [sample["doubt"]] if "doubt" in sample else []),
                                ("cut", [f"after {sample['cut']:g} s, {size_text(sample['moved_until_cut'])} moved"]
                                 if "cut" in sample else []),
                                ("discarded, measured again", sample.get("discarded", []))):
                rows += [[kind, figure.cell.key, str(sample["repetition"] + 1), text] for text in texts]
    return Table("Problems", ["problem", "cell", "repetition", "reason"], rows)
