# SPDX-License-Identifier: Apache-2.0
"""The packages: what is in them, the units, manual pages and completion scripts; with --long, a clean system in which
they are installed and removed."""

import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import tempfile
import unittest

from lab import BUILD, REPOSITORY, long_test

PROGRAM = BUILD / "proxy" / "longhaul"
TOOLS = {name: BUILD / "tools" / name / f"longhaul-{name}" for name in ("probe", "ttcp", "txn", "wan")}
VERSION = r"^0\.\d+\.\d+\+(git\d{8}\.\d{6}\.[0-9a-f]{8}(\.dirty)?|unknown)"
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}


def run(*words, check=True, timeout=540, **options):
    done = subprocess.run(list(map(str, words)), text=True, capture_output=True, check=False, timeout=timeout,
                          env=ENVIRONMENT | options.pop("env", {}), **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Packages(unittest.TestCase):
    """Of the programs under test, uncompressed and with their symbols: quick to make."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.folder.chmod(0o755)
        run(REPOSITORY / "tools/package", "--out", cls.folder, "deb",
            env={"LONGHAUL_BUILD": str(BUILD), "LONGHAUL_DEB_COMPRESSION": "none", "DEB_BUILD_OPTIONS": "nostrip"})
        cls.debs = {file.name.partition("_")[0]: file for file in cls.folder.glob("*.deb")}
        cls.root = cls.folder / "root"
        for deb in cls.debs.values():
            run("dpkg-deb", "-x", deb, cls.root)

    def test_two_packages_of_the_programs_version(self):
        self.assertEqual(set(self.debs), {"longhaul", "longhaul-tools"})
        version = run("dpkg-deb", "-f", self.debs["longhaul"], "Version").stdout.strip()
        self.assertEqual("longhaul " + version.rpartition("-")[0], run(PROGRAM, "--version").stdout.strip())
        self.assertRegex(version, VERSION + "-[0-9]+$")
        newer = re.sub(r"\+.*", "+git20991231.235959.00000000-1", version)
        run("dpkg", "--compare-versions", version, "lt", newer)

    def test_what_only_some_need_is_suggested(self):
        """With its default settings, apt installs what is recommended: no server on a router."""
        for name, deb in self.debs.items():
            recommended = run("dpkg-deb", "-f", deb, "Recommends").stdout.strip()
            self.assertEqual(recommended, {"longhaul": "ca-certificates, nftables", "longhaul-tools": ""}[name])

    def test_every_program_has_a_manual_page_and_completions(self):
        programs = sorted(file.name for file in (self.root / "usr/bin").iterdir())
        self.assertEqual(programs, ["longhaul", "longhaul-probe", "longhaul-ttcp", "longhaul-ttcp-plot", "longhaul-txn",
                                    "longhaul-wan"])
        pages = [self.root / f"usr/share/man/man1/{name}.1.gz" for name in programs]
        for page in (*pages, self.root / "usr/share/man/man5/longhaul.toml.5.gz"):
            with self.subTest(page.name):
                self.assertEqual(run("man", "--warnings", "-l", page, env={"MANWIDTH": "80"}).stderr, "")
        for name in programs:
            if name == "longhaul-ttcp-plot":
                continue
            for script in (f"bash-completion/completions/{name}", f"zsh/vendor-completions/_{name}",
                           f"fish/vendor_completions.d/{name}.fish"):
                with self.subTest(script):
                    shell = script.partition("-")[0].partition("/")[0]
                    run(shell, "-n", self.root / "usr/share" / script)

    def test_the_manual_has_every_command_and_option_of_the_help(self):
        page = self.root / "usr/share/man/man1/longhaul.1.gz"
        text = run("man", "-l", page, env={"MANWIDTH": "200"}).stdout
        commands = re.findall(r"^  ([a-z][a-z-]+)  ", run(PROGRAM, "--help").stdout, re.M)
        self.assertIn("status", commands)
        for command in commands:
            self.assertRegex(text, rf"longhaul {command} \[options\]")
            for option in re.findall(r"--[a-z][a-z-]+", run(PROGRAM, command, "--help").stdout):
                self.assertIn(option, text)

    def test_the_manual_of_the_configuration_has_every_key(self):
        text = run("man", "-l", self.root / "usr/share/man/man5/longhaul.toml.5.gz", env={"MANWIDTH": "200"}).stdout
        page = (REPOSITORY / "docs/configuration.md").read_text()
        for key in re.findall(r"^\| `([a-z_.]+)` \|", page, re.M):
            self.assertRegex(text, rf"(?m)^ +{re.escape(key)} \(")

    def complete(self, *words):
        script = self.root / "usr/share/bash-completion/completions/longhaul"
        return run("bash", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _longhaul 2>/dev/null; '
                                 'printf "%s\\n" "${COMPREPLY[@]}"', script, "longhaul", *words,
                   cwd=self.folder).stdout.split()

    def fish(self, typed):
        script = self.root / "usr/share/fish/vendor_completions.d/longhaul.fish"
        done = run("fish", "--no-config", "-c", f"source {script}; complete -C '{typed}'", cwd=self.folder, env={"HOME": str(self.folder)})
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    def zsh(self, typed, expected):
        """A terminal on which `typed` ends in TAB; passes when `expected` is shown."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], ENVIRONMENT | {"TERM": "dumb", "HOME": str(self.folder)})
        shown = b""
        try:
            for words, awaited in ((f"fpath=({self.root}/usr/share/zsh/vendor-completions $fpath) && autoload -U compinit && "
                                    "compinit -u -D && echo rea''dy\n", "ready"), (typed + "\t", expected)):
                shown = b""
                os.write(terminal, words.encode())
                while awaited not in shown.decode(errors="replace"):
                    if not select.select([terminal], [], [], 60)[0]:
                        self.fail(f"{typed!r} gave {shown.decode(errors='replace')!r}, not {expected!r}")
                    shown += os.read(terminal, 4096)
        finally:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(terminal)

    def test_all_shells_complete_commands_of_commands_settings_and_files(self):
        (self.folder / "there.keytab").touch()
        for words, found in ((("keytab", ""), ["test"]), (("keytab", "test", "the"), ["there.keytab"]),
                             (("fail-closed", "install", "--kept", "the"), ["there.keytab"]),
                             (("flows", "--reason", "link_si"), ["link_silent"]),
                             (("set", "compression=f"), ["compression=false"])):
            with self.subTest(words):
                self.assertEqual(self.fish(" ".join(("longhaul", *words))), found)
                self.zsh(" ".join(("longhaul", *words)), found[0])
                if words[0] != "set":
                    self.assertEqual(self.complete(*words), found)
        self.assertNotIn("test", self.complete("keytab", "test", ""))
        self.assertNotIn("test", self.fish("longhaul keytab test "))
        # To bash these are several words, of which it replaces the last.
        self.assertEqual(self.complete("set", "compression", "=", "f"), ["false"])
        self.assertEqual(self.complete("set", "compression", "="), ["true", "false"][::-1])
        self.assertIn("transport=tcp", self.complete("set", "tran"))

    def test_help_names_choices_without_a_type(self):
        for words, shown in ((("init",), "--role {branch,datacenter} "), (("intercept",), "action {down,print,up} "),
                             (("clear-cache",), "what {objects} ")):
            self.assertIn(shown, run(PROGRAM, *words, "--help").stdout)

    def test_bash_completes_commands_options_choices_and_files(self):
        self.assertEqual(self.complete("sta"), ["status"])
        self.assertEqual(self.complete("flows", "--pe"), ["--peer"])
        self.assertEqual(sorted(self.complete("intercept", "")), ["down", "print", "up"])
        (self.folder / "here.toml").touch()
        self.assertEqual(self.complete("check", "her"), ["here.toml"])
        self.assertEqual(self.complete("status", "--state-dir", "roo"), ["root"])
        self.assertEqual(self.complete("--vers"), ["--version"])

    def units(self):
        """Copies that name the program under test, where systemd-analyze looks for it."""
        folder = self.folder / "units"
        folder.mkdir(exist_ok=True)
        for unit in (self.root / "lib/systemd/system").iterdir():
            (folder / unit.name.replace("@.", "@north.")).write_text(
                unit.read_text().replace("/usr/bin/longhaul", str(PROGRAM)))
        return sorted(folder.iterdir())

    def test_systemd_finds_no_fault_with_the_units(self):
        units = self.units()
        self.assertEqual([unit.name for unit in units], ["longhaul-door.service", "longhaul-door@north.service",
                                                         "longhaul.service", "longhaul@north.service"])
        done = run("systemd-analyze", "verify", "--man=no", *units, check=False)
        self.assertEqual([line for line in done.stderr.splitlines() if "longhaul" in line], [])
        # 0: fully confined; 10: root without limits. Above 1: both capabilities, /proc/sys, and the network itself.
        for unit in units:
            run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=25", unit)

    def test_the_shipped_example_passes_the_check(self):
        examples = self.root / "usr/share/doc/longhaul/examples"
        with tempfile.TemporaryDirectory() as folder:
            for name in ("branch", "datacenter"):
                run(PROGRAM, "keygen", name, "--dir", folder)
                text = (examples / f"{name}.toml").read_text()
                file = pathlib.Path(folder, f"{name}.toml")
                file.write_text(text)
                said = run(PROGRAM, "check", "--file-only", file).stdout
                self.assertIn("Flows that enter here", said)


class VersionOfSources(unittest.TestCase):
    """What cmake/version.cmake makes of a tree: a clone, one with changes, and trees without history."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tree = self.folder / "tree"
        (self.tree / "cmake").mkdir(parents=True)
        for name in (".gitattributes", "cmake/commit", "cmake/version.cmake"):
            run("cp", REPOSITORY / name, self.tree / name)

    def git(self, *words):
        times = {"GIT_COMMITTER_DATE": "1700000000 +0900", "GIT_AUTHOR_DATE": "1600000000 +0900"}
        return run("git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", "-C", self.tree, *words, env=times).stdout.strip()

    def commit(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        return "1.2.3+git20231114.221320." + self.git("rev-parse", "HEAD")[:8]

    def version(self, tree=None):
        file = self.folder / "version_text.h"
        run("cmake", "-D", f"SOURCE={tree or self.tree}", "-D", "NUMBER=1.2.3", "-D", f"FILE={file}", "-P",
            REPOSITORY / "cmake/version.cmake")
        return re.fullmatch(r'#define LONGHAUL_VERSION "(.*)"\n', file.read_text())[1]

    def test_a_clone_has_its_commit_and_says_that_it_was_changed(self):
        version = self.commit()
        self.assertEqual(self.version(), version)
        written = (self.folder / "version_text.h").stat().st_mtime_ns
        (self.tree / "untracked").touch()
        self.assertEqual(self.version(), version)
        self.assertEqual((self.folder / "version_text.h").stat().st_mtime_ns, written)  # so nothing is compiled again
        (self.tree / ".gitattributes").write_text("# changed\n")
        self.assertEqual(self.version(), version + ".dirty")

    def test_an_exported_tree_has_the_commit_also_inside_another_repository(self):
        version = self.commit()
        self.git("archive", "--prefix=cmake/exported/", "-o", self.folder / "tree.tar", "HEAD")
        run("tar", "-xf", self.folder / "tree.tar", "-C", self.tree)
        self.assertEqual(self.version(self.tree / "cmake/exported"), version)

    def test_without_history_the_commit_is_unknown(self):
        self.assertEqual(self.version(), "1.2.3+unknown")
        inner = self.tree / "inner"
        run("cp", "-r", self.tree / "cmake", inner)
        (inner / "cmake").mkdir()
        run("cp", self.tree / "cmake/commit", inner / "cmake")
        self.commit()
        self.assertEqual(self.version(inner), "1.2.3+unknown")  # the repository around it is not its own


# buildah mounts; a root that was only changed to is no mount point.
ENTER_WITH_MOUNTS = """set -e
mount --make-rprivate /
mount --rbind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cp /etc/resolv.conf "$1/etc/"
cd "$1"
pivot_root . mnt
exec chroot . /bin/sh -c 'umount -l /mnt; exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh /image/build'
"""
BUILD_IMAGE = """set -e
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
cd /image
base=$(buildah from scratch)
buildah add -q "$base" base.tar / >&2
buildah commit -q "$base" docker.io/library/debian:12-slim >&2
buildah bud --pull-never -t longhaul -f Containerfile . >&2
buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}} {{.OCIv1.Config.ExposedPorts}} {{.OCIv1.Config.Volumes}}' \\
  longhaul
