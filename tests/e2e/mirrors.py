# SPDX-License-Identifier: Apache-2.0
"""Servers from which a branch downloads software over HTTPS, with real clients: a repository of packages and apt-get, an index of
Python packages and pip, a registry of containers and skopeo, and repositories of git. Each download is compared with what the
server has."""

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
import zipfile

import lab as labs
import tcp
import tls
from lab import SERVER, until

REGISTRY_PORT = 5000  # on the server's loopback
REGISTRY = """version: 0.1
log: {{ level: error, accesslog: {{ disabled: true }} }}
storage: {{ filesystem: {{ rootdirectory: {folder} }}, delete: {{ enabled: false }} }}
http: {{ addr: "127.0.0.1:{port}", secret: only-for-uploads }}
"""
BACKEND = "/usr/lib/git-core/git-http-backend"
GIT_LOCATION = """location / {{ fastcgi_pass unix:{socket}; fastcgi_buffering off; client_max_body_size 0;
  fastcgi_param SCRIPT_FILENAME {backend}; fastcgi_param GIT_HTTP_EXPORT_ALL 1; fastcgi_param GIT_PROJECT_ROOT {folder};
  fastcgi_param PATH_INFO $uri; fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;
  fastcgi_param CONTENT_TYPE $content_type; fastcgi_param CONTENT_LENGTH $content_length;
  fastcgi_param GIT_PROTOCOL $http_git_protocol; }}"""
# Without them, git asks for the host's own name, and waits seconds for a name server that the lab does not have.
NOBODY = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
REGISTRY_LOCATION = f"""location /v2/ {{ proxy_pass http://127.0.0.1:{REGISTRY_PORT}; proxy_http_version 1.1;
  proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; proxy_max_temp_file_size 0; }}"""
# The names are those of a file, as in a branch those of a name server.
WITH_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'


def random_bytes(size, seed):
    return b"".join(tcp.pieces(size, seed))


def compare(kind, got, expected):
    if got != expected:
        raise AssertionError(f"{kind}: other bytes than the server has")


class Apt:
    """One package of `size` bytes in a repository without folders (apt-ftparchive), beside nginx."""

    name, programs = "apt.corp", ("apt-get", "apt-ftparchive", "dpkg-deb")

    def __init__(self, mirrors):
        self.mirrors = mirrors
        self.folder = mirrors.folder / "apt"
        self.folder.mkdir()
        self.directives = f"location / {{ root {self.folder}; }}"

    def put(self, seed, size):
        built = self.mirrors.folder / f"package-{seed}"
        (built / "DEBIAN").mkdir(parents=True)
        (built / "DEBIAN" / "control").write_text(
            f"Package: noise-{seed}\nVersion: 1\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: noise\n")
        (built / "noise").write_bytes(random_bytes(size, seed))
        self.mirrors.run_here("dpkg-deb", "-Znone", "--root-owner-group", "--build", built, self.folder)
        shutil.rmtree(built)
        packages = self.mirrors.run_here("apt-ftparchive", "packages", ".", cwd=self.folder)
        (self.folder / "Packages").write_text(packages)
        (self.folder / "Release").write_text(self.mirrors.run_here("apt-ftparchive", "release", ".", cwd=self.folder))

    def get(self, seed, into):
        for each in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d"):
            (into / each).mkdir(parents=True)
        (into / "status").touch()
        (into / "sources.list").write_text(f"deb [trusted=yes] https://{self.name}/ ./\n")
        options = {"Dir::State": into / "state", "Dir::State::status": into / "status", "Dir::Cache": into / "cache",
                   "Dir::Etc::SourceList": into / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                   "Acquire::https::CAInfo": self.mirrors.trusted, "APT::Sandbox::User": "root", "Acquire::https::Proxy": "false",
                   "Acquire::Languages": "none", "Acquire::Retries": 0}
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        for command in (("update",), ("download", f"noise-{seed}")):
            self.mirrors.run_at_client("apt-get", "-qq", *words, *command, cwd=into)

    def check(self, seed, into):
        file = f"noise-{seed}_1_all.deb"
        compare("apt-get", (into / file).read_bytes(), (self.folder / file).read_bytes())


