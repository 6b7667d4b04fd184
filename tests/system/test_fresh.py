"""What `make fresh` tries: every extra, every command, and whether a lower bound is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.closure import distributions
from support.fresh import CASES, Case, FailedError, pins, run
from support.lowest import too_low
from support.release import PHONE_EXTRAS, PROJECT

from earshot_client.command import SUB_COMMANDS
from earshot_protocol.distribution import NAME, PHONE


def test_every_extra_is_tried_with_its_distribution() -> None:
    tried = {(case.distribution, extra) for case in CASES for extra in case.extras or ("",)}
    extras = PROJECT["optional-dependencies"].keys() - {"dev"}
    assert tried == {
        *((NAME, extra) for extra in ("", *extras)),
        *((PHONE, extra) for extra in ("", *PHONE_EXTRAS)),
    }


@pytest.mark.parametrize(
    "name", [n for n, each in SUB_COMMANDS.items() if each.package != "studies"]
)
def test_every_command_is_tried_with_its_extras_and_no_more(name: str) -> None:
    command = SUB_COMMANDS[name]
    needed = Case(NAME, command.extras, ()).requirements
    around = [set(case.extras) for case in CASES if needed <= case.requirements]
    assert any(extras - set(command.extras) <= {"browsers"} for extras in around)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.distribution}-{case.extras}")
def test_an_environment_holds_what_its_extras_bring(case: Case) -> None:
    wanted = {Requirement(line).name for line in case.requirements}
    assert wanted <= distributions(*case.extras)
    assert {"numpy", "cryptography", "msgspec"} <= wanted


def test_the_locked_versions_are_constraints() -> None:
    found = [Requirement(each) for each in pins()]
    assert {"numpy", "jsonschema", "psycopg"} <= {each.name for each in found}
    assert not any(each.extras or each.url for each in found)
    assert all(str(each.specifier).startswith("==") for each in found)


def test_a_bound_below_what_is_installed_is_noticed(tmp_path: Path) -> None:
    for name, version in (("one", "1.4.2"), ("other", "2.0")):
        about = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
        about.parent.mkdir()
        about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    assert too_low(["one>=1.4", "other[extra]>=2.0"], tmp_path) == []
    assert too_low(["one>=1.3", "other>=2.0"], tmp_path) == [
        "one>=1.3: the lowest that can be installed is 1.4.2"
    ]


def test_a_command_that_fails_is_shown_with_what_it_said(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "echo $HOME").strip() == str(tmp_path)
    with pytest.raises(FailedError, match=r"sh -c echo no >&2; exit 3:\nno"):
        run(tmp_path, "sh", "-c", "echo no >&2; exit 3")
