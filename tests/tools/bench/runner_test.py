# SPDX-License-Identifier: Apache-2.0
"""The runner with measurements that are made up: what is measured, in which order, again, once, or not any more."""

import io
import os
import pathlib
import shutil
import signal
import tempfile
import time
import unittest
from unittest import mock

import applications
import bounded
import capture
import content
import main
import runner as runner_module
import scenario
from progress import Progress, expected_seconds
from results_test import sample
from runner import ATTEMPTS, Runner
from store import Store, StoreFailure
from timing import Unusable

TEXT = """
title = "made up"
repetitions = 2
[[matrix]]
title = "one"
rates = ["OC-1"]
round_trips_ms = [0, 100]
applications = ["http"]
features = ["bare", "A"]
passes = ["cold", "warm"]
"""


class FakeRig:
    made = 0

    def __init__(self, place, *_):
        FakeRig.made += 1
        self.place, self.is_running = place, False
        self.lab = self
        self.scratch = pathlib.Path(tempfile.gettempdir())
        self.features = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def conditions(self):
        return {}

    def switch(self, features):
        self.features = features


class Work:
    def remove(self):
        pass


class Losing(unittest.TestCase):
    def test_one_packet_is_lost_once_when_it_is_time(self):
        lab = mock.Mock()
        with mock.patch("runner.time.monotonic", side_effect=[100.0, 114.9, 115.0]):
            loss = runner_module.OneLoss(lab, 15)
            loss.look()
            lab.lose.assert_not_called()
            loss.look()
            loss.look()
        lab.lose.assert_called_once_with(b_to_a=1)

    def test_when_it_was_lost_is_what_the_line_says_by_the_clock_of_captures(self):
        now, at = time.time_ns(), time.monotonic_ns() - 2_000_000_000
        said = runner_module.OneLoss.at_ns({"a_to_b": {}, "b_to_a": {"lost_on_demand_ns": at}})
        self.assertAlmostEqual((now - said) / 1e9, 2, delta=0.5)
        self.assertIsNone(runner_module.OneLoss.at_ns({"a_to_b": {}, "b_to_a": {}}))

    def test_none_is_lost_where_none_is_asked_for(self):
        lab = mock.Mock()
        runner_module.OneLoss(lab, 0).look()
        lab.lose.assert_not_called()


class MadeUp(Runner):
    """`happens(cell, number)` gives the outcome of the number-th attempt, or raises."""

    happens = staticmethod(lambda cell, number: sample(cell, 0, 1.0))
    number = 0
    asked = None

    def _attempt(self, rig, work, cell, file, again):
        self.number += 1
        self.asked.append((cell.features, cell.turn))
        found = self.happens(cell, self.number)
        return {name: value for name, value in found.items() if name not in ("key", "repetition", "size", "at", "load")}


