# SPDX-License-Identifier: Apache-2.0
"""The plots of a report, as SVG. Colours that colour-blind people tell apart (Okabe and Ito), with a marker and a line
style each, so that they can be told apart in grey print, too. Without matplotlib there are none."""

import io
import itertools
import logging
import math
import re

import sources
from summary import KB, gain
from tables import title_of

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # that it finds no place for its caches is no user's business
try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
except ImportError:
    matplotlib = None

HINT = "There are no plots: python3-matplotlib is not installed (tools/setup installs it)."
STYLES = {"bare": ("#000000", "o", "-"), "tuned": ("#999999", "v", "-"), "B": ("#56B4E9", "s", "-"),
          "T": ("#E69F00", "^", "-"), "A": ("#0072B2", "D", "-"), "F": ("#009E73", "P", "-"), "A+F": ("#D55E00", "X", "-"),
          "parallel": ("#56B4E9", "s", "-"), "sctp": ("#CC79A7", "s", "-"), "carrier-udp": ("#0072B2", "D", "-"),
          "carrier-tcp": ("#E69F00", "^", "-"), "guest-tcp": ("#999999", "o", "--"), "guest-sctp": ("#D55E00", "s", "--")}
OTHERS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#999999")
MARKERS = "oDs^vPX*"


def are_possible():
    return matplotlib is not None


def new(title, x, y, size=(6.4, 3.9)):
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="#d0d0d0", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def svg(figure):
    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "longhaul"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return _unique(re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.S))


_numbers = itertools.count(1)


def _unique(svg):
    """Names inside of it get a number of their own: several stand in one page."""
    prefix = f"p{next(_numbers)}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    return re.sub(r'(href="#|url\(#)', rf"\1{prefix}", svg)


def log_axis(axis, values):
    """A logarithmic axis with enough numbers beside it, however narrow it is."""
    values = [value for value in values if value > 0]
    decades = math.log10(max(values) / min(values)) if values else 1
    subs = (1, 2, 3, 4, 5, 6, 8) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def heights(axes):
    """What is drawn, up and down."""
    return [value for line in axes.get_lines() for value in line.get_ydata() if isinstance(value, (int, float))] + \
        [bar.get_height() for bar in axes.patches]


def _points(axes, xs, figures, name, label):
    """Medians, with a bar from the slowest to the fastest."""
    there = [(x, figure) for x, figure in zip(xs, figures) if figure and figure.is_there]
    if not there:
        return False
    colour, marker, line = STYLES[name]
    middle = [figure.speed / KB for _, figure in there]
    low = [max(0.0, value - min(figure.speeds) / KB) for value, (_, figure) in zip(middle, there)]
    high = [max(0.0, max(figure.speeds) / KB - value) for value, (_, figure) in zip(middle, there)]
    axes.errorbar([x for x, _ in there], middle, yerr=(low, high), color=colour, marker=marker, linestyle=line,
                  markersize=5, linewidth=1.4, capsize=2, label=label)
    return True


def _source_points(axes, xs, places, source, name):
    found = [(x, sources.figures(source, place).get(name)) for x, place in zip(xs, places)]
    found = [(x, value) for x, value in found if isinstance(value, float)]
    if found:
        colour, marker, _ = STYLES[name]
        axes.plot(*zip(*found), color=colour, marker=marker, linestyle=":", markersize=5, markerfacecolor="white",
                  linewidth=1.0, label=f"2006: {sources.letter(name)}")


