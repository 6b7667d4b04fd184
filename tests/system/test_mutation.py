"""The mutants of `make mutants`, and what its command makes of a small project."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mutation.operators import Kind, Mutant, mutants

SOURCE = '''
"""A text, in which 1 + 1 stays."""
import os

LARGEST_CROWD = 100
LEAST_CROWD = 10
_CROWD = 7

def draw(count: int = 2, random=os.urandom) -> bytes:
    """1 < 2."""
    if count < 1 or count > LARGEST_CROWD:
        raise ValueError(f"{count + 1} is wrong")
    check_crowd(count)
    drawn = {"bytes": random(count)}
    drawn["more"] = [each for each in range(count) if each != 3]
    if not drawn:
        raise ValueError
    return b"name" + drawn["bytes"]
'''


def made(source: str = SOURCE) -> dict[tuple[str, str], Mutant]:
    return {(each.text.strip(), each.change): each for each in mutants("a/b/c.py", source)}


def test_every_mutant_is_another_program_in_one_place() -> None:
    original = ast.unparse(ast.parse(SOURCE))
    every = list(mutants("a/b/c.py", SOURCE))
    assert len({each.key for each in every}) == len(every)
    written = Counter(each.source(SOURCE) for each in every)
    assert original not in written
    for source in written:
        compile(source, "c.py", "exec")
        changed = set(source.splitlines()) - set(original.splitlines())
        assert len(changed) <= 1 or "pass" in source


@pytest.mark.parametrize(
    ("text", "change", "kind", "left"),
    [
        ("LARGEST_CROWD = 100", "100 → 200", Kind.LIMIT, "LARGEST_CROWD = 200"),
        ("LEAST_CROWD = 10", "10 → 5", Kind.LIMIT, "LEAST_CROWD = 5"),
        ("_CROWD = 7", "7 → 8", Kind.ORDINARY, "_CROWD = 8"),
        ("if count < 1 or count > LARGEST_CROWD:", "no check", Kind.CHECK, None),
        ("if count < 1 or count > LARGEST_CROWD:", "Lt → LtE", Kind.ORDINARY, "count <= 1 or"),
        (
            *("if count < 1 or count > LARGEST_CROWD:", "without count < 1", Kind.ORDINARY),
            "if count > LARGEST_CROWD:",
        ),
        ("check_crowd(count)", "deleted", Kind.CHECK, None),
        ('drawn = {"bytes": random(count)}', "zeros", Kind.RANDOMNESS, "{'bytes': bytes(count)}"),
        (
            *("def draw(count: int = 2, random=os.urandom) -> bytes:", "zeros", Kind.RANDOMNESS),
            "random=bytes)",
        ),
        (
            *("def draw(count: int = 2, random=os.urandom) -> bytes:", "2 → 3", Kind.ORDINARY),
            "count: int=3,",
        ),
        (
            *('drawn["more"] = [each for each in range(count) if each != 3]', "unfiltered"),
            *(Kind.ORDINARY, "[each for each in range(count)]"),
        ),
        ('return b"name" + drawn["bytes"]', "other bytes", Kind.ORDINARY, "b'!name'"),
    ],
)
def test_what_is_broken(text: str, change: str, kind: Kind, left: str | None) -> None:
    mutant = made()[text, change]
    assert mutant.kind is kind
    source = mutant.source(SOURCE)
    if left is None:
        assert text.rstrip(":") not in source
    else:
        assert left in source


def test_what_is_said_and_what_is_text_is_left_alone() -> None:
    assert not any("wrong" in each.text and "Add" in each.change for each in made().values())
    for mutant in made().values():
        source = mutant.source(SOURCE)
        assert "in which 1 + 1 stays" in source
        assert "1 < 2." in source


# ------------------------------------------------------------------------------ the command

PROJECT = {
    "pyproject.toml": """
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]

[tool.earshot-mutants]
packages = ["tiny"]
files = ["lib/tiny"]
tests = ["tests/test_tiny.py"]
walkers = []
sampled = 100
""",
    "lib/tiny/__init__.py": "",
    "lib/tiny/doors.py": """
import os

LARGEST_PARTY = 4


def admit(party: int) -> int:
    if party > LARGEST_PARTY:
        raise ValueError("too many")
    return party


def ticket() -> bytes:
    return os.urandom(8)
""",
    "tests/conftest.py": """
from hypothesis import settings

settings.register_profile("quick", max_examples=5)
""",
    "tests/test_tiny.py": """
import pytest
from tiny.doors import LARGEST_PARTY, admit, ticket


def test_a_party_is_admitted():
    assert admit(LARGEST_PARTY) == LARGEST_PARTY
    with pytest.raises(ValueError):
        admit(LARGEST_PARTY + 1)


def test_a_ticket_has_a_length():
    assert len(ticket()) == 8
""",
    "tests/mutation/equivalent.toml": "",
}
STRONGER = """

def test_a_party_of_four_at_most():
    assert LARGEST_PARTY == 4


def test_no_two_tickets_are_alike():
    assert ticket() != ticket()
"""


def run(folder: Path) -> tuple[int, str]:
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(folder / "lib")])
    done = subprocess.run(
        [sys.executable, "-m", "mutation"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_weak_test_is_found_and_a_stronger_one_kills(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    status, said = run(tmp_path)
    assert status == 1, said
    alive = {line.partition("| ")[2] for line in said.splitlines() if line.startswith("alive")}
    assert alive == {
        "LARGEST_PARTY = 4 | 4 → 8",
        "LARGEST_PARTY = 4 | 4 → 5",
        "return os.urandom(8) | zeros",
    }

    kept = tmp_path / "out/mutants/results.jsonl"
    before = kept.read_text()
    assert run(tmp_path)[0] == 1
    assert kept.read_text() == before, "nothing was tried again"

    with (tmp_path / "tests/test_tiny.py").open("a") as file:
        file.write(STRONGER)
    status, said = run(tmp_path)
    assert status == 0, said
    again = [json.loads(line) for line in kept.read_text().splitlines()]
    assert all(each["killer"].startswith("tests/test_tiny.py::") for each in again[-3:])

    entry = '[[mutant]]\npath = "lib/tiny/doors.py"\nfunction = "admit"\n'
    (tmp_path / "tests/mutation/equivalent.toml").write_text(
        f'{entry}line = "return party"\nchange = "deleted"\nreason = "gone"\n'
    )
    status, said = run(tmp_path)
    assert status == 1, "what is listed has to be there"
    assert "listed as equivalent, and not there: ('lib/tiny/doors.py', 'admit'" in said
