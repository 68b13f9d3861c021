# SPDX-License-Identifier: Apache-2.0
"""From a capture to a measurement: when the measured work began and ended, how its bytes came in over time, and whether
the capture may be believed. How the capture was made is in capture.py."""

import dataclasses

import smb_frames
from conversation import Capture
from pcap import BadCapture


class Unusable(Exception):
    """The capture does not hold what was to be measured; the sentence says what is missing."""


@dataclasses.dataclass
class Timing:
    seconds: float
    bytes_down: int  # payload of the measured connections, whole capture
    bytes_up: int
    connections: int
    bytes_seen: int  # that carried the measured bytes, those that came twice counted twice
    repeated: int  # of them, those that came again or late
    foreign_share: float  # of the captured bytes: neither measured connections nor marks
    marks_ms: tuple  # the pings before and after
    interval: float  # seconds of one number in series
    series: list  # payload bytes of the measured direction, from the start on
    repair: dict | None = None  # around a moment that was asked for: see _around

    @property
    def repeated_share(self):
        return self.repeated / self.bytes_seen if self.bytes_seen else 0.0


# What is timed, by the kind of work. Each gives start and end in ns and the direction that carries the data.


def _down(conversations):
    """From the client's first request to the acknowledgement of the server's last byte."""
    starts, ends = [], []
    for each in conversations:
        if each.up.first_ns is None or not each.down.end:
            raise Unusable("a connection without request or answer")
        starts.append(each.up.first_ns)
        ends.append(_acknowledged(each, each.down.end))
    return min(starts), max(ends), "down"


def _up(conversations):
    """From the client's first byte to the server's last word, which it says when it has all."""
    if any(each.up.first_ns is None or each.down.last_ns is None for each in conversations):
        raise Unusable("a connection without bytes or answer")
    return min(each.up.first_ns for each in conversations), max(each.down.last_ns for each in conversations), "up"


def _acknowledged(conversation, offset):
    time_ns = conversation.down.acknowledged_at(offset)
    if time_ns is None:
        raise Unusable("the last segment was never acknowledged")
    return time_ns


def _smb(kind):
    """The requests of one kind with their conversation, and all of them."""

    def find(conversations):
        for each in conversations:
            asked = [command for command in each.up.reader.commands if command.kind == kind]
            if asked:
                return each, asked
        raise Unusable(f"no {kind} request")

    return find


def _smb_read(conversations):
    """From the request for the block at offset 0 to the acknowledgement of the last segment of the last block."""
    conversation, asked = _smb(smb_frames.READ)(conversations)
    starts = [command.first_ns for command in asked if command.offset == 0]
    blocks = [command.stream_end for command in conversation.down.reader.commands
              if command.kind == smb_frames.READ and command.count]
    if not starts or not blocks:
        raise Unusable("no block at offset 0" if not starts else "no answered read")
    return starts[0], _acknowledged(conversation, max(blocks)), "down"


def _smb_write(conversations):
    """From the block at offset 0 to the answer to CLOSE, which promises all of it."""
    conversation, asked = _smb(smb_frames.WRITE)(conversations)
    starts = [command.first_ns for command in asked if command.offset == 0]
    closed = [command.last_ns for command in conversation.down.reader.commands
              if command.kind == smb_frames.CLOSE and command.last_ns > asked[-1].last_ns]
    if not starts or not closed:
        raise Unusable("no block at offset 0" if not starts else "no answer to CLOSE")
    return starts[0], closed[0], "up"


def _smb_all(conversations):
    """From the first request after the login to the last answer that is none of a logoff."""
    starts, ends, down = [], [], 0
    for each in conversations:
        wanted = [[command for command in stream.reader.commands if command.kind != smb_frames.LOGIN]
                  for stream in (each.up, each.down)]
        if all(wanted):
            starts.append(wanted[0][0].first_ns)
            ends.append(wanted[1][-1].last_ns)
            down += each.down.end - each.up.end
    if not starts:
        raise Unusable("no request on files")
    return min(starts), max(ends), "down" if down >= 0 else "up"