def throughput(figures, block, application, data):
    """One plot for each rate: speed over delay, or over loss where that is what changes."""
    matrix = figures.scenario.matrices[block]
    for rate in dict.fromkeys(place.rate for place in matrix.places):
        places = [place for place in matrix.places if place.rate == rate]
        name = places[0].line_name()
        losses = sorted({place.loss for place in places if place.loss})
        bursts = {place.burst_length for place in places if place.loss}
        delays = sorted({place.round_trip_ms for place in places})
        if len(delays) > 1:
            for loss, burst in sorted({(place.loss, place.burst_length) for place in places}):
                mine = sorted((place for place in places if (place.loss, place.burst_length) == (loss, burst)),
                              key=lambda place: place.round_trip_ms)
                if len(mine) > 1:
                    title = f"{title_of(application, data)}, {name}" + (f", loss {100 * loss:g} %" if loss else "") + \
                        (f" in bursts of {burst:g}" if burst > 1 else "")
                    yield _speeds(figures, matrix, application, data, mine, [place.round_trip_ms for place in mine],
                                  title, "round trip, ms", False)
        if len(losses) > 1:
            for delay, burst in itertools.product(delays, sorted(bursts)):
                mine = sorted((place for place in places if place.loss and place.round_trip_ms == delay
                               and place.burst_length == burst), key=lambda place: place.loss)
                if len(mine) > 1:
                    title = f"{title_of(application, data)}, {name}, {delay:g} ms" + (f", bursts of {burst:g}" if burst > 1 else "")
                    yield _speeds(figures, matrix, application, data, mine, [100 * place.loss for place in mine], title,
                                  "packets lost, %", True)


def _speeds(figures, matrix, application, data, places, xs, title, what, x_is_log):
    figure, axes = new(title, what, "KB/s")
    axes.set_yscale("log")
    if x_is_log:
        axes.set_xscale("log")
        log_axis(axes.xaxis, xs)
    drawn = [_points(axes, xs, [figures.find(place, application, data, name) for place in places], name, name)
             for name in matrix.features]
    for name in matrix.features if matrix.source else []:
        _source_points(axes, xs, places, matrix.source, name)
    if not any(drawn):
        pyplot.close(figure)
        return None
    log_axis(axes.yaxis, [*heights(axes), places[0].payload_bytes_per_second / KB])
    axes.axhline(places[0].payload_bytes_per_second / KB, color="#999999", linewidth=0.8, linestyle=(0, (6, 3)))
    axes.annotate("the line", (0.995, places[0].payload_bytes_per_second / KB), xycoords=("axes fraction", "data"),
                  fontsize=7, ha="right", va="bottom", color="#666666")
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda number: labels[number].startswith("2006"))
    axes.legend([handles[number] for number in order], [labels[number] for number in order], fontsize=8, frameon=False,
                loc="center left", bbox_to_anchor=(1.0, 0.5))
    return svg(figure)


def responses(figures, block, applications):
    """Response time of transactions: over delay, from the median to p99; or, at one delay, a line for each kind."""
    matrix = figures.scenario.matrices[block]
    for rate, loss in dict.fromkeys((place.rate, place.loss) for place in matrix.places):
        places = sorted((place for place in matrix.places if (place.rate, place.loss) == (rate, loss)),
                        key=lambda place: place.round_trip_ms)
        where = places[0].line_name() + (f", loss {100 * loss:g} %" if loss else "")
        if len(places) > 1:
            for application in applications:
                yield _response_lines(figures, matrix, application, places, where)
        else:
            yield _response_rows(figures, matrix, applications, places[0])


def _response_lines(figures, matrix, application, places, where):
    figure, axes = new(f"{title_of(application)}, {where}", "round trip, ms", "response time, ms: median to p99")
    for name in matrix.features:
        there = [(place.round_trip_ms, found) for place in places
                 if (found := figures.find(place, application, "random", name)) and found.is_there]
        if there:
            colour, marker, line = STYLES[name]
            middle = [found.response_ms("median") for _, found in there]
            up = [max(0.0, found.response_ms("p99") - value) for (_, found), value in zip(there, middle)]
            axes.errorbar([x for x, _ in there], middle, yerr=([0] * len(up), up), color=colour, marker=marker, linestyle=line,
                          markersize=5, linewidth=1.4, capsize=2, label=name)
    return _finish_responses(figure, axes)


