#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the time: of the guest, whose clock is not the host's."""

import time

print(time.time())
