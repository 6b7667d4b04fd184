"""`earshot reproduce`: every study is a command, in a checkout alone."""

from __future__ import annotations

import inspect
import sys

import pytest
from support import command
from support.documented import loaded, options, subcommands

from earshot_studies.commands.reproduce import STUDIES


class Wheel:
    """Finds no studies, as where they are not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "earshot_studies":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("name", STUDIES)
def test_every_option_of_a_study_says_what_it_is(name: str) -> None:
    parameters = inspect.signature(STUDIES[name]).parameters
    command = subcommands(loaded("reproduce"))[name]
    found = options(command)
    assert {each.replace("_", "-") for each in parameters} == {
        option.removeprefix("--") for option in found
    }
    assert all(str(each.parameter.help).endswith(".") for each in found.values())


def test_a_wheel_says_where_the_studies_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "earshot_studies"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Wheel(), *sys.meta_path])
    done = command.earshot("reproduce", "liebenow-9.6", "--out", "out")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("earshot reproduce: ")
    assert "simulations/earshot_studies" in line