def _response_rows(figures, matrix, applications, place):
    shown = [application for application in applications
             if any((found := figures.find(place, application, "random", name)) and found.is_there for name in matrix.features)]
    figure, axes = new(str(place), "response time, ms: median, line to p99", "", (6.4, 1.3 + 0.45 * len(shown)))
    for number, name in enumerate(matrix.features):
        rows = [(index + (number - (len(matrix.features) - 1) / 2) * 0.2, found) for index, application in enumerate(shown)
                if (found := figures.find(place, application, "random", name)) and found.is_there]
        if rows:
            middle = [found.response_ms("median") for _, found in rows]
            up = [max(0.0, found.response_ms("p99") - value) for (_, found), value in zip(rows, middle)]
            axes.errorbar(middle, [at for at, _ in rows], xerr=([0] * len(up), up), color=STYLES[name][0], marker=STYLES[name][1],
                          linestyle="", markersize=5, elinewidth=1.0, capsize=2, label=name)
    axes.set_yticks(range(len(shown)), [title_of(application) for application in shown], fontsize=7)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    return _finish_responses(figure, axes, axes.xaxis)


def _finish_responses(figure, axes, axis=None):
    """On a logarithmic axis; nothing where nothing was measured."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        pyplot.close(figure)
        return None
    axis = axis or axes.yaxis
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    log_axis(axis, list(axis.get_view_interval()))
    axes.legend(handles, labels, fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return svg(figure)


def gains(figures, features="A"):
    """Over delay, for all applications: one plot for each rate, ours and the source's."""
    rates = dict.fromkeys(cell.place.rate for cell in figures.cells if not cell.place.loss)
    for rate in rates:
        figure, axes = new(f"Gain of {features} over the bare line, "
                            f"{next(cell.place.line_name() for cell in figures.cells if cell.place.rate == rate)}",
                            "round trip, ms", "times as fast")
        axes.set_yscale("log")
        drawn = 0
        shown = dict.fromkeys((cell.application, cell.data) for cell in figures.cells
                              if cell.place.rate == rate and cell.features == features and not cell.place.loss)
        for number, (application, data) in enumerate(shown):
            places = sorted({cell.place for cell in figures.cells if cell.place.rate == rate and not cell.place.loss
                             and not cell.place.tuned}, key=lambda place: place.round_trip_ms)
            found = [(place.round_trip_ms, gain(figures.find(place, application, data, features),
                                                figures.find(place, application, data, "bare"))) for place in places]
            found = [(delay, 1 + value) for delay, value in found if value is not None]
            if len(found) > 1:
                drawn += 1
                axes.plot(*zip(*found), color=OTHERS[number % 8], marker=MARKERS[number % 8], linewidth=1.4, markersize=5,
                          label=title_of(application, data))
        for source in sorted({matrix.source for matrix in figures.scenario.matrices if matrix.source.startswith("throughput")}):
            places = [place for matrix in figures.scenario.matrices for place in matrix.places
                      if place.rate == rate and matrix.source == source]
            theirs = [(place.round_trip_ms, sources.figures(source, place)) for place in places]
            theirs = sorted((delay, values[features] / values["bare"]) for delay, values in theirs
                            if isinstance(values.get(features), float) and isinstance(values.get("bare"), float))
            if drawn and theirs:
                axes.plot(*zip(*theirs), color="#000000", marker="o", markerfacecolor="white", linestyle=":",
                          label=f"2006: {source.split()[1]}")
        if not drawn:
            pyplot.close(figure)
            continue
        log_axis(axes.yaxis, heights(axes))
        axes.axhline(1.0, color="#999999", linewidth=0.8, linestyle=(0, (6, 3)))
        axes.legend(fontsize=8, frameon=False, loc="best")
        yield svg(figure)


def whole_intervals(sample, is_of_a_loss):
    """Seconds of each number, and the numbers: of whole seconds where one loss is looked at, else not too many. What is left
    at the end, shorter than an interval, would look like a drop."""
    interval = sample["interval"]
    series = sample["series"][:int(sample["seconds"] / interval + 1e-6)]
    if interval < 1 if is_of_a_loss else len(series) > 300:
        series = [sum(series[at:at + 10]) for at in range(0, len(series) - 9, 10)]
        interval *= 10
    return interval, series