class Running(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.scenario = scenario.parse(TEXT, "made")
        self.enterContext(mock.patch("runner.applications.make", return_value=Work()))
        self.enterContext(mock.patch("runner.content.make", return_value=b""))
        FakeRig.made = 0

    def run_it(self, happens=None, retry=False):
        header = {"name": "made", "scenario": TEXT, "quick": False, "sessions": []}
        with Store(self.folder / "run").writing(header) as store:
            if retry:
                store.forget_failures()
            runner = MadeUp(self.scenario, store, Progress(600, io.StringIO()), 600)
            runner.make_rig = FakeRig
            runner.asked = []
            if happens:
                runner.happens = happens
            self.runner = runner
            runner.run()
        return store

    def test_everything_is_measured_with_the_features_next_to_each_other_in_time(self):
        store = self.run_it()
        self.assertEqual(len(store.samples), 2 * 2 * 2 * 2)
        place = [("bare", "cold"), ("bare", "warm"), ("A", "cold"), ("A", "warm")]
        self.assertEqual(self.runner.asked, place * 4)
        self.assertEqual(FakeRig.made, 2)

    def test_an_interrupted_run_goes_on_where_it_was(self):
        def happens(cell, number):
            if number == 6:
                raise KeyboardInterrupt
            return sample(cell, 0, float(number))

        with self.assertRaises(KeyboardInterrupt):
            self.run_it(happens)
        self.assertEqual(len(Store(self.folder / "run").read().samples), 5)
        # The warm pass needs its cold one: both are made again.
        store = self.run_it(lambda cell, number: sample(cell, 0, 100.0 + number))
        self.assertEqual(len(store.samples), 16)
        self.assertEqual(len(self.runner.asked), 12)
        self.assertEqual(sum(one["seconds"] < 100 for one in store.samples.values()), 4)
        self.run_it()
        self.assertEqual(self.runner.asked, [])

    def test_what_takes_over_two_minutes_is_measured_once(self):
        store = self.run_it(lambda cell, number: sample(cell, 0, 121.0 if cell.features == "bare" else 1.0))
        self.assertEqual(len(store.samples), 2 * (2 + 2 * 2))

    def test_a_cut_is_a_result(self):
        store = self.run_it(lambda cell, number: {"cut": 600, "moved_until_cut": 5, "wan_up": 1, "wan_down": 1})
        self.assertEqual(len(store.samples), 8)

    def test_foreign_traffic_and_repeated_segments_are_measured_again(self):
        def happens(cell, number):
            if number == 1:
                return sample(cell, 0, 1.0, foreign_share=0.02)
            if number == 4:  # A, cold, whose bare line has none
                return sample(cell, 0, 1.0, repeated_share=0.015)
            return sample(cell, 0, 1.0)

        store = self.run_it(happens)
        first, third = list(store.samples.values())[0], list(store.samples.values())[2]
        self.assertEqual(first["discarded"], ["2.0 % of the capture is other traffic"])
        self.assertIn("1.5 % of the bytes were retransmitted or late", third["discarded"][0])
        self.assertNotIn("doubt", first)

    def test_what_never_becomes_good_is_kept_as_doubtful(self):
        store = self.run_it(lambda cell, number: sample(cell, 0, 1.0, foreign_share=0.5))
        for one in store.samples.values():
            self.assertEqual(len(one["discarded"]), ATTEMPTS - 1)
            self.assertIn("other traffic", one["doubt"])

    def test_a_failure_is_kept_and_the_place_made_anew(self):
        def happens(cell, number):
            if number == 1:
                raise bounded.WorkFailed("the client broke")
            if cell.place.round_trip_ms == 100 and cell.features == "A":
                raise Unusable("no ping")
            return sample(cell, 0, 1.0)

        store = self.run_it(happens)
        failures = [one["failure"] for one in store.samples.values() if "failure" in one]
        self.assertEqual(failures[:2], ["the client broke"] * 2)  # its warm pass had nothing to be warm of
        self.assertEqual(failures[2:], ["no measurement: no ping"] * 2)
        self.assertEqual(FakeRig.made, 4)

    def test_failures_are_measured_again_when_that_is_asked_for(self):
        def happens(cell, number):
            if cell.features == "A":
                raise bounded.WorkFailed("the client broke")
            return sample(cell, 0, 1.0)

        self.run_it(happens)
        self.run_it()
        self.assertEqual(self.runner.asked, [])
        store = self.run_it(retry=True)
        self.assertEqual({features for features, _ in self.runner.asked}, {"A"})
        again = Store(store.folder).read()
        self.assertEqual([one for one in again.samples.values() if "failure" in one], [])
        self.assertEqual(len(again.samples), 16)

    def test_a_full_disk_ends_the_run_with_a_sentence_and_no_failure_is_booked(self):
        def happens(cell, number):
            if number == 3:
                shutil.disk_usage.return_value.free = 1_000_000
                raise bounded.WorkFailed("whatever a program says when its disk is full")
            return sample(cell, 0, 1.0)

        with mock.patch("shutil.disk_usage", return_value=mock.Mock(free=10 ** 12)):
            with self.assertRaisesRegex(StoreFailure, "the disk under .* is full; the results so far are kept"):
                self.run_it(happens)
        kept = Store(self.folder / "run").read().samples.values()
        self.assertEqual(len(kept), 2)
        self.assertFalse([one for one in kept if "failure" in one])

    def test_time_left_is_told(self):
        for cell in scenario.load("wx-2006").cells():
            self.assertGreater(expected_seconds(cell, 600), 3)
            self.assertLessEqual(expected_seconds(cell, 600), 610)


class Content(unittest.TestCase):
    def test_a_seed_gives_the_same_bytes_and_another_others(self):
        for kind in ("random", "text"):
            self.assertEqual(content.make(kind, 100_001, 7), content.make(kind, 100_001, 7))
            self.assertNotEqual(content.make(kind, 100_001, 7), content.make(kind, 100_001, 8))
            self.assertEqual(len(content.make(kind, 100_001, 7)), 100_001)

    def test_an_edit_changes_about_one_percent(self):
        data = content.noise(1_000_000, 1)
        changed = content.edited(data, 2)
        self.assertNotEqual(data, changed)
        self.assertLess(abs(len(changed) - len(data)), 10_000)
        pieces = {data[at:at + 1000] for at in range(0, len(data), 1000)}
        same = sum(piece in changed for piece in pieces)
        self.assertGreater(same, 850)
        self.assertLess(same, 950)


class Placing(unittest.TestCase):
    def test_every_kind_of_file_can_be_placed_again_with_other_bytes_and_is_removed(self):
        share = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        rig = mock.Mock(smbd=mock.Mock(share=share), nginx=mock.Mock(files=share), lab=mock.Mock(scratch=share))
        for text in ("http", "smb read SMB1 impacket", "smb write 3.1.1 impacket", "smb read 3.1.1 smbclient",
                     "smb files 3.1.1 impacket", "smb document SMB1 impacket"):
            with self.subTest(text):
                work = applications.make(rig, scenario.parse_application(text), 1)
                work.place(b"first" * 5000)
                first = work.expected
                work.place(b"other" * 5000)
                self.assertNotEqual(work.expected, first)
                work.remove()
                self.assertEqual(list(share.iterdir()), [])


class Bounded(unittest.TestCase):
    def test_results_and_failures_come_back(self):
        self.assertEqual(bounded.call(lambda: {"a": 1}, 60), {"a": 1})
        with self.assertRaisesRegex(bounded.WorkFailed, "ZeroDivisionError"):
            bounded.call(lambda: 1 // 0, 60)
        with self.assertRaisesRegex(bounded.WorkFailed, "without a message"):
            bounded.call(lambda: os.kill(os.getpid(), signal.SIGKILL), 60)

    def test_what_takes_too_long_is_ended(self):
        began = time.monotonic()
        with self.assertRaises(bounded.TooLong):
            bounded.call(lambda: time.sleep(600), 0.3)
        self.assertLess(time.monotonic() - began, 300)

    def test_what_is_given_up_is_ended_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "pid"

            def work():
                import subprocess
                with subprocess.Popen(["sleep", "600"]) as process:
                    file.write_text(str(process.pid))
                    process.wait()

            def look():
                if file.exists() and file.read_text():
                    raise KeyboardInterrupt  # as a person would

            with self.assertRaises(KeyboardInterrupt):
                bounded.call(work, 600, look)
            deadline = time.monotonic() + 60
            while is_running(int(file.read_text())) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertFalse(is_running(int(file.read_text())))


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class BadUse(unittest.TestCase):
    def test_a_host_that_is_down_is_said_in_one_line(self):
        answers = iter([mock.Mock(returncode=1, stdout="PING\n\n1 packets transmitted, 0 received\n", stderr="")] * 30 +
                       [mock.Mock(returncode=2, stdout="", stderr="ping: connect:\n Network is unreachable\n")] * 30)
        lab = mock.Mock(scratch=pathlib.Path("/tmp"), run=lambda *_, **__: next(answers))
        lab.counter = iter(range(10))
        recording = capture.Recording(lab, 1e6)
        for more in ("", " ping says: ping: connect: Network is unreachable"):
            with self.assertRaises(capture.CaptureFailed) as caught:
                recording.mark("before")
            self.assertEqual(str(caught.exception),
                             "no ping was answered before the transfer; is the server or the line down?" + more)

    def said(self, *words):
        output = io.StringIO()
        with mock.patch("sys.stderr", output):
            code = main.main(list(words))
        return code, output.getvalue()

    def test_what_cannot_be_run_is_said_in_one_sentence(self):
        with mock.patch("os.geteuid", return_value=1000):
            self.assertEqual(self.said("run", "regression"), (
                2, "longhaul-bench: must be root: it creates network namespaces (nothing outside them is changed)\n"))
        with mock.patch("os.geteuid", return_value=0):
            with mock.patch.dict(os.environ, LONGHAUL_BUILD="/nowhere"), mock.patch(
                    "shutil.which", side_effect=lambda name: None if name == "tcpdump" else f"/bin/{name}"):
                code, text = self.said("run", "regression")
                self.assertEqual((code, text), (2, "longhaul-bench: tcpdump (package tcpdump) is missing: run tools/setup\n"))
            with mock.patch.dict(os.environ, LONGHAUL_BUILD="build/release"), mock.patch("shutil.which", return_value=None):
                self.assertEqual(self.said("run", "regression")[0], 2)
                # What uses it runs in other folders.
                self.assertEqual(os.environ["LONGHAUL_BUILD"], str(pathlib.Path.cwd() / "build" / "release"))
            with mock.patch.dict(os.environ, LONGHAUL_BUILD="/nowhere"), mock.patch(
                    "shutil.which", side_effect=lambda name: f"/bin/{name}"), mock.patch("lab.BUILD", pathlib.Path("/nowhere")):
                code, text = self.said("run", "transactions")
                self.assertEqual(code, 2)
                self.assertRegex(text, "^longhaul-bench: /nowhere/proxy/longhaul does not exist: run cmake .* longhaul-txn longhaul-ttcp\n$")
        code, text = self.said("run", "nothere")
        self.assertEqual(code, 2)
        self.assertIn("there is no such scenario", text)
        code, text = self.said("report", "/nonexistent")
        self.assertEqual((code, text), (2, "longhaul-bench: /nonexistent contains no run: No such file or directory\n"))

    def test_a_second_bench_is_told_of_the_first_and_a_place_that_is_none_is_named(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        with mock.patch("main.LOCK", folder / "lock"), main.alone(False):
            with self.assertRaisesRegex(main.Failure, f"another longhaul-bench is running \\(process {os.getpid()}\\)"):
                with main.alone(False):
                    pass
            with main.alone(True):
                pass
        (folder / "file").write_text("")
        with self.assertRaisesRegex(StoreFailure, "file: File exists"):
            with Store(folder / "file").writing({}):
                pass

    def test_a_disk_that_is_too_small_is_told_before_anything_runs(self):
        with mock.patch("shutil.disk_usage", return_value=mock.Mock(free=1_000_000)):
            with self.assertRaisesRegex(main.Failure, "has 1 MB free, but 650 MB are needed"):
                main.check_room(scenario.load("wx-2006"), pathlib.Path("/tmp"))


if __name__ == "__main__":
    unittest.main()
