# SPDX-License-Identifier: Apache-2.0
"""Signed and encrypted SMB where the far side has the server's keys: files read and written by clients that wait for
each block, beside the same in a plain session through the same pair, and on the bare line; what it costs both
proxies in CPU time above a plain session; and small files, a folder, and text again (smb_sealed_files.py)."""

import contextlib
import statistics

import kernel_client
import smb
from features import reasons
from figures import Row, at_least, at_most
from guest import Guest
from lab import Lab
from pair import Pair
from smb_clients import Impacket, Kernel
from smb_rows import KB, LINES, MB, NOT_SLOWER, ROUND_TRIPS_MS, payload
from smb_sealed_clients import KINDS, PLAIN, ProtectedSmbclient
from usage import Cpu

import conditions
import smb_sealed_files

# A session's dialect, its protection, and what the client's implementation chooses of the algorithms.
SESSIONS = {Impacket: (("NT1", "sign", "MD5"), ("2.1", "sign", "HMAC-SHA256"), ("3.1.1", "sign", "CMAC"), ("3.1.1", "encrypt", "AES-128-CCM")),
            Kernel: (("NT1", "sign", "MD5"), ("2.1", "sign", "HMAC-SHA256"), ("3.1.1", "sign", "CMAC"), ("3.1.1", "encrypt", "AES-128-GCM"))}
# What Linux's client is to reach of the payload rate, plain and sealed, and where.
LINUX_SHARE, LINUX_ROUND_TRIP_MS, LINUX_DIALECTS = 0.85, 250, ("NT1", "3.1.1")
# CPU seconds per GB above plain that both proxies together may need.
COSTS = (("NT1", "sign", 0.6), ("2.1", "sign", 0.6), ("3.1.1", "sign", 0.6), ("3.0", "encrypt", 0.8), ("3.1.1", "encrypt", 0.8))


def run(bench):
    # Quick: 250 ms takes minutes, so only if cases are chosen.
    for round_trip in ROUND_TRIPS_MS if not bench.quick else (100, LINUX_ROUND_TRIP_MS) if bench.only else (100,):
        transfers(bench, "OC-1", round_trip)
    processor(bench)
    smb_sealed_files.run(bench)


def sessions(kind, round_trip):
    """And the plain ones that have a goal of their own; the others are only compared with."""
    wanted = LINUX_DIALECTS if kind is Kernel and round_trip == LINUX_ROUND_TRIP_MS else ()
    return (*((dialect, PLAIN, "") for dialect in wanted), *SESSIONS[kind])


def transfers(bench, line, round_trip):
    rate, size = LINES[line], (2 if bench.quick else 10) * MB
    cases = [(kind, *session, way) for kind in (Kernel, Impacket)[0 if kernel_client.is_there() else 1:]
             for session in sessions(kind, round_trip) for way in ("read", "write")
             if bench.wants(f"{way} {line} {round_trip} ms {session[0]} {session[1]} {kind.name}")]
    if not cases:
        return
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(Lab(f"{rate / 1e6:g}mbit,{round_trip}"))
        smbd = smb.Smbd(lab)
        guest = stack.enter_context(Guest(lab)) if any(case[0] is Kernel for case in cases) else None
        pair = Pair(lab, both={"log": {"level": "warn"}}, datacenter={"smb_server": smbd.keys()})

        def speed(kind, dialect, protection, way):
            subject = KINDS[kind](lab, smbd, dialect, guest)
            subject.protection = protection
            return [size / KB / getattr(subject, way)(size) for _ in range(bench.times(1))]

        bare = {case: speed(case[0], case[1], case[2], case[4]) for case in cases}
        with pair:
            for way in ("read", "write"):
                speed(Impacket, "3.1.1", PLAIN, way)
            sealed = {case: speed(case[0], case[1], case[2], case[4]) for case in cases if case[2] != PLAIN}
            plain = {key: speed(key[0], key[1], PLAIN, key[2])
                     for key in dict.fromkeys((case[0], case[1], case[4]) for case in cases)}
            why = reasons(pair.branch)
        for case in cases:
            kind, dialect, protection, algorithm, way = case
            goal = None
            if kind is Kernel and round_trip == LINUX_ROUND_TRIP_MS and dialect in LINUX_DIALECTS:
                goal = at_least(LINUX_SHARE * payload(rate) / KB)
            beside = plain[kind, dialect, way]
            session = f"{dialect} {protection} ({algorithm})" if algorithm else f"{dialect} {protection}"
            compared = (beside, bare[case], "bare", NOT_SLOWER) if protection == PLAIN else (
                sealed[case], beside, "plain", at_least(0.97))
            row = Row(f"{way} {size // MB} MB, {line} {round_trip} ms, {session}, {kind.name}", "KB/s", compared[0], goal,
                      *compared[1:], conditions=conditions.of_lab(lab))
            row.note = (f"{row.measured / max(bare[case]):.1f} times bare; "
                        f"{100 * row.measured * KB / payload(rate):.1f} % of the line's payload rate; {why}")
            bench.report(row)


def processor(bench):
    """smbclient over a fast line. Each file is new to the pair."""
    cases = [case for case in COSTS if bench.wants(f"CPU {case[0]} {case[1]}")]
    if not cases:
        return
    size = (20 if bench.quick else 300) * MB
    with Lab("1gbit,1") as lab:
        smbd = smb.Smbd(lab)
        with Pair(lab, both={"log": {"level": "warn"}}, datacenter={"smb_server": smbd.keys()}) as pair:
            pids = [site.process.pid for site in pair.sites]

            def cost(dialect, protection):
                subject = ProtectedSmbclient(lab, smbd, dialect, None)
                subject.protection = protection
                with Cpu(*pids) as used:
                    subject.read(size)
                    subject.write(size)
                return sum(used.per_gb(pid, 2 * size) for pid in pids)

            cost("3.1.1", PLAIN)  # warm
            for dialect, protection, most in cases:
                plain, sealed = [], []
                for _ in range(bench.times(3, quick=1)):
                    plain.append(cost(dialect, PLAIN))
                    sealed.append(cost(dialect, protection))
                more = [with_it - without for with_it, without in zip(sealed, plain)]
                bench.report(Row(f"CPU, 1 Gbit/s 1 ms, {dialect} {protection}: seconds per GB above plain, both proxies", "s/GB", more,
                                 at_most(most), conditions=conditions.of_lab(lab),
                                 note=f"plain {statistics.median(plain):.2f}; {reasons(pair.branch)}"))
