# SPDX-License-Identifier: Apache-2.0
"""Numbers and results in words, the same on the terminal and on the page. Nothing is measured here."""

WAYS = ("bare", "pair")
NO_GAIN = 1.15  # a smaller ratio is not called a gain


def size_text(size):
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= divisor:
            return f"{size / divisor:.3g} {unit}"
    return f"{size} B"


def rate_text(bits):
    for unit, divisor in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if bits >= divisor:
            return f"{bits / divisor:.3g} {unit}" if bits < 999.5 * divisor else f"{bits / divisor:.0f} {unit}"
    return f"{bits / 1e3:.3g} kbit/s" if bits >= 1e3 else "0 kbit/s"


def line_text(rate, round_trip, loss):
    lost = f"{100 * loss:g} % loss each way" if loss else "no loss"
    return f"{rate_text(rate)}, {1000 * round_trip:g} ms round trip, {lost}"


def mb_text(size):
    return f"{size / 1e6:.2f}" if size < 99.995e6 else f"{size / 1e6:.1f}"


def speed_text(count_per_second, unit):
    """Of what reaches the client."""
    return f"{count_per_second:.0f}/s" if unit == "transactions" else rate_text(8 * count_per_second)


def seconds_text(seconds):
    return f"{seconds:.2f}" if seconds < 9.995 else f"{seconds:.1f}"


def time_text(result):
    if result["failure"]:
        return "failed"
    return f"> {seconds_text(result['ran_seconds'])}" if result["cut"] else seconds_text(result["seconds"])


def wan_bytes(result):
    return result["wan_to_server"] + result["wan_to_client"]


def ratio(row):
    """How many times as fast the pair was; None where one of both did not finish."""
    bare, pair = row["bare"]["seconds"], row["pair"]["seconds"]
    return bare / pair if bare and pair else None


def ratio_text(row):
    if found := ratio(row):
        return f"{found:.2f}" if found < 9.995 else f"{found:.0f}"
    bare, pair = row["bare"], row["pair"]
    if bare["cut"] and pair["seconds"]:
        return f"> {bare['ran_seconds'] / pair['seconds']:.1f}"
    return "-"


def is_right(row):
    return all(row[way]["right"] for way in WAYS)


def bytes_text(row):
    """What the comparison of the bytes found, of both."""
    if not is_right(row):
        return "WRONG"
    if any(row[way]["failure"] for way in WAYS):
        return "failed"
    return "cut, equal so far" if any(row[way]["cut"] for way in WAYS) else "equal"


def mood(row):
    """The colour of a result: good, bad, or None where nothing was gained."""
    if not is_right(row) or any(row[way]["failure"] for way in WAYS):
        return "bad"
    found = ratio(row)
    return "good" if row["pair"]["seconds"] and (found is None or found >= NO_GAIN) else None


def verdict(row):
    """One sentence on what was measured."""
    for way, words in (("bare", "on the bare line"), ("pair", "through the pair")):
        if not row[way]["right"]:
            return f"WRONG BYTES {words}"
        if row[way]["failure"]:
            return f"failed {words}: {row[way]['failure']}"
    found = ratio(row)
    if found is None:
        if row["pair"]["cut"]:
            return "cut off at the time limit; every byte until then equal"
        return f"more than {ratio_text(row).lstrip('> ')} times as fast; every byte equal"
    if found >= NO_GAIN:
        speed = f"{ratio_text(row)} times as fast"
    elif found > 1 / 1.05:
        speed = f"no gain in time ({found:.2f} times as fast)"
    else:
        speed = f"slower: {1 / found:.2f} times as long"
    saved = 1 - wan_bytes(row["pair"]) / max(1, wan_bytes(row["bare"]))
    if saved >= 0.005:
        speed += f", {100 * saved:.{1 if saved > 0.99 else 0}f} % fewer WAN bytes"
    elif saved <= -0.005:
        speed += f", {-100 * saved:.0f} % more WAN bytes"
    return f"{speed}; every byte equal"
