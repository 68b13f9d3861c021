# SPDX-License-Identifier: Apache-2.0
"""How well a mean is known: Student's interval, and netperf's rule of when that is well enough. What is repeated is the
runner's."""

import functools
import math
import statistics


def is_enough(values, rule):
    """Whether the interval around the mean lies within the rule's share of it."""
    if len(values) < rule.least:
        return False
    return half_width(values, rule.level) <= rule.within * statistics.fmean(values)


def half_width(values, level=0.95):
    """From the mean to either end of the interval that holds the true one with this certainty; unknown for one value."""
    if len(values) < 2:
        return math.inf
    return quantile(level, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


@functools.cache
def quantile(level, freedom):
    """The t that |T| stays below with this probability, for degrees of freedom that are a whole number."""
    low, high = 0.0, 1.0
    while within(high, freedom) < level:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def within(t, freedom):
    """P(|T| < t): the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom % 2:
        term, total = cosine, 0.0
        for number in range(1, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (number + 1) / (number + 2)
        return 2 / math.pi * (angle + sine * total)
    term, total = 1.0, 0.0
    for number in range(0, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (number + 1) / (number + 2)
    return sine * total
