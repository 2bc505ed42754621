"""The documentation names all there is: reasons, conditions, dependencies, commands, decisions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from headwater_contracts.reasons import ConditionType, GroupConditionType, Reason
from headwater_operator.api.parsing import parse_pool

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = REPOSITORY / "docs"
RECORDS = sorted((DOCS / "adr").glob("[0-9]*.md"))


def in_first_column(page: Path) -> set[str]:
    """Words in code marks in the first cell of a table row."""
    cells = re.findall(r"^\| ([^|]*)\|", page.read_text(), re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("word", [*ConditionType, *GroupConditionType, *Reason])
def test_every_condition_and_reason_is_explained(word: str) -> None:
    assert str(word) in in_first_column(DOCS / "conditions.md")


def test_no_reason_is_explained_that_does_not_exist() -> None:
    known = {str(word) for word in [*ConditionType, *GroupConditionType, *Reason]}
    assert in_first_column(DOCS / "conditions.md") - known == set()


def direct_dependencies() -> set[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    listed = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(item for extra in project["project"]["optional-dependencies"].values() for item in extra),
        *(item for group in project["dependency-groups"].values() for item in group),
    ]
    return {re.split(r"[\s<>=!~\[;]", item, maxsplit=1)[0] for item in listed}


def test_every_direct_dependency_has_its_reason_and_none_is_left_over() -> None:
    sections = (DOCS / "dependencies.md").read_text().split("\n## ")
    python = "\n".join(section for section in sections if section.startswith("Python"))
    rows = re.findall(r"^\| (`.*?) \|", python, re.MULTILINE)
    got = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert got == direct_dependencies()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/admin-guide.md"])
def test_every_make_target_that_is_named_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    targets |= {
        name
        for line in re.findall(r"^\.PHONY: (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        for name in line.split()
    }
    named = set(re.findall(r"(?:^|`|\s)make ([a-z][a-z0-9-]*)(?=`|\s|$)", (REPOSITORY / page).read_text()))
    assert named - targets - {"help"} == set()


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_decision_record_has_its_parts_and_is_listed(record: Path) -> None:
    text = record.read_text()
    number = record.name[:4]
    assert text.startswith(f"# {number}. ")
    assert re.search(r"^Date: \d{4}-\d{2}-\d{2}\. Status: (proposed|accepted|replaced)", text, re.MULTILINE)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert f"]({record.name})" in (DOCS / "adr" / "README.md").read_text()


def test_decision_records_are_numbered_without_a_gap() -> None:
    assert [int(record.name[:4]) for record in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_changelog_fragments_have_names_that_towncrier_takes() -> None:
    fragments = [path for path in (REPOSITORY / "changelog.d").iterdir() if not path.name.startswith(".")]
    pattern = re.compile(r"^(\d+|\+[a-z0-9-]+)\.(feature|bugfix|doc|removal|misc)\.md$")
    assert fragments
    assert [path.name for path in fragments if not pattern.match(path.name)] == []


def stalling_reasons() -> set[str]:
    """Reasons below the heading of those that wait for a person."""
    page = (DOCS / "conditions.md").read_text()
    section = page.partition("## Reasons that wait for a person")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` ", section, re.MULTILINE))


def test_admin_guide_has_a_remedy_for_every_reason_to_stall() -> None:
    guide = (DOCS / "admin-guide.md").read_text()
    assert stalling_reasons()
    assert [reason for reason in stalling_reasons() if f"`Stalled=True`, `{reason}`" not in guide] == []


@pytest.mark.parametrize("page", ["README.md", "docs/admin-guide.md"])
def test_pools_shown_in_the_docs_are_valid(page: str) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```", (REPOSITORY / page).read_text(), re.MULTILINE | re.DOTALL):
        for document in yaml.safe_load_all(block):
            assert document["kind"] == "InferencePool"
            assert parse_pool(document)


def test_examples_use_only_engine_arguments_that_the_chart_allows_by_default() -> None:
    values = yaml.safe_load((REPOSITORY / "charts" / "headwater" / "values.yaml").read_text())
    allowed = set(values["engine"]["allowedEngineArgs"])
    for example in sorted((DOCS / "examples").glob("*.yaml")):
        for pool in yaml.safe_load_all(example.read_text()):
            assert set(pool["spec"]["engine"].get("extraArgs", {})) <= allowed, example.name


def test_values_named_in_the_docs_exist_in_the_chart() -> None:
    values = yaml.safe_load((REPOSITORY / "charts" / "headwater" / "values.yaml").read_text())
    for page in ("admin-guide.md", "conditions.md"):
        text = (DOCS / page).read_text()
        sections = "|".join(sorted(values))
        for path in set(re.findall(rf"(?:`|--set )'?((?:{sections})\.[A-Za-z.]+[A-Za-z])", text)):
            at = values
            for name in path.split("."):
                assert name in at, f"{page}: {path}"
                at = at[name]
