# SPDX-License-Identifier: Apache-2.0
"""When the measured work began and ended, read from captures made by hand and from a real one."""

import pathlib
import tempfile
import unittest

import made_capture as made
import smb_frames
import timing

CAPTURES = pathlib.Path(__file__).resolve().parent / "captures"


class Made(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "capture.pcap"
        self.frames = []
        self.talk = made.Talk(self.frames)

    def read(self, kind, before=0.5, after=9.0):
        made.marks(self.frames, before, after)
        return timing.read(made.write(self.path, self.frames, nanoseconds=True), [made.PORT], kind)

    def test_a_download_lasts_from_the_first_request_to_the_acknowledgement_of_the_last_byte(self):
        self.talk.open(1.0)
        self.talk.say(2.0, "up", b"give me")
        self.talk.say(2.5, "down", bytes(1000))
        self.talk.say(3.0, "down", bytes(1000))
        self.talk.acknowledge(3.25, "up")
        self.talk.say(3.5, "down", bytes(1000))
        self.talk.acknowledge(4.0, "up")
        found = self.read("down")
        self.assertAlmostEqual(found.seconds, 2.0)
        self.assertEqual((found.bytes_down, found.bytes_up, found.connections), (3000, 7, 1))
        self.assertEqual(found.marks_ms, (30.0, 30.0))
        self.assertEqual(sum(found.series), 3000)
        self.assertEqual(found.series[5], 1000)  # half a second after the request

    def test_an_upload_lasts_until_the_server_has_said_that_it_has_all(self):
        self.talk.open(1.0)
        self.talk.say(2.0, "up", bytes(1000))
        self.talk.acknowledge(2.1, "down")  # by the nearest end
        self.talk.say(5.0, "down", b"all here")
        self.assertAlmostEqual(self.read("up").seconds, 3.0)

    def test_what_was_sent_around_a_loss_is_kept_with_its_repair(self):
        self.talk.open(1.0)
        self.talk.say(2.0, "up", b"give me")
        for number in range(10):
            self.talk.say(2.1 + number / 100, "down", bytes(1000))
        self.talk.acknowledge(2.2, "up")
        repair = self.talk.late("down", bytes(1000))
        self.talk.say(2.24, "down", bytes(1000))
        repair(2.28)
        self.talk.acknowledge(2.29, "up")
        made.marks(self.frames, 0.5, 9.0)
        path = made.write(self.path, self.frames, nanoseconds=True)
        self.assertIsNone(timing.read(path, [made.PORT], "down").repair)
        found = timing.read(path, [made.PORT], "down", around_ns=2_215_000_000).repair
        self.assertEqual(found["after_s"], 0.215)
        # A ping takes 30 ms: from 2.185 on, which is the tenth segment.
        self.assertEqual(found["segments"], [(-25.0, 0, False), (25.0, 2000, False), (65.0, 1000, True)])
        self.assertEqual(found["acknowledged"], [(-15.0, 1000), (75.0, 3000)])

    def test_transactions_last_from_the_first_request_to_the_last_answer_of_all_pairs(self):
        for number in range(3):
            talk = made.Talk(self.frames, client_port=40000 + number).open(1.0 + number)
            talk.say(1.25 + number, "up", bytes(100))
            talk.say(1.5 + number, "down", b"x")
        self.assertAlmostEqual(self.read("transactions").seconds, 2.25)
        self.frames = [frame for frame in self.frames if frame[0] not in (0.5, 0.53, 9.0, 9.03)]
        found = self.read("short transactions")  # set-up is part of them
        self.assertAlmostEqual(found.seconds, 2.5)
        self.assertEqual((found.bytes_up, found.bytes_down, found.connections), (300, 3, 3))

    def test_datagrams_are_transactions_too_and_their_fragments_belong_to_them(self):
        up, down = (40000, made.PORT), (made.PORT, 40000)
        for time, frame in zip((2.0, 2.1, 2.2), made.udp(made.CLIENT, made.SERVER, up, 4000, 3)):
            self.frames.append((time, frame))
        self.frames += [(3.0, frame) for frame in made.udp(made.SERVER, made.CLIENT, down, 31)]
        found = self.read("transactions")
        self.assertAlmostEqual(found.seconds, 1.0)
        self.assertEqual((found.bytes_up, found.bytes_down, found.connections, found.foreign_share), (4000, 31, 1, 0))
        self.frames += [(4.0, frame) for frame in made.udp(made.CLIENT, made.SERVER, (40000, 53), 4000, 3)]
        self.assertGreater(timing.read(made.write(self.path, sorted(self.frames, key=lambda frame: frame[0])), [made.PORT],
                                       "transactions").foreign_share, 0.4)  # another's, with its fragments

    def test_a_file_read_by_smb_lasts_from_the_block_at_offset_0_to_the_last_blocks_acknowledgement(self):
        for dialect, read, data in (("2", made.smb2_read, made.smb2_data), ("1", made.smb1_read, made.smb1_data)):
            with self.subTest(dialect=dialect):
                self.frames.clear()
                self.talk = made.Talk(self.frames).open(1.0)
                self.talk.say(1.1, "up", made.smb2(1, bytes(24)))  # a login, and its answer
                self.talk.say(1.2, "down", made.smb2(1, bytes(8), True))
                for block in range(3):
                    self.talk.say(2.0 + block, "up", read(block * 65536))
                    answer = data(bytes(3000))
                    self.talk.say(2.4 + block, "down", answer[:1448])
                    self.talk.say(2.5 + block, "down", answer[1448:])
                self.talk.acknowledge(4.75, "up")
                self.talk.say(5.0, "up", made.smb2_close())
                self.talk.say(5.1, "down", made.smb2_close(True))
                self.talk.acknowledge(5.2, "up")
                self.assertAlmostEqual(self.read("smb read").seconds, 2.75)

    def test_an_offset_above_4_gib_is_not_offset_0(self):
        for read in (made.smb1_read, made.smb2_read):
            frames = smb_frames.Frames()
            frames.feed(1, read(1 << 32))
            self.assertEqual([command.offset for command in frames.commands], [1 << 32])

    def test_a_file_written_by_smb_lasts_until_close_is_answered(self):
        self.talk.open(1.0)
        for block in range(2):
            self.talk.say(2.0 + block, "up", made.smb2_write(block * 1000, bytes(1000)))
            self.talk.say(2.1 + block, "down", made.smb2(9, bytes(16), True))
        self.talk.say(4.0, "up", made.smb2_close())
        self.talk.say(6.5, "down", made.smb2_close(True))
        self.assertAlmostEqual(self.read("smb write").seconds, 4.5)

    def test_other_work_on_files_lasts_from_the_first_request_after_the_login_to_the_last_answer(self):
        self.talk.open(1.0)
        self.talk.say(1.1, "up", made.smb2(1, bytes(24)))
        self.talk.say(1.2, "down", made.smb2(1, bytes(8), True))
        self.talk.say(2.0, "up", made.smb2(5, bytes(56)))
        self.talk.say(2.5, "down", made.smb2(5, bytes(88), True))
        self.talk.say(3.0, "up", made.smb2_close())
        self.talk.say(3.5, "down", made.smb2_close(True))
        self.talk.say(4.0, "up", made.smb2(2, bytes(4)))  # logoff
        self.talk.say(4.5, "down", made.smb2(2, bytes(4), True))
        self.assertAlmostEqual(self.read("smb all").seconds, 1.5)

    def test_messages_are_found_however_the_stream_is_cut(self):
        stream = made.smb2_read(0) + made.smb1_read(61440) + made.smb2_data(bytes(5000)) + framed_nothing() + \
            made.smb2_close(True)
        whole = smb_frames.Frames()
        whole.feed(1, stream)
        self.assertEqual([command.kind for command in whole.commands], ["read", "read", "read", "close"])
        for size in (1, 3, 7, 64, 1448):
            frames = smb_frames.Frames()
            for at in range(0, len(stream), size):
                frames.feed(at, stream[at:at + size])
            self.assertEqual([command[:2] + command[4:] for command in frames.commands],
                             [command[:2] + command[4:] for command in whole.commands])

    def test_what_is_missing_is_said(self):
        self.talk.open(1.0)
        self.talk.say(2.0, "up", b"give me")
        self.talk.say(2.5, "down", bytes(1000))
        with self.assertRaisesRegex(timing.Unusable, "never acknowledged"):
            self.read("down", after=2.7)
        self.talk.acknowledge(3.0, "up")
        with self.assertRaisesRegex(timing.Unusable, "no ping after"):
            self.read("down", after=2.7)
        with self.assertRaisesRegex(timing.Unusable, "no read request"):
            self.read("smb read")
        with self.assertRaisesRegex(timing.Unusable, "no connection"):
            timing.read(self.path, [9], "down")
        with self.assertRaisesRegex(timing.Unusable, "encrypted"):
            frames = []
            made.Talk(frames).open(1).say(2, "up", made.framed(b"\xfdSMB" + bytes(60)))
            timing.read(made.write(self.path, frames), [made.PORT], "smb read")


def framed_nothing():
    """A keep-alive of the session service."""
    return b"\x85\0\0\0"


class Real(unittest.TestCase):
    """20,000 bytes over a line of 51.84 Mbit/s and 30 ms, by tcpdump on the client's card."""

    def read(self, name, kind, port):
        return timing.read(CAPTURES / name, [port], kind)

    def test_smb1_and_smb_3_1_1_as_impacket_reads_and_writes(self):
        for name, kind, round_trips in (("smb1-read.pcap", "smb read", 1), ("smb311-read.pcap", "smb read", 1),
                                        ("smb311-write.pcap", "smb write", 2)):
            with self.subTest(name):
                found = self.read(name, kind, 445)
                self.assertGreater(found.seconds, 0.030 * round_trips)
                self.assertLess(found.seconds, 0.030 * round_trips + 0.060)
                self.assertEqual(found.repeated, 0)
                self.assertLess(found.foreign_share, 0.01)
                for mark in found.marks_ms:
                    self.assertGreater(mark, 30)
                    self.assertLess(mark, 60)
                self.assertGreater(max(found.bytes_down, found.bytes_up), 20_000)

    def test_http_as_curl_fetches_it(self):
        found = self.read("http.pcap", "down", 80)
        self.assertGreater(found.seconds, 0.030)
        self.assertGreater(found.bytes_down, 20_000)
        self.assertEqual(found.connections, 1)


if __name__ == "__main__":
    unittest.main()
