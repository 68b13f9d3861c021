# SPDX-License-Identifier: Apache-2.0
"""Formats the results: the table, the conditions, and one sentence for each row. Nothing is measured here."""


def seconds_text(result, bound):
    if result["failure"]:
        return "failed"
    return f"{result['seconds']:.1f}" if result["seconds"] is not None else f"> {bound:g}"


def ratio_text(row, bound):
    bare, pair = row["bare"]["seconds"], row["pair"]["seconds"]
    if row["bare"]["failure"] or row["pair"]["failure"]:
        return "-"
    if bare and pair:
        return f"{bare / pair:.2f}"
    if pair:
        return f"> {bound / pair:.1f}"
    return f"< {bare / bound:.2f}" if bare else "-"


def bytes_text(size):
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= divisor:
            return f"{size / divisor:.1f} {unit}"
    return f"{size} B"


def wan_text(result):
    return f"{result['wan_to_server'] / 1e6:.1f} / {result['wan_to_client'] / 1e6:.1f}"


def correct_text(row):
    if not row["bare"]["right"] or not row["pair"]["right"]:
        return "WRONG"
    failed = [way for way in ("bare", "pair") if row[way]["failure"]]
    if failed:
        return f"failed ({', '.join(failed)})"
    cut = [way for way in ("bare", "pair") if row[way]["seconds"] is None]
    if not cut:
        return "correct"
    unchecked = any(row[way]["sha256"] is None for way in cut)
    return f"cut ({', '.join(cut)}), " + ("that part not checked" if unchecked else "correct up to there")


def aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [("  ".join([cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                     zip(cells[1:-1], widths[1:-1])), cells[-1]])).rstrip()
            for cells in rows]


def table(results):
    bound = results["bound_seconds"]
    rows = [("", "", "seconds", "seconds", "", "line", "line", "WAN MB bare", "WAN MB pair", ""),
            ("what", "size", "bare", "pair", "ratio", "bare", "pair", "up / down", "up / down", "bytes (SHA-256)")]
    for row in results["rows"]:
        rows.append((row["what"], bytes_text(row["size"]), seconds_text(row["bare"], bound),
                     seconds_text(row["pair"], bound), ratio_text(row, bound), f"{row['bare']['line_share']:.0%}",
                     f"{row['pair']['line_share']:.0%}", wan_text(row["bare"]), wan_text(row["pair"]),
                     correct_text(row)))
    lines = aligned(rows)
    return "\n".join([*lines[:2], "-" * max(map(len, lines)), *lines[2:]])


def conditions(results):
    host = results["hosts"]
    lines = [f"line          {results['line']}; emulated, the same in both directions",
             f"hosts         {host['congestion_control']}, TCP buffers up to {bytes_text(host['rmem'])} (receive) and "
             f"{bytes_text(host['wmem'])} (send)",
             f"pair          transparent mode, {results['link']}; TCP buffers up to "
             f"{bytes_text(results['proxy_buffer'])}",
             "columns       seconds: at the client; line: utilisation of the busier direction; WAN MB: IP bytes that "
             "crossed the line, counted by the emulator",
             f"flows         {results['flows']}"]
    late = results["emulator_late_p99_ms"]
    if late > 1:
        lines.append(f"note          this machine is busy: 1 % of the packets left the emulated line {late:.0f} ms late or "
                     "more")
    return "\n".join(lines)


# What is in force today is transport alone, so the sentences promise no more than that. They are about the kind of
# work, and follow the ratio that was measured.


def conclusion(row, loss, bound):
    for way, words in (("pair", "through the pair"), ("bare", "bare")):
        if row[way]["failure"]:
            return f"failed {words}: {row[way]['failure']}"
    bare, pair = row["bare"]["seconds"], row["pair"]["seconds"]
    if pair is None:
        if bare:
            return f"slower than bare ({bare:.1f} s): through the pair it was cut after {bound:g} s."
        return "did not finish in time either way, so this line says little about it."
    ratio = (bare or bound) / pair
    at_least = "" if bare else "at least "
    if row["transactions"]:
        notes = f" ({row['bare']['note']} bare, {row['pair']['note']} with the pair)" if row["pair"]["note"] else ""
        if ratio > 1.15:
            return (f"{at_least}{ratio:.1f} times as fast{notes}: the pair accepts connections locally and sends the "
                    "request together with the connection set-up, which saves one round trip of two.")
        if ratio > 0.95:
            return f"about as fast as bare{notes}: the limit here is something other than round trips."
    if ratio > 1.15:
        why = ("packet loss slows down the end hosts' TCP, while the link between the proxies does not treat it as "
               "congestion" if loss else
               "the link's windows are large and already open, while each bare connection starts small or is limited by its "
               "own window")
        return f"{at_least}{ratio:.1f} times as fast: {why}."
    if ratio > 0.95:
        return ("as fast as bare: one long transfer of incompressible bytes already fills a line without loss, "
                "and transport alone cannot increase its capacity.")
    return f"slower than bare, {1 / ratio:.2f} times as long: the pair did not help here."


def conclusions(results):
    return "\n".join(f"- {row['what']}: {conclusion(row, results['loss'], results['bound_seconds'])}"
                     for row in results["rows"])