class Pip:
    """A wheel that nobody can compress, in a simple index (PEP 503) of files."""

    name, programs = "pip.corp", (str(labs.PYTHON),)

    def __init__(self, mirrors):
        self.mirrors = mirrors
        self.folder = mirrors.folder / "pip"
        self.directives = (f"location / {{ root {self.folder}; index index.html; types {{ text/html html; }} "
                           "default_type application/octet-stream; }")

    def put(self, seed, size):
        page = self.folder / "simple" / f"noise-{seed}"
        page.mkdir(parents=True)
        name = f"noise_{seed}-1-py3-none-any.whl"
        files = {f"noise_{seed}/noise": random_bytes(size, seed),
                 f"noise_{seed}-1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: noise-{seed}\nVersion: 1\n".encode(),
                 f"noise_{seed}-1.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
        with zipfile.ZipFile(page / name, "w") as wheel:
            lines = []
            for path, content in files.items():
                wheel.writestr(path, content)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                lines.append(f"{path},sha256={digest},{len(content)}")
            wheel.writestr(f"noise_{seed}-1.dist-info/RECORD", "\n".join((*lines, f"noise_{seed}-1.dist-info/RECORD,,")) + "\n")
        (page / "index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>\n')

    def get(self, seed, into):
        self.mirrors.run_at_client(labs.PYTHON, "-m", "pip", "--isolated", "--quiet", "--disable-pip-version-check", "download",
                                   "--no-deps", "--no-cache-dir", "--retries", 0, "--cert", self.mirrors.trusted,
                                   "--index-url", f"https://{self.name}/simple/", "--dest", into, f"noise-{seed}", cwd=into)

    def check(self, seed, into):
        name = f"noise_{seed}-1-py3-none-any.whl"
        compare("pip", (into / name).read_bytes(), (self.folder / "simple" / f"noise-{seed}" / name).read_bytes())


class Registry:
    """An image of two layers in Docker's registry, behind nginx."""

    name, programs = "registry.corp", ("docker-registry", "skopeo")

    def __init__(self, mirrors):
        self.mirrors = mirrors
        self.directives = REGISTRY_LOCATION
        configuration = mirrors.folder / "registry.yml"
        configuration.write_text(REGISTRY.format(folder=mirrors.folder / "registry", port=REGISTRY_PORT))
        mirrors.lab.start("server", "docker-registry", "serve", configuration)
        until(self.listens, what="the registry listens")
        self.digests = {}

    def listens(self):
        try:
            with self.mirrors.lab.inside("server"), socket.create_connection(("127.0.0.1", REGISTRY_PORT), tcp.PATIENCE):
                return True
        except ConnectionRefusedError:
            return False

    def put(self, seed, size):
        image = self.mirrors.folder / f"image-{seed}"
        blobs = image / "blobs" / "sha256"
        blobs.mkdir(parents=True)

        def blob(content, kind):
            digest = hashlib.sha256(content).hexdigest()
            (blobs / digest).write_bytes(content)
            return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

        layers, contents = [], []
        for number in range(2):
            tar = io.BytesIO()
            with tarfile.open(fileobj=tar, mode="w") as archive:
                content = random_bytes(size // 2, 2 * seed + number)
                about = tarfile.TarInfo(f"noise-{number}")
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
            contents.append(hashlib.sha256(tar.getvalue()).hexdigest())
            layers.append(blob(gzip.compress(tar.getvalue(), mtime=0), "layer.v1.tar+gzip"))
        config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
            "type": "layers", "diff_ids": [f"sha256:{digest}" for digest in contents]}}).encode(), "config.v1+json")
        manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                                    "layers": layers}).encode(), "manifest.v1+json")
        (image / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (image / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
            manifest | {"annotations": {"org.opencontainers.image.ref.name": "1"}}]}))
        self.mirrors.lab.run("server", "skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", f"oci:{image}:1",
                             f"docker://127.0.0.1:{REGISTRY_PORT}/noise-{seed}:1", seconds=120)
        self.digests[seed] = {each["digest"].split(":")[1] for each in (config, *layers)}
        shutil.rmtree(image)

    def get(self, seed, into):
        self.mirrors.run_at_client("env", f"SSL_CERT_FILE={self.mirrors.trusted}", "skopeo", "--insecure-policy", "copy",
                                   f"docker://{self.name}/noise-{seed}:1", f"dir:{into / 'image'}")

    def check(self, seed, into):
        got = {path.name: path for path in (into / "image").iterdir()}
        for digest in self.digests[seed]:
            compare("skopeo", hashlib.sha256(got[digest].read_bytes()).hexdigest(), digest)


