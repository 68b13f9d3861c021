# SPDX-License-Identifier: Apache-2.0
"""The delays of the same watches without the pair and with it, and the rule that compares them."""

import dataclasses
import queue
import statistics
import threading

from watchers import Stage, Watch


def measured(direct, watches, changes, guest=False, settings=None, jobs=4):
    """The delays of each watch and changer, several watches at a time; and what failed."""
    found, failures, waiting = {}, [], queue.SimpleQueue()

    def work(stage, those):
        while True:
            try:
                watch = those.get_nowait()
            except queue.Empty:
                return
            try:
                for changer, delays in stage.delays(watch, changes).items():
                    found[watch, changer] = delays
            except Exception as error:  # pylint: disable=broad-except
                failures.append(f"{watch.name()}: {type(error).__name__}: {error}")
                print(f"{'direct' if direct else 'pair'}: {failures[-1]}", flush=True)

    in_guest = queue.SimpleQueue()  # which runs one program at a time
    for watch in watches:
        (in_guest if watch.kind == "kernel" else waiting).put(watch)
    with Stage(direct, guest, settings) as stage:
        threads = [threading.Thread(target=work, args=(stage, waiting)) for _ in range(jobs)]
        threads.append(threading.Thread(target=work, args=(stage, in_guest)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not direct:
            counters = [module["counters"] for site in stage.pair.sites for module in site.status()["modules"]]
            print(", ".join(f"{name} {sum(each.get(name, 0) for each in counters)}"
                            for name in ("round_trips_saved", "ahead_used_bytes", "changes_noticed")))
    return found, failures


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds of each change; None: it was not seen."""

    watch: Watch
    changer: str
    direct: list
    pair: list

    def later_ms(self):
        """The longest through the pair beside the direct median, of the changes that were seen; None: either saw none."""
        direct, pair = ([delay for delay in delays if delay is not None] for delays in (self.direct, self.pair))
        if not direct or not pair:
            return None
        return max(pair) - statistics.median(direct)

    def is_late(self):
        """A change that was not seen directly excuses one that was not seen through the pair, and nothing else."""
        if self.pair.count(None) > self.direct.count(None):
            return True
        return self.later_ms() is not None and self.later_ms() > self.watch.allowed_ms(self.changer)


def rows(direct, pair):
    return [Row(watch, changer, direct[watch, changer], delays)
            for (watch, changer), delays in pair.items() if (watch, changer) in direct]
