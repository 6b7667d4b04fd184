"""English in docstrings, help texts and documents, as far as rules can tell."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("protocol", "client", "server", "models", "simulations")
VERBS = frozenset(
    """
    Accept Add Allow Answer Append Apply Ask Attach Attack Audit Begin Bound Break Bring Build Call
    Cast Charge Check Choose Claim Clean Clip Close Cluster Code Collect Commit Compare Compute
    Confirm Connect Constrain Convert Coordinate Copy Count Create Cut Deal Decode Degrade Delete
    Deliver Derive Describe Discover Divide Do Draw Drop Embed Encode End Enrol Ensure Enter Erase
    Escape Estimate Explain Extrapolate Fetch Figure Fill Filter Find Fit Flatten Forget Format
    Gather Give Go Group Halve Hand Hash Hear Hold Ignore Join Keep Label Learn Leave Let List Load
    Look Lose Make Map Mark Measure Merge Mix Move Muffle Name Normalize Note Open Pack Pass Place
    Plan Plant Play Post Prepare Print Probe Project Publish Put Queue Raise Read Rebuild Recompute
    Record Recover Reduce Refuse Release Remember Remove Render Replace Resample Restore Restrict
    Return Reword Round Run Save Say Scale Scatter Score Seal Search Sell Send Serve Set Share Shift
    Show Sign Signal Silence Simulate Sleep Split Start Stop Store Suppress Sweep Synthesize Tag
    Take Teach Tell Throw Time Toss Train Transform Try Turn Un-enrol Use Visit Wait Warn Weigh Work
    Wrap Write Yield
    """.split()  # noqa: SIM905 - a list of these would fill two pages
)
"""Verbs with which a function's docstring may start; a new one is added here."""
OPENERS = ("Of ", "What ", "That ", "See ", "So ", "As ")
SECTION = re.compile(r"(Args|Attributes|Raises):")
ENTRY = re.compile(r"    ([A-Za-z_*][\w*, ]*): (\S.*)")
PHRASES = {
    "so many": "this many, some",
    "as it comes": "by default",
    "in the mean": "on average",
    "allows to": "lets",
}
IS_NO = re.compile(r"(?<!here )\bis no (?!longer\b|more\b|less\b|better\b|worse\b|wider\b)")
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def modules(package: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def documented(package: str) -> Iterator[tuple[str, Documented, str]]:
    for path, module in modules(package):
        for node in ast.walk(module):
            if isinstance(node, Documented) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node, text


def is_property(node: Documented) -> bool:
    return any(ast.unparse(each).endswith("property") for each in node.decorator_list)


def attribute_texts(package: str) -> Iterator[tuple[str, str]]:
    """Strings that stand behind an assignment."""
    for path, module in modules(package):
        for node in ast.walk(module):
            body = getattr(node, "body", None)
            for before, text in itertools.pairwise(body) if isinstance(body, list) else ():
                if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Expr):
                    value = text.value
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        yield f"{path.relative_to(ROOT)}:{text.lineno}", value.value


def entries(text: str) -> Iterator[tuple[str, str]]:
    """The sections' entries."""
    inside = False
    for line in text.splitlines():
        if SECTION.fullmatch(line):
            inside = True
        elif line and not line.startswith(" "):
            inside = False
        elif inside and (found := ENTRY.fullmatch(line)):
            yield found[1], found[2]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_function_s_docstring_starts_with_a_verb(package: str) -> None:
    assert [
        f"{place}: {text.splitlines()[0]}"
        for place, node, text in documented(package)
        if not isinstance(node, ast.ClassDef)
        and not is_property(node)
        and text.split()[0].rstrip(",:;.") not in VERBS
    ] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_property_s_docstring_names_it(package: str) -> None:
    """It stands where an attribute's would: "Return …" is for what is called."""
    assert [
        f"{place}: {text.splitlines()[0]}"
        for place, node, text in documented(package)
        if is_property(node) and text.startswith((*OPENERS, "Return "))
    ] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_help_text_stands_alone(package: str) -> None:
    found = [
        f"{place}: {name}: {words}"
        for place, _, text in documented(package)
        for name, words in entries(text)
        if words[0].islower() or words.startswith(OPENERS)
    ]
    found += [f"{place}: {text}" for place, text in attribute_texts(package) if text[0].islower()]
    assert found == []


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_opens_with_of_or_what(package: str) -> None:
    found = [
        f"{place}: {text.splitlines()[0]}"
        for place, _, text in documented(package)
        if text.startswith(OPENERS)
    ]
    found += [
        f"{place}: {text}" for place, text in attribute_texts(package) if text.startswith(OPENERS)
    ]
    assert found == []


def test_a_class_name_means_one_thing() -> None:
    """But for a protocol and its implementation, side by side."""
    places: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for path, module in modules(package):
            for node in module.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    implemented = {
        name
        for name, paths in twice.items()
        if len({path.parent for path in paths}) == 1 and len(paths) == 2
        and "interface.py" in {path.name for path in paths}
    }  # fmt: skip
    assert twice.keys() == implemented


def texts() -> list[Path]:
    """Product code and documents; decisions stay as they were taken."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found += [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions"]
    return [*found, *ROOT.glob("*.md"), *ROOT.glob("*/README.md")]


def test_no_phrase_is_a_translated_one() -> None:
    found = []
    for path in texts():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            place = f"{path.relative_to(ROOT)}:{number}"
            low = line.lower()
            found += [f"{place}: '{each}': {PHRASES[each]}" for each in PHRASES if each in low]
            if IS_NO.search(line):
                found.append(f"{place}: 'is no': is not a, is not: {line.strip()}")
    assert found == []
