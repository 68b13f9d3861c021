# SPDX-License-Identifier: Apache-2.0
"""Samba's own test suites for SMB, smbtorture, as a referee: the result of each test of a suite, so that two runs
can be compared. A run without the pair shows which failures are this server's."""

import re

import smb
from domain import PASSWORD, USER
from lab import SERVER
from member import Member

# What the suites want of a server. The share is theirs alone.
SETTINGS = {"map archive": "yes"}
SHARE = {"create mask": "0777", "directory mask": "0777", "force create mode": "0600"}

QUICK = ("smb2.read", "smb2.rw", "smb2.lock", "smb2.compound", "smb2.compound_async", "smb2.credits", "smb2.sharemode",
         "smb2.dir", "smb2.durable-open", "smb2.durable-v2-open", "smb2.streams", "smb2.getinfo", "smb2.session",
         "smb2.deny", "smb2.ioctl", "smb2.rename", "smb2.connect")
QUICK_SMB1 = ("raw.read", "raw.write", "raw.open", "raw.close", "raw.mux", "raw.seek", "base.rw1", "base.xcopy")
LONG = ("smb2.oplock", "smb2.lease", "smb2.create", "smb2.notify", "smb2.compound_find", "smb2.setinfo",
        "smb2.timestamps", "smb2.replay")
LONG_SMB1 = ("raw.lock", "raw.oplock", "base.lock", "base.delaywrite", "base.delete", "raw.rename", "raw.unlink",
             "raw.search", "raw.streams")
# Not among them: base.deny1, deny2 and defer_open, which take minutes each and look at share modes only.
OTHER_SMB1 = ("raw.sfileinfo", "raw.qfileinfo", "raw.context", "raw.session", "raw.notify", "raw.composite",
              "base.unlink", "base.attr", "base.trans2", "base.negnowait", "base.dir1", "base.denydos", "base.ntdeny1",
              "base.tcon", "base.vuid", "base.open", "base.rename", "base.properties", "base.openattr", "base.chkpath",
              "base.disconnect", "base.secleak")


# Signed and encrypted. With the server's keys the pair offers no second channel in 3.1.1, so that the server of these runs has none
# either. Not among them: smb2.lease, of three minutes each (it is in LONG_SEALED), and smb2.compound before 3.1.1: smbtorture 4.17
# itself waits for ever in it.
QUICK_SEALED = tuple(name for name in QUICK if name != "smb2.compound")
LONG_SEALED = ("smb2.lease",)
SETTINGS_SEALED = {"server multi channel support": "no"}

# With dialects before 3.1.1, smbtorture 4.17 hangs in smb2.notify.tcon without the pair, too, and the tests after it do not run.
# Nine more tests of that suite did not end within 20 s. The others:
NOTIFY_EARLIER = ("valid-req", "tdis1", "close", "logoff", "session-reconnect", "invalid-reauth", "basedir", "file", "rmdir1",
                  "rmdir2", "rmdir3", "rmdir4", "handle-permissions")
LONG_EARLIER = (*(name for name in LONG if name != "smb2.notify"), *(f"smb2.notify.{name}" for name in NOTIFY_EARLIER))
# With signed 3.0, smb2.replay did not end within 13 minutes either.
LONG_SIGNED_3_0 = tuple(name for name in LONG_EARLIER if name != "smb2.replay")

# Several connections of a session, with the server's keys, in 3.0.
CHANNELS = ("smb2.session.bind1", "smb2.session.bind2", "smb2.session.bind_invalid_auth", "smb2.multichannel.generic")
SETTINGS_CHANNELS = {"server multi channel support": "yes", "interfaces": f'"{SERVER};speed=1000000000,capability=RSS"'}

# smb2.credits leaves an id out, and wants all of the server's 8,192 credits when it uses it at last. The server counts the far
# half's own requests (a folder that is watched, the free space) with the client's: each took a credit of the 8,192, so that 8,189 or
# 8,190 are the client's. With read-ahead, metadata and early writes off nothing is added, and the test succeeds.
#
# smb2.notify.basedir expects no event about the watched folder itself. Samba sends such events, without a name, to all clients
# that watch a folder as soon as one of them also asks for changes of folder names, as the far half does. Without the pair the test
# fails, too, if a second client watches the folder.
KNOWN = frozenset({"skipped_mid", "basedir"})

# Signed and encrypted only. They bind a session to a second connection, which is refused here as it is by a server without
# channels, but with another status: the two legs have different keys, so the server cannot verify the request (decision 0020).
# related9 begins an encrypted compound with a related request: Samba answers without encryption, and such an answer resets the
# connection.
KNOWN_SEALED = frozenset({"related9"})


