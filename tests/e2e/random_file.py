# SPDX-License-Identifier: Apache-2.0
"""Random operations on one file, each compared with the same on bytes in memory, as the known program fsx does. What
the file is, a path on a mount or a handle of a client, is the caller's; it only needs the methods named here."""

import random


class Mismatch(AssertionError):
    pass


def check(make, operations, seed, most_bytes=256 * 1024, offset=0, also=()):
    """`make()` opens the file, which must exist and be empty at first, and gives an object with read(at, size),
    write(at, data), truncate(size), flush(), size() and close(); `also` names more of its methods that change no byte.
    Everything happens from `offset` on. Gives the bytes that the file must have in the end."""
    chance = random.Random(seed)
    model = bytearray()
    file = make()
    log = []

    def expect(got, wanted, what):
        if got != wanted:
            at = next((i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]), min(len(got), len(wanted)))
            raise Mismatch(f"seed {seed}, operation {len(log)}: {what}: {len(got)} bytes, wanted {len(wanted)}, the "
                           f"first that differs is at {offset} + {at}; before it:\n" + "\n".join(log[-20:]))

    def span():
        at = chance.randrange(most_bytes)
        size = chance.choice((1, 7, 512, 4096, 4097, 65536, chance.randrange(1, most_bytes)))
        return at, min(size, most_bytes - at)

    choices = (("read", 35), ("write", 30), ("append", 5), ("truncate", 8), ("flush", 4), ("size", 6), ("reopen", 6),
               ("whole", 2), *((name, 4) for name in also))
    for what in chance.choices([name for name, _ in choices], [weight for _, weight in choices], k=operations):
        at, size = span()
        log.append(f"{what} at {at}, {size} bytes (the file has {len(model)})")
        if what == "read":
            expect(file.read(offset + at, size), bytes(model[at:at + size]), "read")
        elif what in ("write", "append"):
            at = len(model) if what == "append" else at
            data = chance.randbytes(min(size, most_bytes - at))
            if not data:
                continue
            file.write(offset + at, data)
            model.extend(bytes(max(0, at - len(model))))
            model[at:at + len(data)] = data
        elif what == "truncate":
            file.truncate(offset + at)
            del model[at:]
            model.extend(bytes(at - len(model)))
        elif what == "size":
            size = file.size()
            if size != offset + len(model) and (model or size):
                raise Mismatch(f"seed {seed}, operation {len(log)}: size {size}, wanted {offset + len(model)}\n"
                               + "\n".join(log[-20:]))
        elif what == "whole":
            expect(file.read(offset, most_bytes), bytes(model), "the whole file")
        elif what == "reopen":
            file.close()
            file = make()
        else:
            getattr(file, what)()
    expect(file.read(offset, most_bytes), bytes(model), "the whole file at the end")
    file.close()
    return bytes(model)
