# SPDX-License-Identifier: Apache-2.0
"""What ends a command of the lab with one sentence, and running a program so that its failure is one."""

import shlex
import subprocess


class Failure(Exception):
    """Something to tell the user in one sentence."""


def run(*words, stdin=None, check=True):
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise Failure(f"{shlex.join(words)} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout
