# SPDX-License-Identifier: Apache-2.0
"""Runs groups of tests in several processes, each process with one group at a time. The caller defines groups and
reports results."""

import ctypes
import multiprocessing
import multiprocessing.connection
import os
import signal

PR_SET_PDEATHSIG = 1
_processes = multiprocessing.get_context("fork")  # groups are not sent: a child has them from its parent


class Worker:
    def __init__(self, groups, run):
        self.pipe, childs_end = _processes.Pipe()
        self.process = _processes.Process(target=_serve, args=(childs_end, groups, run, os.getpid()))
        self.process.start()
        childs_end.close()  # so that its death is the pipe's end
        self.number = None

    def begin(self, number):
        self.number = number
        self.pipe.send(number)

    def end(self):
        self.pipe.send(None)  # its end of the pipe is no sign: later children hold copies of it
        self.process.join()
        self.pipe.close()


def _serve(pipe, groups, run, parent):
    # However the parent ends, the children must end with it, and so must their labs.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    while os.getppid() == parent and (number := pipe.recv()) is not None:
        given = run(groups[number], lambda text: pipe.send(("text", text)))
        pipe.send(("end", given))


def run_all(groups, run, say, jobs):
    """Calls run(group, say) in a process for each group, and yields the group and what that gave, in the order they
    end; for one whose process died in the middle of it, None. `say(text)` is called in this process."""
    waiting = iter(range(len(groups)))
    workers = {}

    def go_on(worker=None):
        number = next(waiting, None)
        if number is not None:
            worker = worker or Worker(groups, run)
            worker.begin(number)
            workers[worker.pipe] = worker
        elif worker:
            worker.end()

    for _ in range(jobs):
        go_on()
    while workers:
        for pipe in multiprocessing.connection.wait(list(workers)):
            worker = workers[pipe]
            try:
                kind, given = pipe.recv()
            except (EOFError, ConnectionResetError):
                del workers[pipe]
                worker.process.join()
                yield groups[worker.number], None
                go_on()
                continue
            if kind == "text":
                say(given)
            else:
                del workers[pipe]
                yield groups[worker.number], given
                go_on(worker)
