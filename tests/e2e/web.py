# SPDX-License-Identifier: Apache-2.0
"""HTTP with programs we did not write: nginx serves files in a node, curl fetches them."""

import collections
import hashlib
import http.client
import json

import tcp
from lab import SERVER, until

CONFIGURATION = """
daemon off; master_process on; worker_processes 1; user root;
pid {folder}/pid; error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; keepalive_requests 100000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 80 backlog=4096; listen [::]:80 backlog=4096; root {folder}/files; }}
}}
"""

Fetched = collections.namedtuple("Fetched", "status size sha256 seconds first_byte_seconds")


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Nginx:
    def __init__(self, lab, node="server"):
        self.lab, self.node = lab, node
        self.folder = lab.scratch / f"nginx-{next(lab.counter)}"
        self.files = self.folder / "files"
        self.files.mkdir(parents=True)
        configuration = self.folder / "nginx.conf"
        configuration.write_text(self.configuration())
        self.process = lab.start(node, "nginx", "-e", "stderr", "-p", self.folder, "-c", configuration)
        until((self.folder / "pid").exists, what="nginx is up")  # written after its sockets listen

    def configuration(self):
        return CONFIGURATION.format(folder=self.folder)

    def log_everything(self):
        """Returns when its log has all that it has answered. It writes the line of a request after the last bytes of its
        response, which may be at the client by then; but its only worker answers nothing else before."""
        connection = http.client.HTTPConnection("127.0.0.1", 80, timeout=tcp.PATIENCE)
        with self.lab.inside(self.node):
            connection.connect()
        try:
            connection.request("HEAD", "/is-everything-logged")
            connection.getresponse().read()
        finally:
            connection.close()

    def put(self, name, size, seed=1):
        """Makes a file of incompressible bytes and gives their SHA-256."""
        with open(self.files / name, "wb") as file:
            for piece in tcp.pieces(size, seed):
                file.write(piece)
        return sha256_of(self.files / name)


def curl_words(path, target, *options, host=SERVER, port=80):
    """The command that fetches http://host:port/path into a file. The address of IPv6 goes without brackets."""
    host = f"[{host}]" if ":" in host else host
    if not any(str(option).startswith("--socks5") for option in options):
        options = ("--noproxy", "*", *options)
    return ("curl", "--silent", "--show-error", "--globoff", "--output", target, *options,
            f"http://{host}:{port}/{path}")


def fetch(lab, path, *options, node="client", host=SERVER, port=80, seconds=120):
    """curl of http://host:port/path, and what it reports."""
    target = lab.scratch / f"fetched-{next(lab.counter)}"
    words = curl_words(path, target, "--max-time", seconds, "--write-out", "%{json}", *options, host=host, port=port)
    report = json.loads(lab.run(node, *words, seconds=seconds + 5))
    sha256 = sha256_of(target)
    target.unlink()
    return Fetched(report["http_code"], report["size_download"], sha256, report["time_total"],
                   report["time_starttransfer"])
