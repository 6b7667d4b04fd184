"""`earshot reproduce`: every study is a command, in a checkout alone."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest
from support import command
from support.documented import loaded, options, subcommands

from earshot_protocol import distribution
from earshot_studies.commands.reproduce import STUDIES


class Wheel:
    """A finder of modules that finds no studies, as where they are not installed."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        return None if name == "earshot_studies" else self._finder.find_spec(name, path, target)


@pytest.mark.parametrize("name", STUDIES)
def test_every_option_of_a_study_says_what_it_is(name: str) -> None:
    parameters = inspect.signature(STUDIES[name].command).parameters
    command = subcommands(loaded("reproduce"))[name]
    found = options(command)
    assert {each.replace("_", "-") for each in parameters} == {
        option.removeprefix("--") for option in found
    }
    assert all(str(each.parameter.help).endswith(".") for each in found.values())


@pytest.mark.parametrize(
    "words",
    ["", "--help", "--list", "nothing-of-this-name", "liebenow-9.6", "liebenow-9.6 --out out"],
)
def test_a_wheel_says_first_where_the_studies_are(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked, and before it asks for extras that would be of no use."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "earshot_studies"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Wheel(each) for each in sys.meta_path])
    monkeypatch.setattr(distribution, "missing", lambda extras: ["flask"])
    done = command.earshot("reproduce", *words.split())
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("earshot: studies of papers are not in the wheels: ")
    assert "simulations/earshot_studies" in line


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("liebenow-9.3b", "--recordings"),
        ("liebenow-9.5a", "--phones"),
        ("liebenow-9.5b", "--jobs"),
        ("growing-crowd", "--phones"),
        ("phone-unit", "--phones"),
        ("names", "--phones"),
        ("personalized-labels", "--students"),
    ],
)
def test_an_option_that_a_study_cannot_take_is_not_offered_and_refused(
    name: str, option: str
) -> None:
    """By its name, with those that the study takes."""
    asked = command.earshot("reproduce", name, "--help")
    assert option not in asked.stdout
    found = options(subcommands(loaded("reproduce"))[name])
    needed = [word for each in ("--out", "--data") if each in found for word in (each, "nowhere")]
    done = command.earshot("reproduce", name, *needed, option, 3)
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr.strip()
    assert f"Unknown option: {option}." in said
    taken = said.partition(f"earshot reproduce {name} takes ")[2].rstrip(".").split(", ")
    assert set(taken) == set(found)


def test_without_a_name_all_studies_are_listed() -> None:
    done = command.earshot("reproduce")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for name, study in STUDIES.items():
        place = next(i for i, line in enumerate(lines) if line.startswith(f"{name}: "))
        assert study.redoes in lines[place]
        assert f"CPU: {study.cpu}" in lines[place]
        assert study.shows.startswith(lines[place + 1].strip())


def test_a_study_that_does_not_exist_is_refused_by_name() -> None:
    done = command.earshot("reproduce", "liebenow-9.9")
    assert (done.returncode, done.stdout) == (2, "")
    assert "liebenow-9.9: there is no such study; did you mean liebenow-9." in done.stderr
