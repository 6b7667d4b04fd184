"""Each extra alone: the command answers, starts what it can, and says what it lacks or is broken."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from support.closure import distributions
from support.only import only

from earshot_client.command import SUB_COMMANDS
from earshot_protocol.distribution import installation, version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(
    {("",)}
    | {(extra,) for extra in PROJECT["optional-dependencies"] if extra != "dev"}
    | {command.extras for command in SUB_COMMANDS.values()}
)


@pytest.mark.parametrize("extras", EXTRAS, ids="+".join)
def test_the_command_starts_what_it_can_and_says_what_the_rest_needs(
    extras: tuple[str, ...], tmp_path: Path
) -> None:
    asked = [[name, "--help"] for name in SUB_COMMANDS]
    shown, help_, typo, *answers = only(
        tmp_path, filter(None, extras), ["--version"], ["--help"], ["srve", "--data", "x"], *asked
    )
    assert shown == (0, f"{version()}\n", "")
    assert (help_.status, help_.said) == (0, "")
    assert (typo.status, typo.printed) == (2, "")
    assert typo.said.startswith("earshot: no such command: srve; did you mean serve?")
    brought = distributions(*filter(None, extras))
    listed = " ".join(help_.printed.split())
    for (name, command), answer in zip(SUB_COMMANDS.items(), answers, strict=True):
        needed = ",".join(command.extras)
        if distributions(*command.extras) <= brought:
            assert (answer.status, answer.said) == (0, ""), name
            assert answer.printed.startswith(f"Usage: earshot {name}")
            assert f" {name} {command.help} [{needed}]" in listed
        else:
            assert (answer.status, answer.printed) == (2, ""), name
            assert answer.said.startswith(f"earshot: earshot {name} needs ")
            assert answer.said.endswith(f", not installed here: {installation(*command.extras)}\n")
            assert f" {name} {command.help} [{needed}: not installed]" in listed
