# SPDX-License-Identifier: Apache-2.0
"""The reader of capture files, and the connections it finds in them."""

import pathlib
import tempfile
import unittest

import made_capture as made
import pcap
from conversation import Capture


class Collected:
    def __init__(self):
        self.data = b""

    def feed(self, _, data):
        self.data += data


class Files(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = pathlib.Path(folder) / "capture.pcap"

    def capture(self, frames, **options):
        return Capture(made.write(self.path, frames, **options), [made.PORT], lambda: (Collected(), Collected()))

    def talk(self):
        frames = []
        talk = made.Talk(frames, first=0xFFFFFFF0).open(1.0)  # the numbers wrap after a few bytes
        talk.say(1.5, "up", b"question")
        talk.say(2.0, "down", b"a long answer, " * 10)
        talk.acknowledge(2.25, "up")
        return frames, talk

    def test_packets_are_read_in_either_byte_order_and_unit_of_time(self):
        frames, _ = self.talk()
        for order in "<>":
            for nanoseconds in (False, True):
                with self.subTest(order=order, nanoseconds=nanoseconds):
                    found = list(pcap.packets(made.write(self.path, frames, order, nanoseconds)))
                    self.assertEqual([packet.time_ns for packet in found], [1e9, 1e9, 1.5e9, 2e9, 2.25e9])
                    segment = pcap.segment(found[2])
                    self.assertEqual((segment.source, segment.target), ((made.CLIENT, 40000), (made.SERVER, made.PORT)))
                    self.assertEqual(bytes(segment.payload), b"question")

    def test_ipv6_and_vlan_tags_are_read(self):
        frame = made.tcp("fd10:1::2", "fd10:2::2", (1, 2), 5, 6, made.ACK, b"six")
        tagged = frame[:12] + b"\x81\x00\x00\x07" + frame[12:]
        for each in (frame, tagged):
            (packet,) = pcap.packets(made.write(self.path, [(1, each)]))
            self.assertEqual((packet.source, packet.target), ("fd10:1::2", "fd10:2::2"))
            self.assertEqual(bytes(pcap.segment(packet).payload), b"six")

    def test_padding_of_short_frames_is_not_payload(self):
        (packet,) = pcap.packets(made.write(self.path, [(1, made.tcp(made.CLIENT, made.SERVER, (1, 2), 5, 6, made.ACK)
                                                         + bytes(6))]))
        self.assertEqual(pcap.segment(packet).length, 0)

    def test_a_last_packet_that_was_cut_off_is_left_out(self):
        frames, _ = self.talk()
        for cut in (1, 10, 60):
            self.assertEqual(len(list(pcap.packets(made.write(self.path, frames, cut=cut)))), 4)

    def test_what_is_no_capture_says_so(self):
        for content, words in ((b"", "empty"), (b"short", "too short"), (b"x" * 100, "not a pcap file"),
                               (made.write(self.path, []).read_bytes()[:20] + b"\x71\0\0\0", "not captured on Ethernet")):
            self.path.write_bytes(content)
            with self.assertRaisesRegex(pcap.BadCapture, words):
                list(pcap.packets(self.path))

    def test_any_bytes_at_all_are_read_without_a_crash(self):
        import random
        dice = random.Random(1)
        frames, _ = self.talk()
        data = bytearray(made.write(self.path, frames).read_bytes())
        for _ in range(300):
            changed = bytearray(data)
            for _ in range(dice.randint(1, 8)):
                changed[dice.randrange(24, len(changed))] = dice.randrange(256)
            self.path.write_bytes(changed)
            Capture(self.path, [made.PORT])

    def test_both_directions_are_put_together_over_the_wrap_of_the_numbers(self):
        frames, _ = self.talk()
        (conversation,) = self.capture(frames).conversations.values()
        self.assertEqual(conversation.client, (made.CLIENT, 40000))
        self.assertEqual(conversation.up.reader.data, b"question")
        self.assertEqual(conversation.down.reader.data, b"a long answer, " * 10)
        self.assertEqual(conversation.down.acknowledged_at(150), 2.25e9)
        self.assertIsNone(conversation.down.acknowledged_at(151))

    def test_what_comes_again_or_late_is_counted_and_read_once(self):
        frames, talk = self.talk()
        talk.again(2.5, "down", b"answer, ")
        late = talk.late("down", b"first ")
        talk.say(3.0, "down", b"second")
        late(3.5)
        (conversation,) = self.capture(frames).conversations.values()
        self.assertEqual(conversation.down.reader.data, b"a long answer, " * 10 + b"first second")
        self.assertEqual(conversation.down.repeated, len(b"answer, ") + len(b"first "))
        self.assertEqual(sum(count for _, count in conversation.down.arrivals), 150 + 12)

    def test_other_traffic_is_foreign_and_pings_are_not(self):
        frames, _ = self.talk()
        ours = sum(len(frame) for _, frame in frames)
        made.marks(frames, 0.5, 4.0)
        self.assertEqual(self.capture(frames).foreign_share, 0)
        other = made.tcp(made.CLIENT, made.SERVER, (5, 6), 5, 6, made.ACK, bytes(100))
        capture = self.capture([*frames, (5, other)])
        self.assertEqual(capture.foreign_bytes, len(other))
        self.assertGreater(capture.bytes, ours)
        self.assertEqual([round(each.milliseconds) for each in capture.echoes], [30, 30])


if __name__ == "__main__":
    unittest.main()
