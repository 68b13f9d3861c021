# SPDX-License-Identifier: Apache-2.0
"""Which features a benchmark runs with, pinned so that its figures stay comparable when defaults change."""

# The session over TLS and TCP, and nothing that changes the bytes.
TCP_ONLY = {"preset": "T", "transport": "tcp", "compression": False, "dedup_memory": False, "dedup_disk": False}

# The same with everything that makes bytes fewer, on whatever carrier the pair prefers; and the same without.
REDUCED = {"preset": "T", "transport": "auto", "compression": True, "dedup_memory": True, "dedup_disk": True}
NOT_REDUCED = {**REDUCED, "compression": False, "dedup_memory": False, "dedup_disk": False}

# Taken and relayed by one proxy, past the link.
RELAYED = {"preset": "B"}


def reasons(site):
    """Which reasons the flows of a proxy were given, and how often: a benchmark that measured something else than it
    meant shows it here."""
    given = site.status()["flows"]["by_reason"]
    return "reasons " + (", ".join(f"{name} {count}" for name, count in given.items() if count) or "none")
