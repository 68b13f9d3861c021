# SPDX-License-Identifier: Apache-2.0
"""What the program has, read from its sources: keys, features, reasons, metrics, log events, API paths; and, from the
program itself where there is one, its commands and options."""

import re
import subprocess

TEXT = r'"((?:[^"\\]|\\.)*)"'


def sources(tree, *patterns):
    return [path.relative_to(tree.root) for pattern in patterns for path in sorted(tree.root.glob(pattern))]


def config_keys(tree):
    """{"[link]": {"listen", …}, "top": {…}}, as read.cc and the readers of single tables declare them."""
    source = "".join(tree.text(f"proxy/config/{name}.cc") for name in ("read", "daemon_tables", "exports", "module_tables"))
    tables = re.search(r"kTopKeys\{(.*?)\};", source, re.S)[1]
    tables = set(re.findall(TEXT, tables))
    keys = {}
    for declared in re.finditer(r"kKeys\{([^}]*)\}", source):
        call, table = re.compile(r'top\.(table|tables)\(("\w+"|module->name), kKeys\)').search(source, declared.end()).groups()
        for name in modules(tree) if table == "module->name" else [table.strip('"')]:
            keys[f"[{name}]" if call == "table" else f"[[{name}]]"] = set(re.findall(TEXT, declared[1]))
    keys["[[peer.path]]"] = set(re.findall(TEXT, re.search(r"kKeys\{([^}]*)\}", tree.text("proxy/config/peer_paths.cc"))[1]))
    for path in sources(tree, "proxy/modules/*/descriptor.cc"):
        source = tree.text(path)
        if table := re.search(rf"\.servers = {{\.name = {TEXT}", source):
            lists = re.findall(r"k(?:SecretFiles|PublicFiles|Kept|Switches)\{([^}]*)\}", source)
            flags = re.findall(r"\.has_(names|clients) = true", source)
            choices = re.findall(rf"\.key = {TEXT}", source)
            keys[f"[[{table[1]}]]"] = {"addresses", *flags, *choices, *(name for each in lists for name in re.findall(TEXT, each))}
    keys["[features]"] = features(tree)
    keys["top"] = tables - {name.strip("[]") for name in keys}
    return keys


def features(tree):
    """The proxy's own, and those of modules."""
    own = set(re.findall(TEXT, re.search(r"kNames\{(.*?)\};", tree.text("proxy/config/features.cc"), re.S)[1]))
    rows = (re.search(r"ModuleFeature, \d+> kFeatures\{\{(.*?)\}\};", tree.text(path), re.S)
            for path in sources(tree, "proxy/modules/*/features.h", "proxy/modules/*/descriptor.cc"))
    return own | {name for row in rows if row for name in re.findall(rf"\.name = {TEXT}", row[1])}


def reasons(tree):
    """Those of flows and those of modules."""
    return {code for path in sources(tree, "proxy/flows/reason.h", "proxy/modules/**/reason*.h")
            for code in re.findall(rf"constexpr ReasonText \w+\{{\s*{TEXT}", tree.text(path))}


def refusals(tree):
    """{code: (sentence, remedy)}"""
    source = re.sub(r'"\s*\n\s*"', "", tree.text("proxy/link/io/refusal.h"))
    rows = re.findall(rf"RefusalText\{{\s*Refusal::\w+,\s*{TEXT},\s*{TEXT},\s*{TEXT}\}}", source)
    return {code: (sentence, remedy) for code, sentence, remedy in rows}


def metrics(tree):
    source = "".join(tree.text(path) for path in tree.sources if path.match("proxy/control/metrics*.cc"))
    found = set(re.findall(rf"(?:gauge|counter)\(\s*{TEXT},", source))
    each = re.findall(rf"of_module\(module, {TEXT}\)", source)
    counters = re.findall(rf"CounterName\{{{TEXT}", tree.text("proxy/modules/counters.h"))
    return ({f"longhaul_{name}" for name in found} | {f"longhaul_module_{name}_total" for name in counters} |
            {f"longhaul_{module}_{name}" for module in modules(tree, "losses() override") for name in each})


def modules(tree, text=""):
    """Their names, as their descriptors give them; only of those that have `text`."""
    return {name for path in sources(tree, "proxy/modules/*/descriptor.cc") if text in tree.text(path)
            for name in re.findall(rf"Descriptor \w+\{{\s*\.name = {TEXT}", tree.text(path))}


def libraries(tree):
    """What CMake calls them, for their names look like those of metrics."""
    lists = [path for path in tree.files if path.name == "CMakeLists.txt"]
    return {name for path in lists for name in re.findall(r"add_library\((longhaul_\w+)", tree.text(path))}


def log_events(tree):
    """The first text of each call, and both where it chooses between two."""
    events = set()
    for path in sorted((tree.root / "proxy").rglob("*.[ch]*")):
        source = tree.text(path.relative_to(tree.root))
        for arguments in re.findall(r"(?:\blog::|\b)(?:error|warn|info|debug|trace|write)\(([^{;]*)\{", source):
            events |= set(re.findall(TEXT, arguments))
        events |= set(re.findall(rf"\.event = {TEXT}", source))  # of a module's state file
    return events


def messages(tree):
    """All texts of the sources, those that stand side by side joined as the compiler joins them."""
    found = []
    for path in sorted((tree.root / "proxy").rglob("*.[ch]*")):
        source = re.sub(r'"\s*\n\s*"', "", tree.text(path.relative_to(tree.root)))
        found += (text.replace('\\"', '"') for text in re.findall(TEXT, source))
    return found


def api_paths(tree):
    return set(re.findall(rf"Route\{{Topic::\w+,\s*{TEXT}", tree.text("proxy/control/api.cc")))


def api_fields(tree):
    """The names in the answers; what only tables of the program name (reasons, counters, causes) is documented with those."""
    source = "".join(tree.text(f"proxy/control/{name}.cc") for name in ("views", "flow_views", "link_views", "store_views"))
    return set(re.findall(r'(?:\{|\[)"([a-z][a-z0-9_]*)"(?:,|\])', source))


class Commands:
    """The commands of the program and their options."""

    def __init__(self, program):
        self.program = program
        help_text = self.run("--help")
        commands = help_text[help_text.index("Subcommands:"):]
        self.options = {name: self.options_of(name) for name in re.findall(r"^  ([a-z][a-z-]*) ", commands, re.M)}
        self.own = set(re.findall(r"--[a-z][a-z-]*", help_text))

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout

    def options_of(self, command):
        return set(re.findall(r"--[a-z][a-z-]*", self.run(command, "--help"))) | {"--help"}
