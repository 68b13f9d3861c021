# SPDX-License-Identifier: Apache-2.0
"""Writes the report of a run: one HTML file with everything in it, the same as Markdown, and the raw figures as CSV and
JSON. What is in the tables and plots is in tables.py and plots.py."""

import csv
import html
import io
import itertools
import json

import packet_report
import packet_tests
import plots
import scenario as scenarios
import sources
import tables
import transport_plots
import transports
from store import saying_why
from summary import FEW, FLOOR, FLOOR_OF_FEW, KB, Figures

FILES = ("report.html", "report.md", "figures.csv", "results.json")

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, "Liberation Sans", Arial, sans-serif; color: #111; background: #fff; max-width: 1180px;
       margin: 2em auto; padding: 0 1.2em; }
h1 { font-size: 1.6em; margin-bottom: .2em; } h2 { font-size: 1.25em; margin-top: 2em; border-bottom: 1px solid #999; }
h3 { font-size: 1.05em; margin-bottom: .3em; }
table { border-collapse: collapse; font-size: .86em; margin: .5em 0; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ccc; padding: .25em .6em; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #333; vertical-align: bottom; white-space: normal; max-width: 8em; }
th:first-child, td:first-child, table.words th, table.words td { text-align: left; }
table.words td { white-space: normal; }
td.bad { font-weight: bold; color: #a00; }
.note { font-size: .85em; color: #444; max-width: 60em; } .wide { overflow-x: auto; }
.plots { display: flex; flex-wrap: wrap; gap: 1%; } .plots svg { width: 49%; min-width: 22em; height: auto; }
pre { background: #f4f4f4; padding: .8em; font-size: .8em; overflow-x: auto; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } .plots svg { width: 48%; } table { page-break-inside: avoid; }
               h2 { page-break-after: avoid; } .wide { overflow: visible; } th, td { padding: .15em .3em; } }
"""

METHOD = (
    "Times are taken from a packet capture on the client's network interface. Reading a file: from the request for its first block "
    "(SMB: offset 0) to the acknowledgement of the last segment of the last block. Writing a file: from the first byte (SMB: "
    "the block at offset 0) to the server's confirmation of the whole file (SMB: the response to CLOSE). Small files and documents: from "
    "the first request after the login to the last response. Transactions: from the first packet of the first request (EFT-SHORT: of its "
    "connection) to the last response; their response times are measured by longhaul-txn itself, which compares every byte. The control "
    "connections of its agents do not cross the line. One ping before and one after the measurement mark its place in the capture.",
    "A measurement is discarded and repeated, at most three times, if more than 1 % of the captured bytes are other traffic, "
    "if tcpdump lost packets, or, on a line without loss, if the share of retransmitted or late bytes exceeds that of the bare line by "
    "more than one percentage point.",
    "Bytes on the line are IP bytes in both directions, counted by the emulator. Every file is compared by SHA-256. Before a "
    "cold pass the dictionaries of both proxies are cleared; a restart keeps the dictionary on disk. Random bytes are new for each cold "
    "pass, so that neither compression nor a dictionary can help.",
    "bare: no proxy at all, CUBIC at the end hosts. tuned: the same with BBR and buffers that are large enough for any line, the best "
    "that end hosts can do alone. B: the proxy relays outside the link. T: transport, compression, dictionaries. A: T and the application "
    "modules. F: only the UDP carrier with repair packets. A+F: everything.",
)

ONE_LOSS = (
    "The emulator drops one packet on its way to the client; the dashed line shows when. Segments and acknowledgements are those of "
    "the client's own connection. On the bare line, a segment that arrives after a later one is the retransmission; with the pair, the "
    "link repairs the loss, and the client sees at most a pause. On the bare line, the rate takes far longer to recover than the lost "
    "packet.")
METHOD_OF_STREAMS = (
    "A stream lasts for a fixed number of seconds. Its result is the number of bytes that the receiving program had by then, slow start "
    "included, as reported by iperf3 (TCP) and longhaul-sctp (SCTP). Packets are not captured: at these rates a capture would use more CPU than "
    "an end host. Bytes are not compared: the transports have checksums, and the other scenarios compare every byte.",
    f"TCP CUBIC and BBR: no proxy, one connection; {scenarios.PARALLEL} × TCP CUBIC: that many connections at once. SCTP: usrsctp, in "
    "user space over raw IP, one association, one stream, its own congestion control (RFC 4960), even if the kernel has SCTP. "
    "Emulated: Linux's TCP CUBIC and SCTP, by iperf3 between two emulated machines, one in each LAN. They are far slower than the "
    "host, so their results characterise the transport only on lines that they can fill; the TCP result shows which lines those are. "
    "Longhaul, UDP and TCP: CUBIC to the proxy, and only that carrier between the proxies, encrypted, without compression, dictionaries and "
    "modules; repair packets only where they help.",
    "Processor is the CPU time of the processes as accounted by the kernel, in shares of one core. The emulator is not included; "
    "figures.csv has the number of cores that were busy in total (busy_cores).",
)


def write(store):
    """All files into the folder of the run; gives their paths."""
    header = store.header
    scenario = scenarios.parse(header["scenario"], header["name"], header["quick"])
    figures = Figures(scenario, store)
    content = {"report.html": to_html(figures), "report.md": to_markdown(figures), "figures.csv": to_csv(figures),
               "results.json": json.dumps(header | {"samples": list(store.samples.values())}, indent=1)}
    with saying_why(store.folder):
        for name, text in content.items():
            partial = store.folder / f"{name}.partial"
            partial.write_text(text, encoding="utf-8")
            partial.rename(store.folder / name)
    return [store.folder / name for name in FILES]


# -- what both have


def verdict(figures):
    """What happened, in one sentence."""
    every = figures.everything()
    there = sum(figure.is_there for figure in every)
    words = [f"{there} of {len(every)} cells measured"]
    for what, count in (("FAILED", sum(bool(figure.failures) for figure in every)),
                        ("cut off", sum(bool(figure.cut) for figure in every)),
                        ("doubtful", sum(bool(figure.doubts) for figure in every)),
                        ("slower than the bare line", len(tables.slower(figures).rows))):
        if count:
            words.append(f"{count} {what}")
    thrown = sum(len(sample.get("discarded", [])) for figure in every for sample in figure.samples)
    if thrown:
        words.append(f"{thrown} measurements discarded and repeated")
    repetitions, rule = figures.scenario.repetitions, figures.scenario.confidence
    if rule:
        words.append(f"{rule.least} to {rule.most} repetitions, until the mean is known to ± {100 * rule.within:g} % at "
                     f"{100 * rule.level:g} %")
    else:
        words.append(f"{repetitions} repetition{'s' if repetitions > 1 else ''}")
    return ", ".join(words[:-1]) + f"; {words[-1]}" + \
        ("; QUICK: a rough result, not for comparison" if figures.scenario.quick else "") + "."


def conditions(figures):
    """Pairs of what and how."""
    header = figures.store.header
    found = [("scenario", header["name"] + (", quick" if header["quick"] else "")),
             ("command", "; ".join(dict.fromkeys(session["command"] for session in header["sessions"])))]
    for session in header["sessions"][-1:]:
        machine = session["machine"]
        found += [("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux "
                              f"{machine['kernel']}"),
                  ("versions", ", ".join([f"{name} {version}" for name, version in session["versions"].items()] +
                                         [f"commit {machine['commit']}"]))]
    found += [("dates", "; ".join(session["machine"]["time"] for session in header["sessions"])),
              ("seed", str(figures.scenario.seed)),
              ("line's rate", "configured at the proxies" if figures.scenario.told_rate else "not configured; the proxies measure it")]
    loads = [sample["load"] for sample in figures.store.samples.values()]
    if loads:
        found.append(("load average", f"{min(loads):.1f} to {max(loads):.1f}, the measurement itself included"))
    late = [sample["line_late_p99_us"] for sample in figures.store.samples.values() if "line_late_p99_us" in sample]
    if late:
        found.append(("emulator", f"in the worst measurement, 1 % of the packets left the line {max(late) / 1000:.1f} ms late or more"))
    ends = {}
    for place, what in header.get("places", {}).items():
        ends.setdefault((_tcp(what["ends"]), _tcp(what["proxies"])), []).append(place)
    for (end, proxy), places in ends.items():
        which = "" if len(ends) == 1 else f" ({len(places)} {'tuned' if 'tuned' in places[0] else 'usual'} places)"
        found.append((f"hosts{which}", end))
        found.append((f"proxies, towards their LANs{which}", proxy))
    for who, its, why in (("impacket", lambda application: application.client == "impacket",
                           "it also includes the open, the end and the close"),
                          ("longhaul-txn", lambda application: application.transaction,
                           "the capture's time does not include its first call and its last close")):
        if apart := tables.clocks(figures, its):
            found.append((f"{who}'s own clock compared with the capture", f"{apart[len(apart) // 2]:+.1f} ms (median; {apart[0]:+.1f} "
                                                                  f"to {apart[-1]:+.1f} ms): {why}"))
    return found


def _tcp(facts):
    return (f"{facts['congestion_control']}; buffers (minimum, default, maximum): receive "
            f"{' '.join(map(str, facts['tcp_rmem']))}, send {' '.join(map(str, facts['tcp_wmem']))}")


def sections(figures):
    """(heading, tables, plots) for each [[matrix]]."""
    with_plots = plots.are_possible()
    for block, matrix in enumerate(figures.scenario.matrices):
        if matrix.is_of_streams:
            yield matrix.title, list(transports.tables(figures, block)), [
                plot for plot in (transport_plots.over_delay(figures, block) if with_plots else []) if plot]
            continue
        if matrix.is_of_packets:
            yield matrix.title, list(packet_report.tables(figures, block)), \
                list(packet_report.drawn(figures, block)) if with_plots else []
            continue
        transactions = [application for application in matrix.applications if application.transaction]
        subjects = list(itertools.product([application for application in matrix.applications
                                           if not application.transaction], matrix.data))
        together = len(matrix.places) == 1  # tables of one row each would be hard to read
        shown = [tables.throughput(figures, block, mine) for mine in
                 ([subjects] if together and subjects else [[subject] for subject in subjects])]
        drawn = []
        if transactions:
            shown += tables.transactions(figures, block, transactions)
            drawn += plots.responses(figures, block, transactions) if with_plots else []
        for subject in subjects:
            if len(matrix.passes) > 1:
                shown.append(tables.passes(figures, block, *subject))
            if with_plots:
                drawn += plots.throughput(figures, block, *subject)
                drawn += plots.passes(figures, block, *subject) if len(matrix.passes) > 1 else []
                drawn += plots.over_time(figures, block, *subject)
                drawn += plots.repairs(figures, block, *subject)
        if any(place.lose_after_s for place in matrix.places):
            shown[-1].note = (shown[-1].note + " " + ONE_LOSS).strip()
        if matrix.source == sources.LONG_PATHS:
            shown.append(tables.long_paths())
        yield matrix.title, shown, [plot for plot in drawn if plot]
    if any(matrix.source == sources.OVER_DELAY for matrix in figures.scenario.matrices):
        yield "The source's own tables", list(transports.their_tools()), []
    if with_plots and (drawn := [plot for name in ("T", "A") for plot in plots.gains(figures, name)]):
        yield "Gain over delay", [], drawn


def rest(figures):
    found = [tables.slower(figures), transports.unsure(figures), tables.costs(figures), tables.troubles(figures)]
    if figures.scenario.pending:
        found.append(tables.Table("Not measured yet", ["rows", "reason"],
                                  [[row["rows"], row["why"]] for row in figures.scenario.pending]))
    return [table for table in found if table.rows]


def method(figures):
    matrices = figures.scenario.matrices
    return (*(METHOD if any(matrix.applications[0].is_captured for matrix in matrices) else ()),
            *(METHOD_OF_STREAMS if any(matrix.is_of_streams for matrix in matrices) else ()),
            *(packet_report.METHOD if any(matrix.is_of_packets for matrix in matrices) else ()))


def noise_note():
    return (f"A difference counts as noise up to the larger of the spread and {100 * FLOOR:g} % (fewer than {FEW} repetitions: "
            f"{100 * FLOOR_OF_FEW:g} %).")


# -- HTML


def to_html(figures):
    escape = html.escape
    out = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
           f"<title>{escape(figures.scenario.title)}</title>", f"<style>{STYLE}</style></head><body>",
           f"<h1>{escape(figures.scenario.title)}</h1>", f"<p><b>{escape(verdict(figures))}</b> {escape(noise_note())}</p>"]
    if not plots.are_possible():
        out.append(f"<p>{escape(plots.HINT)}</p>")
    out.append(_html_table(tables.Table("", ["what", "how"], [list(pair) for pair in conditions(figures)]), words=True))
    for heading, shown, drawn in sections(figures):
        out.append(f"<h2>{escape(heading)}</h2>")
        out += [_html_table(table) for table in shown]
        if drawn:
            out.append('<div class="plots">' + "\n".join(drawn) + "</div>")
    for table in rest(figures):
        out.append(f"<h2>{escape(table.title)}</h2>")
        out.append(_html_table(table, words=table.title.startswith(("What did", "Not measured")), titled=False))
    out.append("<h2>How it was measured</h2>" + "".join(f"<p>{escape(text)}</p>" for text in method(figures)))
    out.append(f"<h2>The scenario</h2><pre>{escape(figures.store.header['scenario'])}</pre></body></html>")
    return "\n".join(out) + "\n"


def _html_table(table, words=False, titled=True):
    escape = html.escape
    bad = ("FAILED", "cut after", "failed")
    rows = "".join("<tr>" + "".join(f"<td{' class=bad' if cell.startswith(bad) else ''}>{escape(cell)}</td>" for cell in row)
                   + "</tr>\n" for row in table.rows)
    return ((f"<h3>{escape(table.title)}</h3>" if titled and table.title else "") +
            f'<div class="wide"><table{" class=words" if words else ""}><thead><tr>' +
            "".join(f"<th>{escape(heading)}</th>" for heading in table.headings) +
            f"</tr></thead><tbody>\n{rows}</tbody></table></div>" +
            (f'<p class="note">{escape(table.note)}</p>' if table.note else ""))


# -- Markdown


def to_markdown(figures):
    out = [f"# {figures.scenario.title}", "", f"**{verdict(figures)}** {noise_note()}", ""]
    out += markdown_table(tables.Table("", ["what", "how"], [list(pair) for pair in conditions(figures)]))
    for heading, shown, _ in sections(figures):
        if shown:
            out += [f"## {heading}", ""]
        for table in shown:
            out += [*([f"### {table.title}", ""] if table.title else []), *markdown_table(table)]
    for table in rest(figures):
        out += [f"## {table.title}", "", *markdown_table(table)]
    out += ["## How it was measured", "", *(line for text in method(figures) for line in (text, "")), "Plots are in report.html."]
    return "\n".join(out) + "\n"


def markdown_table(table):
    def line(cells):
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return [line(table.headings), line(["---"] * len(table.headings)), *(line(row) for row in table.rows), "",
            *([table.note, ""] if table.note else [])]


# -- CSV


RESPONSE = ("mean", "deviation", "least", "median", "p95", "p99", "most")
COLUMNS = ("line", "rate_bit", "round_trip_ms", "loss", "burst_length", "application", "data", "features", "pass",
           "repetition", "size", "seconds", "kb_per_second", "client_seconds", "wan_up", "wan_down", "repeated_share",
           "foreign_share", "cpu_branch_s", "cpu_datacenter_s", "peak_branch", "peak_datacenter", "carrier", "load", "cut",
           "failure", "doubt", "at", "transactions", "mbit_per_second", *(f"response_{name}_ms" for name in RESPONSE),
           "datagrams_sent_again", "mtu", "cpu_client_share", "cpu_server_share", "busy_cores", "again", "segment_bytes",
           *(f"packets_{name.removeprefix('packets_')}" for name in packet_tests.COLUMNS))


def to_csv(figures):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for figure in figures.everything():
        cell = figure.cell
        for sample in figure.samples:
            seconds, size = sample.get("seconds"), sample["size"]
            writer.writerow([
                cell.place.line_name(), f"{cell.place.bits_per_second:.0f}", cell.place.round_trip_ms, cell.place.loss,
                cell.place.burst_length, cell.application, cell.data, cell.features, cell.turn, sample["repetition"] + 1,
                size, seconds, f"{size / seconds / KB:.2f}" if seconds else None, sample.get("client_seconds"),
                sample.get("wan_up"), sample.get("wan_down"), sample.get("repeated_share"), sample.get("foreign_share"),
                *(sample.get("cpu_seconds", {}).get(node) for node in tables.NODES),
                *(sample.get("peak_bytes", {}).get(node) for node in tables.NODES), sample.get("carrier"),
                sample.get("load"), sample.get("cut"), sample.get("failure"), sample.get("doubt"), sample.get("at"),
                sample.get("transactions"), f"{8 * size / seconds / 1e6:.6f}" if seconds else None,
                *(f"{sample['response_ms'][name]:.4f}" if "response_ms" in sample else None for name in RESPONSE),
                sample.get("datagrams_sent_again"), cell.place.mtu,
                *(sample.get("cpu_share", {}).get(end) for end in ("client", "server")),
                *(sample.get(name) for name in ("busy_cores", "again", "segment_bytes")),
                *(sample.get("packets", {}).get(name) for name in packet_tests.COLUMNS)])
    return text.getvalue()
