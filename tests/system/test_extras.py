"""Each extra alone: the command answers, starts what it can, and says what the rest needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from support.closure import distributions, named
from support.networked import ServerProcess
from support.only import forget, only, site

from earshot_client.command import SUB_COMMANDS
from earshot_client.encoder import encoder_path
from earshot_client.hearing import Second
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_client.microphone import Microphone
from earshot_protocol import distribution
from earshot_protocol.distribution import MissingExtraError, installation, version
from earshot_protocol.errors import LocalError
from earshot_protocol.prio3 import xof
from earshot_server.data_frames import data_frame
from earshot_simulations import Discovery, Settings, SummationChoice, sweep
from earshot_simulations.engine import cluster

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REFERENCE = (ROOT / "docs" / "site" / "python.rst").read_text("utf-8")
MODULES = re.findall(r"^\.\. automodule:: (\S+)$", REFERENCE, re.MULTILINE)
QUICK = [("",)]
"""Without any: the others take seconds each."""
OTHERS = sorted(
    {(extra,) for extra in PROJECT["optional-dependencies"] if extra != "dev"}.union(
        command.extras for command in SUB_COMMANDS.values()
    ).difference(QUICK)
)


def joined(extras: tuple[str, ...]) -> str:
    return "+".join(extras) or "none"


@pytest.mark.parametrize(
    "extras", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)], ids=joined
)
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


@pytest.mark.slow
def test_a_server_is_operated_with_its_own_extra_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `deploy/install.sh` installs it: whatever phones need is not there."""
    for name, value in site(tmp_path, ["server"]).items():
        monkeypatch.setenv(name, value)
    with ServerProcess(tmp_path / "data") as server:
        place = ("--server", server.address, "--data", str(server.data))
        start = ("phase", "start", "--phones", "100", "--anyway", *place)
        started, *answers = only(
            tmp_path,
            ["server"],
            [*start, "--json"],
            [*start, "--labels", "home,street"],
            [*start, "--discovery", "local", "--recordings", "20"],
            [*start, "--statistics", "--budget", "histogram=0.25"],
            ["invite", *place],
            ["invite", "list", *place],
            ["phase", "list", *place],
            ["phones", "list", *place],
            ["operator", "audit", *place],
            ["budget", "--phones", "900"],
            ["phone-page", "--out", "page", "--server", "https://earshot.example"],
            ["backup", "server.earshot", "--data", str(server.data)],
        )
        assert started.status == 0, started.said
        phase = json.loads(started.printed)["phase"]
        answers += only(
            tmp_path,
            ["server"],
            ["phase", "show", phase, *place],
            ["phase", "export", phase, "--out", "phase.json", *place],
            ["phase", "stop", phase, *place],
        )
    assert [answer.said for answer in answers if answer.status] == []


# ------------------------------------------------------------------------------------- from Python


@pytest.mark.parametrize("extra", ["", "models"])
@pytest.mark.parametrize("module", [name for name in MODULES if "simulations" in name])
def test_importing_the_simulator_names_its_extra(module: str, extra: str, tmp_path: Path) -> None:
    """Also where another extra brings every library that the import itself needs."""
    program = f"try:\n    import {module}\nexcept ImportError as error:\n    print(error)"
    done = subprocess.run(  # noqa: S603 - the program above
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **site(tmp_path, filter(None, [extra]))},
    )
    assert done.stdout.startswith("earshot_simulations needs ")
    assert done.stdout.endswith(f", not installed here: {installation('simulations')}\n")


@pytest.fixture
def nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what other extras than `simulations` bring."""
    brought = named(distributions("simulations"))
    hidden = {name for name in distributions("dev") if not named([name]) <= brought}
    hidden.add(distribution.PHONE)
    monkeypatch.setattr(
        distribution,
        "_versions",
        lambda *names: {each: "1" for each in names if each not in hidden},
    )


@pytest.mark.usefixtures("nothing_more")
def test_a_sweep_names_its_extra_before_it_simulates_anything(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError, match=re.escape(installation("tables"))):
        sweep(Settings(), {"epsilon": [1.0, 2.0]}, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_phase_with_proofs_names_their_extra_before_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Phones bring it, unless somebody took it away."""
    monkeypatch.setattr(
        distribution,
        "_versions",
        lambda *names: {each: "1" for each in names if each != "pycryptodomex"},
    )
    settings = Settings(discovery=Discovery.LOCAL, summation=SummationChoice.TWO_OPERATORS)
    with pytest.raises(MissingExtraError, match=re.escape(installation("proofs"))):
        settings.check()


# -------------------------------------------------------------------- a library, missing or broken

USES: dict[str, tuple[str, str, Callable[[], object]]] = {
    "ai_edge_litert": ("ai-edge-litert", "phone", lambda: LiteRtEncoder.open(encoder_path())),
    "Cryptodome": ("pycryptodomex", "proofs", lambda: xof.derive_seed(bytes(32), b"", b"")),
    "pandas": ("pandas", "tables", lambda: data_frame([{"a": 1}])),
    "ray": ("ray", "cluster", cluster.library),
    "sounddevice": ("sounddevice", "microphone", lambda: Microphone(1).read(Second("one"))),
}
"""What imports a library when it is used: its package, its extra, and the use."""


@pytest.mark.parametrize("module", USES)
def test_a_library_that_is_missing_is_to_be_installed(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, extra, use = USES[module]
    forget(module, monkeypatch)
    with pytest.raises(LocalError) as refused:
        use()
    ending = f" need {package}, not installed here: {installation(extra)}"
    assert str(refused.value).endswith(ending)


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'other'", name="other"),
        ImportError("libother.so: cannot open shared object file"),
    ],
    ids=["needs another", "broken"],
)
@pytest.mark.parametrize("module", USES)
def test_a_library_that_is_broken_is_not_to_be_installed_again(
    module: str, error: ImportError, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == module:
                raise error

    package, _, use = USES[module]
    forget(module, monkeypatch)
    monkeypatch.setattr(sys, "meta_path", [Failing(), *sys.meta_path])
    with pytest.raises(LocalError) as refused:
        use()
    ending = f" need {package}, which is installed here and cannot be loaded: {error}"
    assert str(refused.value).endswith(ending)