def _short_transactions(conversations):
    """As an upload of many, and with the set-up of the first connection: each transaction has its own."""
    _, end, way = _up(conversations)
    return min(each.opened_ns for each in conversations), end, way


KINDS = {"transactions": _up, "short transactions": _short_transactions, "down": _down, "up": _up, "smb read": _smb_read, "smb write": _smb_write, "smb all": _smb_all}


def read(path, ports, kind, around_ns=None):
    """The measurement in a capture of the work that was done with these ports; and what was sent around a moment."""
    is_smb = kind.startswith("smb")
    try:
        capture = Capture(path, ports, (lambda: (smb_frames.Frames(), smb_frames.Frames())) if is_smb else
                          (lambda: (None, None)))
    except (BadCapture, smb_frames.Encrypted) as error:
        raise Unusable(str(error)) from None
    # A connection without payload only checked whether the port is open.
    conversations = [each for each in capture.conversations.values() if each.up.segments or each.down.segments]
    if not conversations:
        raise Unusable("no connection to the server's port")
    start, end, way = KINDS[kind](conversations)
    streams = [getattr(each, way) for each in conversations]
    interval, series = _series(streams, start, end)
    return Timing(seconds=(end - start) / 1e9, bytes_down=sum(each.down.end for each in conversations),
                  bytes_up=sum(each.up.end for each in conversations), connections=len(conversations),
                  bytes_seen=sum(sum(count for _, count in stream.arrivals) + stream.repeated for stream in streams),
                  repeated=sum(stream.repeated for stream in streams), foreign_share=capture.foreign_share,
                  marks_ms=_marks(capture, start, end), interval=interval, series=series,
                  repair=_around(streams[0], start, around_ns, max(_marks(capture, start, end))) if around_ns else None)


def _around(stream, start, moment, round_trip_ms):
    """Sequence and acknowledgement numbers from a round trip before the moment to five after it, in ms and bytes from the
    moment on: segments as (when, first byte, whether it was behind the furthest one), acknowledgements as (when, up to)."""
    first, last = moment - 1e6 * round_trip_ms, moment + 5e6 * (round_trip_ms + 10)
    base = next((offset for when, offset, _, _ in stream.seen if when >= first), 0)
    segments = [(round((when - moment) / 1e6, 3), offset - base, behind) for when, offset, _, behind in stream.seen
                if first <= when <= last]
    upto = [(round((when - moment) / 1e6, 3), offset - base) for when, offset in stream.acknowledgements
            if first <= when <= last]
    return {"after_s": round((moment - start) / 1e9, 3), "segments": _thinned(segments, lambda each: each[2]),
            "acknowledged": _thinned(upto, lambda _: False)}


def _thinned(points, keep, most=1500):
    """So many points as a plot can show; what is to be kept is kept."""
    step = max(1, len(points) // most)
    return [point for number, point in enumerate(points) if number % step == 0 or keep(point)]


def _marks(capture, start, end):
    before = [echo.milliseconds for echo in capture.echoes if echo.answered_ns <= start]
    after = [echo.milliseconds for echo in capture.echoes if echo.asked_ns >= end]
    if not before or not after:
        raise Unusable("no ping " + ("before" if not before else "after") + " the transfer: a mark is missing")
    return round(before[-1], 3), round(after[0], 3)


def _series(streams, start, end):
    interval = 1.0 if end - start > 30e9 else 0.1
    series = [0] * (int((end - start) / 1e9 / interval) + 1)
    for stream in streams:
        for time_ns, count in stream.arrivals:
            if start <= time_ns <= end:
                series[int((time_ns - start) / 1e9 / interval)] += count
    return interval, series


def payload(path, ports):
    """Bytes that the connections with these ports carried, both ways; of a transfer that was cut off."""
    try:
        capture = Capture(path, ports)
    except BadCapture:
        return 0
    return sum(each.up.end + each.down.end for each in capture.conversations.values())