class Git:
    """A repository of some files, served by git's own program (git-http-backend) behind nginx and fcgiwrap."""

    name, programs = "git.corp", ("git", "fcgiwrap")

    def __init__(self, mirrors):
        self.mirrors = mirrors
        self.folder = mirrors.folder / "git"
        self.folder.mkdir()
        path = mirrors.folder / "fcgi"
        mirrors.lab.start("server", "fcgiwrap", "-c", 4, "-s", f"unix:{path}")
        until(path.exists, what="fcgiwrap listens")
        self.directives = GIT_LOCATION.format(socket=path, backend=BACKEND, folder=self.folder)

    def git(self, *words, cwd=None):
        return self.mirrors.run_here("git", *NOBODY, "-c", "init.defaultBranch=main", *words, cwd=cwd)

    def put(self, seed, size):
        work = self.mirrors.folder / f"work-{seed}"
        self.git("init", "--quiet", work)
        for number in range(8):
            (work / f"noise-{number}").write_bytes(random_bytes(size // 8, 8 * seed + number))
            self.git("add", ".", cwd=work)
            self.git("commit", "--quiet", "--message", f"noise {number}", cwd=work)
        self.git("clone", "--quiet", "--bare", work, self.folder / f"noise-{seed}.git")
        shutil.rmtree(work)

    def get(self, seed, into):
        self.mirrors.run_at_client("git", *NOBODY, "-c", f"http.sslCAInfo={self.mirrors.trusted}", "clone", "--quiet",
                                   f"https://{self.name}/noise-{seed}.git", into / "clone")

    def check(self, seed, into):
        clone = into / "clone"
        self.git("fsck", "--strict", cwd=clone)
        compare("git", self.git("rev-parse", "HEAD", cwd=clone), self.git("rev-parse", "HEAD", cwd=self.folder / f"noise-{seed}.git"))


class Mirrors:
    """All of them in the server's node, over HTTPS at one nginx. `tables` is what the far side lists."""

    KINDS = {"apt": Apt, "pip": Pip, "registry": Registry, "git": Git}

    @classmethod
    def missing(cls, kind):
        """Programs that are not installed."""
        return [program for program in cls.KINDS[kind].programs if not shutil.which(program)]

    def __init__(self, lab, kinds=tuple(KINDS)):
        self.lab = lab
        self.folder = lab.scratch / "mirrors"
        self.folder.mkdir()
        authority = tls.Authority(lab.scratch / "ca")
        self.trusted = authority.certificate
        self.of = {kind: self.KINDS[kind](self) for kind in kinds}
        names = [mirror.name for mirror in self.of.values()]
        at_server, at_pair = (authority.issue(*names) for _ in range(2))
        self.hosts = self.folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{SERVER} {name}\n" for name in names))
        self.nginx = tls.Nginx(lab, [(mirror.name, at_server, mirror.directives) for mirror in self.of.values()])
        self.tables = [{"addresses": [SERVER], "names": names, "certificate": str(at_pair[0]), "key": str(at_pair[1]),
                        "ca": str(authority.certificate)}]

    def put(self, kind, seed, size):
        self.of[kind].put(seed, size)

    def get(self, kind, seed):
        """Seconds of a client that has never been there. Afterwards its bytes are compared."""
        into = self.folder / f"client-{next(self.lab.counter)}"
        into.mkdir()
        began = time.monotonic()
        self.of[kind].get(seed, into)
        took = time.monotonic() - began
        self.of[kind].check(seed, into)
        shutil.rmtree(into)
        return took

    def run_here(self, *words, cwd=None):
        done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=120,
                              env=self.environment(), check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_at_client(self, *words, cwd=None):
        settings = [f"{key}={value}" for key, value in self.environment().items()]
        self.lab.run("client", "env", "-i", *settings, "unshare", "--mount", "sh", "-c", WITH_HOSTS, self.hosts, *words,
                     seconds=600, cwd=cwd)

    def environment(self):
        """Without anything that the user of this machine has set."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), "LC_ALL": "C.UTF-8",
                "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
