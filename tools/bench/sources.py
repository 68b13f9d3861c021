# SPDX-License-Identifier: Apache-2.0
"""The published figures that a report shows beside ours: sources/*.csv, each with its origin at its top. What the source
calls baseline is the bare line here."""

import csv
import functools
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "sources"
_RATES = {"1.544": "1.544mbit", "51.84": "51.84mbit"}
LETTERS = {"bare": "B", "T": "T", "A": "A", "F": "B with FEC", "A+F": "A with FEC"}
ORIGIN = ("van Helmond & Smeets, “Benefits and tradeoffs of application-specific WAN acceleration in different bandwidth, "
          "latency and loss scenarios”, University of Amsterdam, 2006: a pair of Juniper WX-250")
NOT_FINISHED = "not finished"
OVER_DELAY = "transports"
OVER_DELAY_ORIGIN = ("“Optimizing the ASC WAN: Evaluating Network Performance Tools for Comparing Transport Protocols”, Sandia "
                     "National Laboratories, 2007: Linux's SCTP of then and TCP (Reno), 1 Gbit/s, MTU 9000, runs of 30 s")
OVER_DELAY_RATE = 1e9
LONG_PATHS = "long paths"
LONG_PATHS_ORIGIN = ("Kitatsuji, Kubota, Yamazaki, Konishi, Esaki, “The performance and evaluation of TCP transmission under the "
                     "broadband and long distance environment”, KDDI R&D Laboratories and University of Tokyo, 2002, table 2: one "
                     "TCP connection, window scale, SACK and timestamps on; mean of 8 of 10 one-minute runs of iperf")


def _rows(name):
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@functools.cache
def _tables():
    found = {}
    for row in _rows("wx_throughput.csv"):
        key = f"throughput {row['app']}", _RATES[row["link_mbit"]], float(row["rtt_ms"]), 0.0
        found[key] = {ours: _value(row[LETTERS[ours]]) for ours in ("bare", "T", "A")}
    for row in _rows("wx_loss.csv"):
        key = f"loss {row['app']} {row['acceleration']}", "51.84mbit", float(row["rtt_ms"]), float(row["loss"])
        without, with_fec = ("bare", "F") if row["acceleration"] == "none" else ("A", "A+F")
        found[key] = {without: _value(row["no_fec"]), with_fec: _value(row["fec"])}
    return found


@functools.cache
def over_delay():
    """TCP and SCTP over delay: for each of the source's tools, rows of round trip in ms, and Mbit/s and processor in % for
    each transport; None where it gives none."""
    found = {}
    for row in _rows("sctp_tcp_rtt.csv"):
        found.setdefault(row["tool"], []).append(
            {name: float(text) if text else None for name, text in row.items() if name != "tool"})
    return found


def long_paths():
    """TCP over real paths of 2002: path, round trip in ms, Mbit/s of its bottleneck and of one connection each way (None: not
    measured)."""
    return [{name: text if name in ("test", "path") else float(text) if text else None for name, text in row.items()}
            for row in _rows("long_fat_tcp.csv")]


def _value(text):
    return float(text) if text else NOT_FINISHED


def names():
    return sorted({key[0] for key in _tables()} | {OVER_DELAY, LONG_PATHS})


def figures(source, place):
    """KB/s by our name of the features; empty where the source has nothing for the place."""
    return _tables().get((source, place.rate, place.round_trip_ms, place.loss), {})


def letter(features):
    """What the source calls it."""
    return LETTERS.get(features, features)


def calibration_note():
    return "KB are 1,024 bytes; the source does not say which it means, and its own arithmetic suggests the same."
