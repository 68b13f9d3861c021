# SPDX-License-Identifier: Apache-2.0
"""What a report says of packet sizes: the tables, and the three plots of the source (throughput over packet size, throughput
over elapsed time, percent received over packet size). How a plot looks is in plots.py."""

import dataclasses
import statistics

import plots
from packet_tests import KINDS
from tables import MISSING, Table, number
from transports import NAMES

UDP_STYLES = {"udp": ("#009E73", "P", "--"), "udp+12": ("#D55E00", "X", "-.")}
METHOD = (
    "Packet sizes: longhaul-ttcp sends the same number of bytes in packets (over TCP: writes) of each size. Its receiver counts the bytes and "
    "measures the time: TCP from the accept to the end of the stream, UDP from the start mark to the last packet. Packets are neither "
    "captured nor compared. UDP is sent at 99 % of the rate that the line can carry in packets of that size, including headers and "
    "fragments. UDP+12 adds 12 bytes to each packet, which count as header: together as long as TCP's. The pair carries only TCP, here only "
    "with its carriers: no compression, no dictionaries, no modules.",)


@dataclasses.dataclass(frozen=True)
class Series:
    """What one line of a plot, or one column of a table, is of."""

    kind: str
    features: str

    @property
    def name(self):
        return NAMES[self.features] if self.kind == "tcp" else KINDS[self.kind]

    @property
    def style(self):
        return plots.STYLES[self.features] if self.kind == "tcp" else UDP_STYLES[self.kind]


def _found(figures, matrix, place):
    """By series and size: the Figures of a place, those without a result among them."""
    found = {}
    for kind in KINDS:
        applications = sorted((each for each in matrix.applications if each.packets.kind == kind), key=lambda each: each.packets.bytes)
        for features in matrix.features:
            for application in applications:
                if figure := figures.find(place, application, "random", features):
                    found.setdefault(Series(kind, features), {})[application.packets.bytes] = figure
    return found


def received(figure):
    return statistics.median(sample["packets"]["percent_received"] for sample in figure.good)


def _megabits(figure):
    if figure is None:
        return MISSING
    if figure.failures or figure.cut or not figure.is_there:
        return "FAILED" if figure.failures else f"cut after {figure.cut[0]['cut']:g} s" if figure.cut else "not measured"
    return number(8e-6 * figure.speed) + (f" ± {100 * figure.spread:.1f} %" if len(figure.good) > 1 else "")


def tables(figures, block):
    matrix = figures.scenario.matrices[block]
    for place in matrix.places:
        found = _found(figures, matrix, place)
        sizes = sorted({size for series in found.values() for size in series})
        yield Table(f"Throughput, Mbit/s: {place}", ["packet, bytes", *(series.name for series in found)],
                    [[f"{size:,}", *(_megabits(by_size.get(size)) for by_size in found.values())] for size in sizes],
                    "Data as counted by the receiver." +
                    (" Median ± half the range between the slowest and the fastest." if figures.scenario.repetitions > 1 else ""))
        yield Table(f"Received share of the bytes sent, %: {place}", ["packet, bytes", *(series.name for series in found)],
                    [[f"{size:,}", *(f"{received(figure):.2f}" if (figure := by_size.get(size)) and figure.is_there else MISSING
                                     for by_size in found.values())] for size in sizes])


def drawn(figures, block):
    matrix = figures.scenario.matrices[block]
    size_axis, speed_axis = "packet, bytes of data", "Mbit/s received"
    for place in matrix.places:
        found = {series: [(size, figure) for size, figure in by_size.items() if figure.is_there]
                 for series, by_size in _found(figures, matrix, place).items()}
        found = {series: points for series, points in found.items() if points}
        if found:
            yield _plot(f"Throughput over packet size: {place}", size_axis, speed_axis, found, lambda size, _: size,
                        lambda figure: 8e-6 * figure.speed)
            yield _plot(f"Throughput over elapsed time: {place}", "elapsed, seconds", speed_axis, found,
                        lambda _, figure: figure.seconds, lambda figure: 8e-6 * figure.speed)
            yield _plot(f"Received over packet size: {place}", size_axis, "% of the bytes sent", found, lambda size, _: size, received)


def _plot(title, x_label, y_label, found, x, y):
    figure, axes = plots.new(title, x_label, y_label)
    for series, points in found.items():
        colour, marker, line = series.style
        axes.plot([x(size, each) for size, each in points], [y(each) for _, each in points], color=colour, marker=marker,
                  linestyle=line, markersize=5, linewidth=1.4, label=series.name)
    axes.set_xscale("log")
    if y is received:
        axes.set_ylim(-3, 105)
    else:
        axes.set_yscale("log")
        plots.log_axis(axes.yaxis, plots.heights(axes))
    if "size" in title:
        axes.set_xticks(sorted({size for points in found.values() for size, _ in points}))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xticks([], minor=True)
        axes.tick_params(axis="x", labelrotation=30, labelsize=8)
    else:
        plots.log_axis(axes.xaxis, [x(size, each) for points in found.values() for size, each in points])
        for series, points in found.items():  # the line follows the packet size: say which end is which
            for size, each in dict.fromkeys((points[0], points[-1])):
                axes.annotate(f"{size:g} B", (each.seconds, y(each)), textcoords="offset points", xytext=(4, 4), fontsize=7,
                              color=series.style[0])
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plots.svg(figure)