echo
buildah run "$(buildah from longhaul)" longhaul --version
"""


class CleanSystem(unittest.TestCase):
    """A minimal Debian in a directory; the packages come from the packages' own mirror."""

    @long_test
    def test_the_packages_install_run_and_are_removed_without_a_trace(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        run(REPOSITORY / "tools/package", "--out", folder, "deb", env={"LONGHAUL_BUILD": str(BUILD)})
        debs = sorted(folder.glob("*.deb"))
        problems = run("lintian", "--tag-display-limit", "0", "--fail-on", "error,warning", *debs, check=False).stdout
        self.assertEqual([line for line in problems.splitlines() if line[:2] in ("E:", "W:")], [])

        root = folder / "system"
        run("mmdebstrap", "--variant=minbase", "--include=systemd", "bookworm", root)

        def inside(*words, network=("--net",)):
            return run("unshare", "--mount", *network, "--pid", "--fork", "--root", root, "--mount-proc", *words)

        before = self.files(root)
        for deb in debs:
            run("cp", deb, root / "tmp")
        inside("sh", "-c", "apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb", network=())
        self.assertEqual(inside("longhaul", "--version").stdout, run(PROGRAM, "--version").stdout)
        self.assertRegex(inside("id", "longhaul").stdout, r"uid=\d+\(longhaul\)")
        inside("sh", "-c", "cd /etc/longhaul && cp /usr/share/doc/longhaul/examples/branch.toml longhaul.toml && "
                           "longhaul keygen branch && longhaul check --file-only longhaul.toml")
        enabled = inside("systemctl", "is-enabled", "longhaul.service", "longhaul-door.service").stdout
        self.assertEqual(enabled.split(), ["enabled", "enabled"])
        for tool in TOOLS:
            inside(f"longhaul-{tool}", "--help")
        inside("sh", "-c", "cp /etc/longhaul/longhaul.toml /etc/longhaul/north.toml && "
                           "systemctl enable longhaul@north longhaul-door@north")

        inside("apt-get", "remove", "-y", "longhaul", "longhaul-tools")
        left = {path for path in self.files(root) - before if "longhaul" in path}
        # State, and what dpkg and systemd remember of a package that can come back.
        kept = ("/etc/longhaul", "/var/lib/longhaul", "/var/lib/dpkg/", "/etc/systemd/system/", "/var/lib/systemd/", "/tmp/")
        self.assertEqual({path for path in left if not path.startswith(kept)}, set())
        self.assertEqual([path for path in left if path.startswith("/etc/systemd/") and "@" in path], [])
        self.assertTrue((root / "etc/longhaul/branch.key").exists())
        inside("apt-get", "purge", "-y", "longhaul", "longhaul-tools")
        left = {path for path in self.files(root) - before if "longhaul" in path and not path.startswith("/tmp/")}
        self.assertEqual(left, set())

    def files(self, root):
        return {str(path).removeprefix(str(root)) for path in root.rglob("*")}

    @long_test
    def test_the_tarball_runs_in_a_system_that_has_nothing_else(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        run(REPOSITORY / "tools/package", "--out", folder, "tarball", env={"LONGHAUL_BUILD": str(BUILD)})
        root = folder / "empty"
        for name in ("opt", "proc", "etc/ssl"):
            (root / name).mkdir(parents=True)
        run("tar", "-C", root / "opt", "-xf", next(folder.glob("*.tar.gz")))
        inside = ("unshare", "--mount", "--pid", "--fork", "--root", root, "--mount-proc")  # $ORIGIN needs /proc
        self.assertIn("longhaul 0.", run(*inside, "/opt/longhaul/bin/longhaul", "--version").stdout)
        for tool in TOOLS:
            run(*inside, f"/opt/longhaul/bin/longhaul-{tool}", "--help")
        # Names are resolved by the C library's own services.
        self.assertIn("sha256:", run(*inside, "/opt/longhaul/bin/longhaul", "keygen", "site").stdout)

    @long_test
    def test_the_container_image_is_built_and_its_program_runs(self):
        """By buildah in a clean system, on a base image made here: no registry is needed."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        root = folder / "system"
        run("mmdebstrap", "--variant=minbase", "--include=buildah,ca-certificates", "bookworm", root)
        (root / "image").mkdir()
        run(REPOSITORY / "tools/package", "--out", root / "image", "deb", env={"LONGHAUL_BUILD": str(BUILD)})
        run("cp", REPOSITORY / "tools/packaging/Containerfile", root / "image")
        run("mmdebstrap", "--variant=minbase", "bookworm", root / "image/base.tar")
        (root / "image/build").write_text(BUILD_IMAGE)
        done = run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER_WITH_MOUNTS, "sh", root)
        self.assertEqual(done.stdout.splitlines()[-2:], [
            "[/usr/bin/longhaul] [run /etc/longhaul/longhaul.toml] map[7600/tcp:{} 7600/udp:{}] map[/var/lib/longhaul:{}]",
            run(PROGRAM, "--version").stdout.strip()])

    @long_test
    def test_the_same_programs_give_the_same_packages(self):
        made = []
        for _ in range(2):
            folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
            run(REPOSITORY / "tools/package", "--out", folder, env={"LONGHAUL_BUILD": str(BUILD)})
            made.append({file.name: file.read_bytes() for file in folder.iterdir()})
        self.assertEqual(len(made[0]), 3)
        self.assertTrue(made[0] == made[1], "the packages differ")

    @long_test
    def test_the_packages_are_built_in_a_system_that_has_only_what_the_source_package_names(self):
        """From an export, with everything compiled: a quarter of an hour on two cores."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        control = (REPOSITORY / "debian/control").read_text()
        needs = re.sub(r"\([^)]*\)|\[[^]]*\]|:any|\s", "", re.search(r"^Build-Depends:((?:.|\n )*)", control, re.M)[1]).split(",")
        needs[needs.index("debhelper-compat")] = "debhelper"
        root = folder / "system"
        run("mmdebstrap", "--variant=buildd", f"--include={','.join(needs)}", "bookworm", root, timeout=1200)
        source = root / "build/longhaul"
        source.mkdir(parents=True)
        run("sh", "-c", 'git -C "$1" archive HEAD | tar -C "$2" -xf -', "sh", REPOSITORY, source)
        run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--root", root, "--mount-proc", "sh", "-c",
            "cd /build/longhaul && env -u LONGHAUL_BUILD dpkg-buildpackage -b -us -uc", timeout=3000)
        version = run(source / "build/package/proxy/longhaul", "--version").stdout.split()[1]
        self.assertIn("+git", version)
        for name in ("longhaul", "longhaul-tools"):
            with self.subTest(name):
                self.assertEqual(len(list((root / "build").glob(f"{name}_{version}-*.deb"))), 1)

    @long_test
    def test_two_clones_in_different_directories_compile_to_the_same_packages(self):
        """Everything is compiled twice, without a compiler cache: half an hour on two cores."""
        made = []
        for name in ("first", "a-longer-name/second"):
            folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
            run("git", "clone", "-q", REPOSITORY, folder / name)
            run("env", "-u", "LONGHAUL_BUILD", folder / name / "tools/package", "--out", folder / "out", timeout=3000,
                env={"CCACHE_DISABLE": "1"})
            made.append({file.name: file.read_bytes() for file in (folder / "out").iterdir()})
        self.assertEqual(len(made[0]), 3)
        for name, content in made[0].items():
            with self.subTest(name):
                self.assertTrue(content == made[1][name], f"{name} differs")


if __name__ == "__main__":
    unittest.main()
