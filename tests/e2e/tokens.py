# SPDX-License-Identifier: Apache-2.0
"""A PKCS#11 token in files (SoftHSM), which a daemon's user can open."""

import os
import pathlib
import shutil
import subprocess

MODULE = pathlib.Path("/usr/lib/softhsm/libsofthsm2.so")
PIN, WRONG_PIN = "246810", "111111"


class Token:
    """`label` is its name; `environment` is what programs need that use it; `mechanisms` (CKM_…): the only ones that it has."""

    def __init__(self, folder, label="test", mechanisms=()):
        self.folder, self.label = folder, label
        self.tokens = folder / "tokens"
        self.tokens.mkdir(parents=True)
        configuration = folder / "softhsm2.conf"
        configuration.write_text(f"directories.tokendir = {self.tokens}\nlog.level = ERROR\n" +
                                 (f"slots.mechanisms = {','.join(mechanisms)}\n" if mechanisms else ""), encoding="ascii")
        self.environment = {"SOFTHSM2_CONF": str(configuration)}
        self.pin_file = folder / "pin"
        self.set_pin(PIN)
        self._util("--init-token", "--free", "--label", label, "--pin", PIN, "--so-pin", "135790")

    def set_pin(self, pin):
        """What the file says, not the token."""
        self.pin_file.write_text(pin + "\n", encoding="ascii")
        self.pin_file.chmod(0o600)
        shutil.chown(self.pin_file, "longhaul")

    def take(self, key, name, number):
        """Copies the private key of a PEM file into the token."""
        pkcs8 = self.folder / "pkcs8.pem"
        subprocess.run(["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", str(key), "-out", str(pkcs8)], check=True,
                       capture_output=True, timeout=60)
        self._util("--import", pkcs8, "--token", self.label, "--label", name, "--id", f"{number:02x}", "--pin", PIN)
        pkcs8.unlink()
        for place in (self.folder, *self.folder.rglob("*")):
            shutil.chown(place, "longhaul")

    def vanish(self):
        self.tokens.rename(self.folder / "elsewhere")
        self.tokens.mkdir()
        shutil.chown(self.tokens, "longhaul")

    def uri(self, name, label=None):
        return f"pkcs11:token={label or self.label};object={name};type=private?pin-source=file:{self.pin_file}&module-path={MODULE}"

    def _util(self, *words):
        subprocess.run(["softhsm2-util", *map(str, words)], check=True, capture_output=True, timeout=60,
                       env=os.environ | self.environment)
