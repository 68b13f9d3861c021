# SPDX-License-Identifier: Apache-2.0
"""The plots of transports over delay: throughput and processor over the round trip, the source's curves beside ours. How a
plot looks is in plots.py."""

import statistics

import plots
import transports
from transports import COST, CPU, SPEED

SOURCE_STYLES = {"sctp": ("#CC79A7", "s"), "tcp": ("#000000", "o")}


def over_delay(figures, block):
    matrix = figures.scenario.matrices[block]
    for places in transports.lines(matrix):
        if len(places) > 1:
            for measure in (SPEED, CPU, COST):
                yield _plot(figures, matrix, places, measure)


def _plot(figures, matrix, places, measure):
    line = places[0].bits_per_second / 1e6
    # The source's line had another rate: what fills a line is compared as a share of it.
    ours_in, theirs_in = (100 / line, 100 / (transports.sources.OVER_DELAY_RATE / 1e6)) if measure is SPEED else (1, 1)
    figure, axes = plots.new(f"{measure.title}: {transports.line_title(places)}", "round trip, ms",
                             "% of the line's rate" if measure is SPEED else measure.unit)
    if measure is COST:
        axes.set_yscale("log")
    drawn = 0
    for name in matrix.features:
        found = [(place.round_trip_ms, figures.find(place, matrix.applications[0], "random", name)) for place in places]
        found = [(delay, [value * ours_in for value in measure.ours(each)]) for delay, each in found
                 if each and each.is_there and measure.ours(each)]
        if not found:
            continue
        drawn += 1
        colour, marker, style = plots.STYLES[name]
        middle = [statistics.fmean(values) for _, values in found]
        axes.errorbar([delay for delay, _ in found], middle, color=colour, marker=marker, linestyle=style, markersize=4,
                      linewidth=1.4, capsize=2, label=transports.NAMES[name],
                      yerr=([mean - min(values) for mean, (_, values) in zip(middle, found)],
                            [max(values) - mean for mean, (_, values) in zip(middle, found)]))
    if not drawn:
        plots.pyplot.close(figure)
        return None
    theirs = transports.rows_of_source(matrix)
    for which, name in transports.SOURCE_COLUMNS if theirs else []:
        colour, marker = SOURCE_STYLES[which]
        axes.plot([row["rtt_ms"] for row in theirs], [theirs_in * measure.theirs(row, which) for row in theirs], color=colour,
                  marker=marker, markerfacecolor="white", linestyle=":", markersize=4, linewidth=1.0, label=name)
    if measure is COST:
        plots.log_axis(axes.yaxis, plots.heights(axes))
    else:
        axes.set_ylim(0, 105)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plots.svg(figure)
