"""Relative links of the documentation lead somewhere."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
INLINE = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def documents() -> list[Path]:
    """All Markdown files that belong to the repository, committed or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.splitlines()
    return [REPOSITORY / name for name in sorted(set(names)) if (REPOSITORY / name).exists()]


def links(text: str) -> Iterator[str]:
    """Targets of inline links outside of code."""
    plain = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    for match in INLINE.finditer(plain):
        if not EXTERNAL.match(match[1]):
            yield match[1]


def anchors(text: str) -> set[str]:
    """Anchors that GitHub gives to the headings."""
    found: set[str] = set()
    for title in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower())
        base = words.replace(" ", "-")
        name, count = base, 0
        while name in found:
            count += 1
            name = f"{base}-{count}"
        found.add(name)
    return found


def broken(document: Path) -> list[str]:
    """Link targets of a document that lead nowhere, with the reason."""
    problems = []
    for target in links(document.read_text()):
        path, _, anchor = target.partition("#")
        there = (document.parent / path).resolve() if path else document
        if not there.exists():
            problems.append(f"{target}: no such file")
        elif not there.is_relative_to(REPOSITORY):
            problems.append(f"{target}: leaves the repository")
        elif anchor and anchor not in anchors(there.read_text()):
            problems.append(f"{target}: no such heading")
    return problems


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_relative_links_resolve(document: Path) -> None:
    assert broken(document) == []


def test_a_broken_link_or_anchor_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.REPOSITORY", tmp_path)
    page = tmp_path / "a.md"
    page.write_text("# One title\n[x](b.md) [y](#two) [ok](#one-title) `[code](c.md)` [web](https://x.example/)\n")
    assert broken(page) == ["b.md: no such file", "#two: no such heading"]
