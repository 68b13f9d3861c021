# SPDX-License-Identifier: Apache-2.0
"""The plots of the demo's page, as SVG without a library: what has arrived over time, what the line carried, and bars.
Colours are classes that page.py gives a value for light and dark."""

import math
from html import escape

import wording
from wording import WAYS

WIDTH, HEIGHT = 440, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 30, 34
LINE_PARTS = 80  # of the time, over which the line's rate is averaged


def time_bars(row):
    """Two bars for a cell of the table; the slower one is full."""
    longest = max(row[way]["ran_seconds"] for way in WAYS)
    bars = "".join(f'<rect class="{way}" x="0" y="{2 + 8 * number}" height="6" rx="1" '
                   f'width="{max(0.5, 100 * row[way]["ran_seconds"] / longest):.2f}"/>' for number, way in enumerate(WAYS))
    words = ", ".join(f"{way} {wording.time_text(row[way])} s" for way in WAYS)
    return f'<svg viewBox="0 0 100 18" preserveAspectRatio="none" role="img" aria-label="{escape(words)}">{bars}</svg>'


def delivered(row):
    """What the client had received, over time."""
    is_bytes = row["unit"] == "bytes"
    scale = 1e6 if is_bytes else 1
    lines = {way: [(sample[0], sample[1] / scale) for sample in row[way]["series"]] for way in WAYS}
    return _plot("Received by the client, " + ("MB" if is_bytes else row["unit"]), lines, row["size"] / scale, ends=True)


def line_rate(row, rate):
    """What left the emulated line, over time, beside what it can carry in one direction."""
    whole = max(row[way]["ran_seconds"] for way in WAYS)
    part = max(whole / LINE_PARTS, 0.2)
    lines = {way: _steps(row[way]["series"], part) for way in WAYS}
    most = max([rate / 1e6, *(value for points in lines.values() for _, value in points)])
    return _plot("On the line, both directions, Mbit/s (dashed: its rate)", lines, most, limit=rate / 1e6)


def _steps(series, part):
    """Mbit/s by samples at least `part` seconds apart, each value at both ends of its time."""
    points, last = [], series[0]
    for sample in series[1:]:
        span = sample[0] - last[0]
        if span >= part or (sample is series[-1] and span > 0):
            value = 8 * (sample[2] - last[2]) / max(span, part) / 1e6
            points += [(last[0], value), (sample[0], value)]
            last = sample
    return [*points, (series[-1][0], 0.0)]


def _plot(title, lines, highest, limit=None, ends=False):
    longest = max(points[-1][0] for points in lines.values()) or 1.0
    x_ticks, y_ticks = ticks(longest), ticks(highest)
    most_x, most_y = max(longest, x_ticks[-1]), max(highest, y_ticks[-1]) * 1.04

    def x(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * value / most_x

    def y(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most_y

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
             f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>']
    for value in y_ticks:
        parts += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>',
                  f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>']
    for value in x_ticks:
        words = f"{value:g} s" if value == x_ticks[-1] else f"{value:g}"
        parts.append(f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{words}</text>')
    if limit:
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(limit):.1f}" y2="{y(limit):.1f}"/>')
    for way, points in lines.items():
        drawn = " ".join(f"{'M' if number == 0 else 'L'}{x(at):.1f} {y(value):.1f}" for number, (at, value) in enumerate(points))
        parts.append(f'<path class="{way}" d="{drawn}"/>')
        if ends:
            parts.append(f'<circle class="{way}" cx="{x(points[-1][0]):.1f}" cy="{y(points[-1][1]):.1f}" r="3.5"/>')
    return "".join([*parts, "</svg>"])


def ticks(highest, wanted=4):
    """Round numbers from 0 to at most `highest`."""
    if highest <= 0:
        return [0.0]
    raw = highest / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    return [round(number * step, 10) for number in range(int(highest / step + 1e-9) + 1)]
