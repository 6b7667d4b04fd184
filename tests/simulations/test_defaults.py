"""What every command does by default, a phone as it comes accepts."""

from __future__ import annotations

import functools
import inspect
import re
import shlex
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.command import earshot
from support.documented import loaded, options

from earshot_client.encoder import encoder_path
from earshot_client.policy import Policy
from earshot_models.datasets.dataset import Clip, Dataset
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.discovery_budget import cell_counts
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_server.phases.options import Discovery, PhaseOptions
from earshot_server.phases.proposal import proposed
from earshot_simulations.benchmarks.api.benchmark import Setup
from earshot_simulations.commands import bench
from earshot_simulations.commands import simulate as simulating
from earshot_simulations.phases import simulation
from earshot_simulations.phases.settings import BLOBS, SOUNDSCAPES, PolicyChoice, Settings
from earshot_simulations.phases.settings import settings_of as configured

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 3, 2)


class AskedError(Exception):
    """A command came as far as asking for these parameters, or settings."""


def accept(parameters: Parameters, policy: Policy | None = None) -> None:
    (policy or Policy()).check_phase(parameters, Ledger(), TODAY)


def accept_local(parameters: Parameters) -> None:
    """A phone as it comes accepts all of it but what clustering on each phone costs the phone."""
    accept(parameters, Policy.per_recording())
    refused = Policy().refusals_of_phase(parameters, Ledger(), TODAY)
    assert [each.rule for each in refused] == [Rule.LARGEST_PHONE_EPSILON]