def is_known(test, sealed=False):
    return test in KNOWN or (sealed and (test in KNOWN_SEALED or test.startswith("bind_negative_")))


class Suites:
    """Runs suites against a server of `lab` in `node`, whose folder is `share`. `smbtorture` gives the command line that
    names the share and its user."""

    def clear(self):
        """Takes away what a suite has left, so that the next run begins as the first did."""
        self.lab.run(self.node, "find", self.share, "-mindepth", 1, "-delete")

    def suite(self, name, seconds=900, words=()):
        """One suite from the client: the outcome of each of its tests, and what it printed. `words` are more options."""
        self.clear()
        smb1 = not name.startswith("smb2.")
        options = [name, *words, "--option=torture:samba3=yes", "--format=subunit", "-t", 30 if smb1 else 60]
        if smb1:
            options.append("--option=clientmaxprotocol=NT1")
        command = self.smbtorture(*options, before=("timeout", "--kill-after=5", seconds))
        done = self.lab.run("client", *command, seconds=seconds + 30, check=False)
        return outcomes(done.stdout, done.returncode == 124), done.stdout + done.stderr


class Server(Suites, smb.Smbd):
    """A server with a local user, who logs in over NTLM."""

    def __init__(self, lab, settings=None):
        super().__init__(lab, {**SETTINGS, **(settings or {})}, SHARE)

    def smbtorture(self, *options, before=()):
        return (*before, "smbtorture", f"//{SERVER}/share", "-s", self.client_configuration,
                "-U", f"{self.user}%{self.password}", *options)


class DomainServer(Suites, Member):
    """A member of a domain. The user logs in with Kerberos only."""

    def __init__(self, site):
        super().__init__(site, {**SETTINGS, **SETTINGS_SEALED}, SHARE)

    def smbtorture(self, *options, before=()):
        # With the password, not with tickets of a cache: the tests of expired sessions ask the KDC for tickets that are valid for
        # four seconds.
        return self.site.knowing(*before, "smbtorture", f"//{self.name}/share", "-s", self.site.client_conf,
                                 "-U", f"{USER}%{PASSWORD}", "--use-kerberos=required", *options)

    def keys(self):
        """[[smb_server]] of the far side."""
        return [{"addresses": [self.address], "keytab": str(self.keytab)}]


class Flows:
    """What a site says of the flows to a server's files. Those that ended are included, but only the last 256 of all
    flows, which include those to the KDC."""

    def __init__(self, site, address):
        self.site, self.destination, self.seen = site, f"{address}:445", 0

    def new(self):
        """Those that began since the last call, once they have ended."""
        self.site.wait_flows()
        first, self.seen = self.seen + 1, self.site.status()["flows"]["started"]
        answers = (self.site.ask("GET", f"/v1/flows/{number}") for number in range(first, self.seen + 1))
        return [flow for status, flow in answers if status == 200 and flow["destination"] == self.destination]


def outcomes(text, cut_off=False):
    """Of subunit's lines, such as `success: rw1` or `failure: one [`: each test's name with all that it gave."""
    found = {}
    for outcome, test in re.findall(r"^(success|failure|error|skip|xfail): ([^\[\n]+?)(?: \[)?$", text, re.M):
        found.setdefault(test, []).append(outcome)
    begun = set(re.findall(r"^test: (.+)$", text, re.M))
    for test in begun - set(found):
        found[test] = ["cut off" if cut_off else "no outcome"]
    return found


def unexplained(direct, through, sealed=False):
    """Of several runs each: the tests that gave in every run through the pair what they gave in no direct one."""
    lines = []
    for test in sorted({test for outcomes in through for test in outcomes} | set(direct[0])):
        if is_known(test, sealed):
            continue
        without, with_pair = ({", ".join(run.get(test, ["absent"])) for run in runs} for runs in (direct, through))
        if not with_pair & without:
            lines.append(f"{test}: direct {' or '.join(sorted(without))}; through the pair {' or '.join(sorted(with_pair))}")
    return lines


def differences(direct, through, sealed=False):
    """Lines for a reader; none when both lists are the same."""
    lines = []
    for test in sorted({*direct, *through}):
        if is_known(test, sealed):
            continue
        one, other = direct.get(test, ["absent"]), through.get(test, ["absent"])
        if one != other:
            lines.append(f"{test}: direct {', '.join(one)}; through the pair {', '.join(other)}")
    return lines