def over_time(figures, block, application, data):
    """Throughput second by second on lines that lose packets: the drop after a loss and the climb back."""
    matrix = figures.scenario.matrices[block]
    for place in matrix.places:
        if not place.loss and not place.lose_after_s:
            continue
        figure, axes = new(f"{title_of(application, data)}, {place}: over time", "seconds", "Mbit/s", (6.4, 2.6))
        drawn, lost = 0, []
        for name in matrix.features:
            found = figures.find(place, application, data, name)
            if not found or not found.is_there:
                continue
            sample = found.good[0]
            interval, series = whole_intervals(sample, place.lose_after_s)
            if len(series) < 4:
                continue
            drawn += 1
            lost.append(sample["repair"]["after_s"] if sample.get("repair") else place.lose_after_s)
            colour, marker, line = STYLES[name]
            axes.plot([(number + 0.5) * interval for number in range(len(series))],
                      [8 * count / interval / 1e6 for count in series], color=colour, linestyle=line, linewidth=1.1,
                      marker=marker, markersize=3, markevery=max(1, len(series) // 12), label=name)
        if not drawn:
            pyplot.close(figure)
            continue
        for when in lost if place.lose_after_s else []:
            axes.axvline(when, color="#999999", linewidth=0.8, linestyle=(0, (6, 3)))
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        yield svg(figure)


def repairs(figures, block, application, data):
    """Sequence and acknowledgement numbers around the one packet that was lost, as the client's card saw them."""
    matrix = figures.scenario.matrices[block]
    for place, name in itertools.product(matrix.places, matrix.features):
        found = figures.find(place, application, data, name) if place.lose_after_s else None
        if not found or not found.is_there or not found.good[0].get("repair"):
            continue
        repair = found.good[0]["repair"]
        figure, axes = new(f"{title_of(application, data)}, {place.line_name()}, {place.round_trip_ms:g} ms, {name}: one packet lost",
                           "ms after the packet was lost on the line", "KB", (6.4, 3.4))
        for behind, colour, marker, size, label in ((False, "#0072B2", ".", 2, "segments"),
                                                    (True, "#D55E00", "X", 7, "after a later one: retransmission")):
            points = [(when, offset / KB) for when, offset, late in repair["segments"] if late == behind]
            if points:
                axes.plot(*zip(*points), color=colour, marker=marker, markersize=size, linestyle="", label=label,
                          zorder=3 if behind else 2)
        if repair["acknowledged"]:
            axes.step(*zip(*((when, offset / KB) for when, offset in repair["acknowledged"])), where="post", color="#000000",
                      linewidth=0.9, label="acknowledged")
        axes.axvline(0, color="#999999", linewidth=0.8, linestyle=(0, (6, 3)))
        axes.legend(fontsize=8, frameon=False, loc="lower right")
        yield svg(figure)


def passes(figures, block, application, data):
    """Bytes on the line for each pass: bars for each set of features."""
    matrix = figures.scenario.matrices[block]
    for place in matrix.places:
        figure, axes = new(f"{title_of(application)}, {data}, {place}", "", "MB on the line", (6.4, 3.2))
        axes.set_yscale("log")
        width, drawn = 0.8 / len(matrix.features), 0
        hatches = itertools.cycle(("", "//", "..", "xx", "\\\\"))
        for number, name in enumerate(matrix.features):
            found = [figures.find(place, application, data, name, turn) for turn in matrix.passes]
            bars = [(index, each.wan_bytes / 1e6) for index, each in enumerate(found) if each and each.is_there]
            hatch = next(hatches)
            if bars:
                drawn += 1
                axes.bar([index + (number - (len(matrix.features) - 1) / 2) * width for index, _ in bars],
                         [value for _, value in bars], width=width * 0.92, color=STYLES[name][0], hatch=hatch,
                         edgecolor="white", label=name)
        if not drawn:
            pyplot.close(figure)
            continue
        log_axis(axes.yaxis, heights(axes))
        axes.set_xticks(range(len(matrix.passes)), matrix.passes)
        axes.grid(False, axis="x")
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        yield svg(figure)
