# SPDX-License-Identifier: Apache-2.0
"""Reads Markdown: tables, links, headings, code. Knows nothing of this program; what the pages must say is in facts.py
and check."""

import functools
import os
import pathlib
import re

FENCE = re.compile(r"^\s*```(\w*)")
LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
INLINE = re.compile(r"`([^`]+)`")


class Tree:
    """The files of a source tree. `changed` stands for files as they would be, for tests of the checks."""

    def __init__(self, root, changed=None):
        self.root = pathlib.Path(root)
        self.changed = changed or {}

    def text(self, path):
        path = str(path)
        return self.changed[path] if path in self.changed else (self.root / path).read_text(encoding="utf-8")

    def has(self, path):
        return str(path) in self.changed or (self.root / path).exists()

    @functools.cached_property
    def files(self):
        """Every file of the project, relative to the root; nothing that a build or a tool left there."""
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "build", "__")))
            at = pathlib.Path(folder).relative_to(self.root)
            found += (at / name for name in sorted(names))
        return found

    @property
    def pages(self):
        return [path for path in self.files if path.suffix == ".md" and path.name != "LEAD-NOTE.md"]

    @property
    def sources(self):
        return [path for path in self.files if path.suffix in (".h", ".cc", ".py")]


def split(text):
    """Yields (line number, line, language of the code block that the line is in, or None)."""
    language = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and language is None:
            language = fence[1] or "text"
        elif fence:
            language = None
        else:
            yield number, line, language


def code_blocks(text, language):
    """The contents of all blocks in that language."""
    blocks, lines, last = [], [], 0
    for number, line, of in split(text):
        if of != language:
            continue
        if lines and number != last + 1:
            blocks.append("\n".join(lines))
            lines = []
        lines.append(line)
        last = number
    return blocks + (["\n".join(lines)] if lines else [])


def prose(text):
    """Yields (line number, line) outside of code blocks."""
    return ((number, line) for number, line, language in split(text) if language is None)


def headings(text):
    """The anchors that a reader on the web can jump to."""
    anchors = {}
    for _, line in prose(text):
        if not (found := re.match(r"^#{1,6}\s+(.*)", line)):
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1].strip()).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = anchors.get(slug, 0)
        anchors[slug] = count + 1
        if count:
            anchors[f"{slug}-{count}"] = 1
    return set(anchors)


def section(text, heading):
    """What stands under a heading, up to the next one of its rank or higher; empty where there is none."""
    return _section(text, lambda found: found == heading)


def section_with(text, part):
    """The same under the first heading that has `part` in it, as one for several tables has their names."""
    return _section(text, lambda found: part in found)


def _section(text, wanted):
    lines, rank = [], 0
    for line in text.splitlines():
        found = re.match(r"^(#{1,6})\s+(.*)", line)
        if rank and found and len(found[1]) <= rank:
            break
        if rank:
            lines.append(line)
        elif found and wanted(found[2].strip()):
            rank = len(found[1])
    return "\n".join(lines)


def first_cells(text):
    """The code in the first cell of each table row: ["`a`, `b`"] gives a and b."""
    names = []
    for _, line in prose(text):
        if line.startswith("|"):
            names += INLINE.findall(line.split("|")[1])
    return names


def links(text):
    """Yields (line number, target) of every link that is not code."""
    for number, line in prose(text):
        for target in LINK.findall(INLINE.sub("", line) if "](" not in line else line):
            yield number, target