def each_of(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[Discovery, Settings]:
    """The settings under which `earshot simulate` with these options would run, by route."""
    found: dict[Discovery, Settings] = {}

    def instead(asked: dict[Discovery, Settings], progress: object) -> None:
        found.update(asked)
        raise AskedError

    monkeypatch.setattr(simulation, "simulate_routes", instead)
    two = tuple(Clip(Path(f"{name}/1.wav"), name, name) for name in "ab")  # there is no folder
    monkeypatch.setattr(simulating, "list_dataset", lambda folder: Dataset("sound", two))
    with pytest.raises(AskedError):
        earshot("simulate", *words)
    return found


def settings_of(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The same of one route."""
    (settings,) = each_of(words, monkeypatch).values()
    return settings


@pytest.mark.parametrize("data", [BLOBS, SOUNDSCAPES, "somewhere/sound"])
def test_simulations_by_default(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(["--data", data], monkeypatch)
    assert settings.corrupted >= Policy.least_corrupted
    accept(settings.any_parameters())
    assert settings.refusals(settings.agreement) == ()


def test_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = re.search(r"^DEMO := simulate (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert line is not None
    words = shlex.split(line[1].replace("$(OUT)", str(tmp_path)))
    asked = each_of(words, monkeypatch)
    accept(asked[Discovery.SECURE_SUM].any_parameters())
    accept_local(asked[Discovery.LOCAL].any_parameters())
    assert {route: settings.agreement for route, settings in asked.items()} == {
        Discovery.LOCAL: PolicyChoice.RECORDING,
        Discovery.SECURE_SUM: PolicyChoice.DEFAULT,
    }


def test_what_the_readme_simulates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "simulating.md").read_text()
    commands = re.findall(r"earshot simulate((?: .*\\\n)*.*)", text.replace("`", "\n"))
    given = [command for command in commands if "--data" in command]
    assert len(given) >= 2
    for command in given:
        words = shlex.split(command.replace("\\\n", " "))
        if "--out" in words:
            words[words.index("--out") + 1] = str(tmp_path / "new")
        if "mine.npz" in words:  # which is read before any work
            rows = np.arange(1600)
            mine = tmp_path / "mine.npz"
            np.savez(mine, vectors=np.eye(2, 8)[rows % 2], labels=rows % 2, phone=rows // 4)
            words[words.index("mine.npz")] = str(mine)
        if "--encoder" in words:  # which is opened before any work
            words[words.index("--encoder") + 1] = str(encoder_path())
        for settings in each_of(words, monkeypatch).values():
            assert settings.refusals(settings.agreement) == (), command


def started(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Parameters:
    """The parameters of the phase that `earshot phase start` with these options would start."""
    asked: list[Parameters] = []

    def check(parameters: Parameters) -> None:
        asked.append(parameters)
        raise AskedError

    for kind in Parameters.__subclasses__():
        monkeypatch.setattr(kind, "check_feasible", check)
        monkeypatch.setattr(kind, "check", check)
    with pytest.raises(AskedError):
        earshot("phase", "start", "--phones", "500", *words)
    monkeypatch.undo()
    return asked[0]


@pytest.mark.parametrize("words", [[], ["--discovery", "local"], ["--statistics"]])
def test_phases_that_an_operator_starts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (accept_local if "local" in words else accept)(started(words, monkeypatch))


@pytest.mark.parametrize("epsilon", [None, 1.5])
def test_whoever_asks_for_a_learning_phase_gets_the_same_one(
    epsilon: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--discovery", "local"] + ([] if epsilon is None else ["--epsilon", str(epsilon)])
    by_operator = started(words, monkeypatch)
    asked = {"discovery": "local", "data": SOUNDSCAPES, "phones": 500, "dropout": 0.2}
    asked |= {} if epsilon is None else {"epsilon": epsilon}
    with_data = [*words, "--data", SOUNDSCAPES, "--phones", "500", "--dropout", "0.2"]
    proposal = PhaseOptions(
        phones=500,
        epsilon=epsilon,
        delta=1e-6,
        discovery=Discovery.LOCAL,
        labels=("any label",),
        dropout=0.2,
        corrupted=0.05,
    )
    others = (
        settings_of(with_data, monkeypatch).any_parameters(),
        Settings(**{**asked, "discovery": Discovery.LOCAL}).any_parameters(),  # type: ignore[arg-type]
        configured(asked).any_parameters(),
        proposed(proposal, Unit.RECORDING)[0],
    )
    for other in others:
        assert _without_classes(other) == _without_classes(by_operator)


@pytest.mark.parametrize("words", ["phase start --phones 500 --dry-run", "simulate"])
def test_an_epsilon_and_a_budget_at_once_are_refused_by_name(words: str) -> None:
    budget = "clustering=1,selection=0.25,centroid-vote=0.5,label-vote=0.5"
    asked = [*words.split(), "--discovery", "local", "--epsilon", "2", "--budget", budget]
    refused = earshot(*asked)
    assert refused.returncode == 2
    assert refused.stderr.startswith("earshot: --epsilon and --budget: give one of them")


def _without_classes(parameters: Parameters) -> Parameters:
    """The parameters but for the encoder and the labels, which are those of the sound."""
    of_labels: dict[str, Any] = {"encoder": "", "labels": (), "hierarchy": b""}
    if isinstance(parameters, PhaseParameters):
        of_labels |= {"top_global_centroids": 1, "label_votes": 1}
    return msgspec.structs.replace(parameters, **of_labels)


def test_benchmarks() -> None:
    phones, dropout, step_seconds = (_default(bench.api, name) for name in (
        "phones", "dropout", "step_seconds"
    ))  # fmt: skip
    setup = Setup(int(phones), 0, dropout, step_seconds, 1, 1, 0)
    accept_local(setup.parameters())
    assert _default(bench.secure_sum, "corrupted") >= Policy.least_corrupted
    assert _default(bench.secure_sum, "dropout") <= Policy.largest_dropout
    assert _default(bench.secure_sum, "phones") >= Policy.least_phones


def _default(command: object, name: str) -> Any:
    default = inspect.signature(command).parameters[name].default  # type: ignore[arg-type]
    return int(default) if name in {"phones", "recordings"} else float(default)


@pytest.mark.parametrize("words", ["simulate", "budget", "phase start"])
def test_help_texts_state_the_defaults_that_hold(words: str) -> None:
    """A default that depends on other options stands in words, which nothing else would check."""
    name, *below = words.split()
    command = functools.reduce(lambda app, word: app[word], below, loaded(name))
    said = {
        name: " ".join((argument.parameter.help or "").split())
        for name, argument in options(command).items()
    }
    few, many = (cell_counts(phones, 2.0, 1e-6).start for phones in (100, 10**6))
    assert f"by default {few}, or {many} if" in said["--cells"]
    assert f"by default {discovery_budget.MOST_CELLS}, or --cells" in said["--most-cells"]
    assert f"by default {discovery_budget.EPSILON:g}." in said["--epsilon"]
    if words == "budget":
        return
    route = f"on the local route {learning_budget.DIMENSIONS}."
    assert f"by default {discovery_budget.DIMENSIONS}, {route}" in said["--dimensions"]
    assert f"({', '.join(SHIPPED_ENCODERS)})" in said["--encoder"]
    if words == "simulate":
        assert f"by default {DEFAULT_ENCODER}." in said["--encoder"]
