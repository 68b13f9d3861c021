# SPDX-License-Identifier: Apache-2.0
"""TLS with programs we did not write: an authority and certificates made by openssl, nginx with TLS in a node, curl."""

import base64
import datetime
import hashlib
import itertools
import subprocess

import web
from lab import SERVER

SERVERS = """
  server {{ listen 443 ssl http2; listen [::]:443 ssl http2; server_name {name}; root {files};
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    client_max_body_size 0; dav_methods PUT; {more} }}
"""
numbers = itertools.count(1)


def key_digest(certificate):
    """SHA-256 of the certificate's public key, in base64: the form that Chromium's option takes."""
    key = subprocess.run(["openssl", "x509", "-in", str(certificate), "-noout", "-pubkey"], check=True, capture_output=True,
                         timeout=60).stdout
    return base64.b64encode(hashlib.sha256(base64.b64decode(b"".join(key.splitlines()[1:-1]))).digest()).decode()


class Authority:
    """A certificate authority, and what it issues: pairs of files."""

    def __init__(self, folder, name="Test CA", constraints=""):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate, self.key = folder / "ca.crt", folder / "ca.key"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                      f"/CN={name}", "-days", 30, "-keyout", self.key, "-out", self.certificate,
                      "-addext", "basicConstraints=critical,CA:TRUE",
                      *(("-addext", f"nameConstraints=critical,{constraints}") if constraints else ()))

    def issue(self, name, *more, has_alternative_names=True):
        """(certificate, key) for a host, which may have more names."""
        names = ",".join(f"DNS:{each}" for each in (name, *more))
        stem = self.folder / f"{name}-{next(numbers)}"
        request, certificate, key = (stem.with_name(stem.name + end) for end in (".csr", ".crt", ".key"))
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                      "-keyout", key, "-out", request, *(("-addext", f"subjectAltName={names}") if has_alternative_names else ()))
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                      "-days", 30, "-copy_extensions", "copy", "-out", certificate)
        key.chmod(0o600)
        return certificate, key

    def status_of(self, certificate):
        """A file with this authority's OCSP response: the certificate is good."""
        said = {}
        for what in ("serial", "enddate"):
            said[what] = subprocess.run(["openssl", "x509", "-in", str(certificate), "-noout", f"-{what}"], check=True,
                                        capture_output=True, text=True, timeout=60).stdout.strip().split("=")[1]
        ends = datetime.datetime.strptime(said["enddate"], "%b %d %H:%M:%S %Y GMT")
        index, answer = certificate.with_suffix(".index"), certificate.with_suffix(".ocsp")
        index.write_text(f"V\t{ends:%y%m%d%H%M%SZ}\t\t{said['serial']}\tunknown\t/CN={certificate.stem}\n")
        self._openssl("ocsp", "-index", index, "-CA", self.certificate, "-rsigner", self.certificate, "-rkey", self.key,
                      "-issuer", self.certificate, "-cert", certificate, "-ndays", 1, "-noverify", "-respout", answer)
        return answer

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)


def fingerprint(certificate):
    text = subprocess.run(["openssl", "x509", "-in", str(certificate), "-noout", "-fingerprint", "-sha256"], check=True,
                          capture_output=True, text=True, timeout=60).stdout
    return text.split("=")[1].strip()


class Nginx(web.Nginx):
    """nginx with a TLS server for each of `hosts`: name, (certificate, key), further directives."""

    def __init__(self, lab, hosts, node="server"):
        self.hosts = hosts
        super().__init__(lab, node)

    def configuration(self):
        servers = "".join(SERVERS.format(name=name, files=self.files, certificate=pair[0], key=pair[1], more=more)
                          for name, pair, more in self.hosts)
        plain = super().configuration().rstrip()
        return plain.removesuffix("}") + servers + "}\n"


def curl_words(name, path, *options, address=SERVER):
    """curl of https://name/path at that address."""
    return ("curl", "--silent", "--show-error", "--noproxy", "*", "--resolve", f"{name}:443:{address}", *options,
            f"https://{name}/{path}")
