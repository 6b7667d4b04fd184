"""`earshot budget`: what it proposes costs what was asked for, and says what it buys."""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import earshot

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.discovery import LABELS as LABELLED
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.learning import CENTROID_VOTE
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise, SkellamNoise
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import GRID, Unit, VectorSum
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.voting.vectors import moved_by_direction, unit_steps
from earshot_server.dashboard.spending import OF_NAMED_RECORDINGS
from earshot_server.discovery.prototypes import prototypes
from earshot_server.phases.expected import least_clear
from earshot_server.phases.options import Discovery, PhaseOptions
from earshot_server.phases.proposal import Proposal, proposed

LABELS = ("café", "office", "station")


def proposal_of(
    unit: Unit = Unit.PHONE, *, any_delta: bool = False, **changes: Any
) -> tuple[Parameters, Proposal]:
    usual = PhaseOptions(
        phones=3000,
        epsilon=1.0,
        delta=1e-6,
        discovery=Discovery.SECURE_SUM,
        recordings=100,
        labels=LABELS,
        dropout=0.2,
        corrupted=0.05,
    )
    return proposed(replace(usual, **changes), unit, any_delta=any_delta)


@pytest.mark.parametrize(
    ("discovery", "unit", "epsilon"),
    [
        (Discovery.SECURE_SUM, Unit.PHONE, 1.0),
        (Discovery.SECURE_SUM, Unit.RECORDING, 0.3),
        (Discovery.SECURE_SUM, Unit.REPLACED_PHONE, 2.0),
        (Discovery.LOCAL, Unit.RECORDING, 2.5),
        (Discovery.LOCAL, Unit.PHONE, 8.0),
    ],
)
def test_a_phase_costs_what_was_asked_for(discovery: Discovery, unit: Unit, epsilon: float) -> None:
    parameters, proposal = proposal_of(discovery=discovery, unit=unit, epsilon=epsilon)
    events = [each.event(unit) for each in parameters.plan().mechanisms.values()]
    cost = composed_epsilon(events, 1e-6)
    assert epsilon * (1 - 1e-6) <= cost <= epsilon
    price = proposal.prices[unit.value]
    assert price.epsilon == cost
    assert price.yearly_epsilon is None or epsilon < price.yearly_epsilon < 12 * epsilon
    assert [each.step for each in proposal.steps] == list(parameters.plan().mechanisms)
    assert all(each.epsilon is not None and each.epsilon < epsilon for each in proposal.steps)


def test_prices_are_of_the_same_phase() -> None:
    _, proposal = proposal_of(labels=(*LABELS, "park"))
    by_unit = {unit: proposal.prices[unit.value].epsilon or math.inf for unit in Unit}
    assert by_unit[Unit.PHONE] == by_unit[Unit.RECORDING]
    assert by_unit[Unit.REPLACED_PHONE] > 2 * by_unit[Unit.PHONE]
    _, three = proposal_of()
    rounded = three.prices["recording"].epsilon
    assert rounded is not None
    assert 1 < rounded < 1.0001, "a row is long beside so few, and two roundings show"
    _, local = proposal_of(discovery=Discovery.LOCAL, unit=Unit.RECORDING)
    assert (local.prices["phone"].epsilon or math.inf) > 50


@pytest.mark.parametrize("kinds", [1, 6])
def test_an_environment_is_seen_by_phones_enough(kinds: int) -> None:
    parameters, proposal = proposal_of(kinds=kinds)
    assert isinstance(parameters, DiscoveryParameters)
    assert proposal.needed is not None
    assert proposal.steps[-1].deviation == pytest.approx(parameters.labels_noise)
    # As many as make a row that points to a cell stand clear, and no fewer.
    deviation = GRID * parameters.labels_noise * math.sqrt(3000 / parameters.noise_survivors)
    rows, cells = 3 * kinds, np.eye(40, 64)
    assert parameters.dimensions == 64

    def clear(phones: int) -> bool:
        total = np.zeros((rows, 65))
        total[0, :64] = phones * math.sqrt(15) / 4 * unit_steps(rows * 65) * cells[0]
        p_value = prototypes(np.rint(total).astype(np.int64), deviation, cells).p_values[0]
        return bool(p_value <= LEVEL)

    assert clear(proposal.needed)
    assert not clear(proposal.needed - 1)
    _, few = proposal_of(epsilon=0.3, phones=110)
    assert few.needed is None
    assert few.environments == 0
    _, many = proposal_of(phones=30_000)
    assert many.environments == len(LABELS)
    labels = tuple(f"l{number}" for number in range(200))
    few, shared = proposal_of(labels=labels, phones=400)
    # A phone with e labels alike adds 1/√e to each.
    assert shared.needed is not None
    assert shared.environments == int((few.honest_survivors / shared.needed) ** 2)
    assert 1 < shared.environments < 200


HIERARCHY = LabelHierarchy({"café": ("café", "bar"), "office": (), "station": ("train", "bus")})


def finer(**changes: Any) -> tuple[DiscoveryParameters, Proposal]:
    choices = tuple(HIERARCHY.groups.values())
    parameters, proposal = proposal_of(finer=True, choices=choices, **changes)
    assert isinstance(parameters, DiscoveryParameters)
    return parameters, proposal


def test_choices_with_prototypes_have_rows_and_every_recording_adds_to_two() -> None:
    parameters, proposal = finer()
    usual, without = proposal_of()
    assert isinstance(usual, DiscoveryParameters)
    assert (usual.rows, parameters.rows) == (3, 6), "café is a choice and a label"
    parameters.check()
    mechanism = parameters.plan().mechanisms[LABELLED]
    assert isinstance(mechanism, VectorSum)
    assert (mechanism.length, mechanism.recording) == (6 * 65, moved_by_direction(6 * 65, 2 * 65))
    # Where each of them is split by kinds of sound, a recording is of one kind.
    split = finer(kinds=5)[0].plan().mechanisms[LABELLED]
    assert isinstance(split, VectorSum)
    assert (split.length, split.recording) == (
        5 * 6 * 65,
        moved_by_direction(5 * 6 * 65, 2 * 65),
    )
    # It costs what was asked for, in either unit.
    for unit in (Unit.PHONE, Unit.RECORDING):
        _, priced = finer(unit=unit)
        assert priced.prices[unit.value].epsilon == pytest.approx(1.0, rel=1e-6)
    # A phone's vector is shared between a label and its choice.
    assert proposal.needed is not None
    assert without.needed is not None
    assert math.sqrt(2) <= proposal.needed / without.needed < 1.6


def test_labels_without_choices_cannot_have_finer_prototypes() -> None:
    with pytest.raises(InvalidParametersError, match=r"^finer: the labels have no choices"):
        proposal_of(finer=True)


@pytest.mark.parametrize(
    "law", [DiscreteLaplaceNoise(3.0, 1.2), SkellamNoise(30.0), SkellamNoise((5.0 * GRID) ** 2)]
)
def test_the_least_clear_sum_is_the_first_one(law: DiscreteLaplaceNoise | SkellamNoise) -> None:
    least = least_clear((law,), 50)
    assert law.at_least([least])[0] * 50 <= LEVEL
    assert law.at_least([least - 1])[0] * 50 > LEVEL


@pytest.mark.parametrize(("phones", "candidates"), [(300, 30), (5000, 100)])
def test_the_first_vote_is_among_all_candidates_of_such_a_crowd(
    phones: int, candidates: int
) -> None:
    parameters, told = proposal_of(
        Unit.RECORDING, discovery=Discovery.LOCAL, epsilon=2.5, phones=phones
    )
    noise = parameters.plan().mechanisms[CENTROID_VOTE].noise(phones)
    assert told.needed == least_clear((noise,), candidates)
    assert told.needed > least_clear((noise,), 10)


def test_what_default_phones_refuse_is_told() -> None:
    _, accepted = proposal_of(epsilon=0.5)
    assert accepted.refusals == ()
    assert 12 < accepted.yearly_phases < accepted.lifetime_phases <= 1000
    _, usual = proposal_of(phones=1000, epsilon=2.0)
    assert usual.refusals == ()
    assert 12 <= usual.yearly_phases < usual.lifetime_phases < accepted.lifetime_phases
    _, local = proposal_of(discovery=Discovery.LOCAL, unit=Unit.RECORDING)
    assert "largest_phone_epsilon" in {refusal.rule for refusal in local.refusals}
    assert local.yearly_phases == 0
    _, thin = proposal_of(phones=60, corrupted=0.0)
    assert {refusal.rule for refusal in thin.refusals} >= {"least_phones", "least_corrupted"}


def test_a_phone_takes_part_as_often_as_is_told() -> None:
    parameters, proposal = proposal_of(phones=1000, epsilon=2.0)
    limits, ledger, today = Limits(), Ledger(), date(2026, 1, 1)
    for number in range(proposal.yearly_phases):
        assert not list(limits.refusals_of_phase(parameters, ledger, today))
        ledger.append(number.to_bytes(16), parameters.plan().expenses(), today)
    (refused,) = limits.refusals_of_phase(parameters, ledger, today)
    assert refused.rule == "largest_yearly_phone_epsilon"


# ------------------------------------------------------------------------------------ the command


def test_the_command_says_what_more_prototypes_cost_and_how_to_start_them(tmp_path: Path) -> None:
    file = tmp_path / "places.json"
    file.write_text(json.dumps({name: list(own) for name, own in HIERARCHY.groups.items()}))
    asked = ("--phones", "3000", "--epsilon", "1", "--hierarchy", str(file))
    usual, text = run(*asked), run(*asked, "--finer")
    assert "their own prototypes" not in usual
    assert "3 choices of polls get their own prototypes, in addition to 3 labels" in text
    assert "the length of a label falls by up to √2" in text
    assert "the sum of labels has 6 × 64 numbers, not 3 × 64" in text
    sent, less = re.findall(r"each phone sends ([\d.]+) kB for it, not ([\d.]+) kB", text)[0]
    assert float(sent) > float(less)
    words = shlex.split(text.splitlines()[-1].removeprefix("to start it: "))
    assert "--finer" in words
    started = earshot(*words[1:], "--dry-run", "--verbose", "--server", "http://127.0.0.1:9")
    assert started.returncode == 0
    assert "3 choices of polls get their own prototypes" in started.stdout
    assert "labels: a secure sum with k = " in started.stdout
    split = run(*asked, "--kinds", "6")
    assert "a label gets up to 6 prototypes, one for each kind of sound that it covers" in split
    assert "the sum of labels has 18 × 64 numbers, not 3 × 64" in split
    assert " --kinds 6" in split.splitlines()[-1]
    assert "--kinds" not in usual
    flat = earshot("budget", "--phones", "3000", "--labels", "a,b", "--finer")
    assert flat.returncode == 2
    assert "finer: the labels have no choices besides themselves" in flat.stderr


def run(*options: str) -> str:
    result = earshot("budget", *options)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_the_table_says_what_the_json_says() -> None:
    text = run("--phones", "3000", "--epsilon", "1", "--labels", "café,office")
    told = json.loads(
        run("--phones", "3000", "--epsilon", "1", "--labels", "café,office", "--json")
    )
    proposal = told["proposal"]
    assert "3 000 phones, 2250 of them assumed to" in text.replace("\u202f", " ")
    for step in proposal["steps"]:
        assert step["step"] in text
    assert f"a label gets a clear prototype if {proposal['needed']} phones or more" in text
    assert f"accepts this phase, {proposal['yearly_phases']} times within a year" in text
    assert "12 of them in a year" in text
    assert told["wanted"]["labels"] == ["café", "office"]
    assert proposal["prices"]["phone"]["epsilon"] == pytest.approx(1.0, rel=1e-6)


def test_what_can_be_learned_is_told_with_what_phones_labelled() -> None:
    """The verdict counts on phones with one label each; more labels fit if phones share theirs."""
    said = run("--phones", "50")
    assert "1 label can get one together, if every phone labelled only one; 3, if every" in said
    assert "50 phones can learn up to 1 of 11 labels here" in said


def test_the_unit_follows_the_route() -> None:
    local = json.loads(run("--phones", "500", "--discovery", "local", "--json"))
    assert local["wanted"]["unit"] == "recording"
    said = run("--phones", "500", "--discovery", "local")
    assert "noise on the phone itself" in said
    assert OF_NAMED_RECORDINGS in said
    assert OF_NAMED_RECORDINGS not in run("--phones", "500")


@pytest.mark.parametrize(
    ("options", "unit", "epsilon"),
    [
        (("--phones", "3000", "--epsilon", "1", "--labels", "a café,office"), "phone", 1.0),
        (("--phones", "3000", "--cells", "20", "--unit", "recording"), "recording", 2.0),
        (("--phones", "500", "--discovery", "local", "--epsilon", "2"), "recording", 2.0),
    ],
)
def test_the_command_that_starts_it_costs_the_same(
    options: tuple[str, ...], unit: str, epsilon: float
) -> None:
    last = run(*options).splitlines()[-1]
    words = shlex.split(last.removeprefix("to start it: "))
    assert words[:3] == ["earshot", "phase", "start"]
    words = [*words[1:], "--dry-run", "--anyway", "--json", "--server", "http://127.0.0.1:9"]
    started = earshot(*words)
    assert started.returncode == 0
    forecast = json.loads(started.stdout)["forecast"]
    # To the digits that are printed, and at the same δ.
    assert forecast["total"][unit]["epsilon"] == pytest.approx(epsilon, rel=2e-2)
    assert forecast["phones"] == int(options[1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": math.nan}, r"^epsilon="),
        ({"epsilon": math.inf}, r"^epsilon="),
        ({"epsilon": -1.0}, r"^epsilon="),
        ({"epsilon": 1e-5}, r"cells-1: the noise is too large.*larger epsilon"),
        ({"delta": math.nan}, r"^delta="),
        ({"delta": -1e-6}, r"^delta="),
        ({"delta": 1 / 3000}, r"^delta=.*1/phones"),
        ({"delta": 1e-12}, r"out of reach"),
        ({"phones": 0}, r"^phones="),
        ({"dropout": math.nan}, r"^dropout="),
        ({"corrupted": math.inf}, r"^corrupted="),
        ({"label_share": math.nan}, r"^label_share="),
        ({"label_share": 1.0}, r"^label_share="),
        ({"sums": 9}, r"^sums="),
        ({"cells": 0}, r"^cells="),
        ({"kinds": 0}, r"^kinds="),
        ({"kinds": 17}, r"^kinds="),
        ({"recordings": 0}, r"^recordings="),
    ],
)
def test_a_value_out_of_range_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        proposal_of(**change)


def test_a_large_delta_can_be_forced() -> None:
    _, forced = proposal_of(delta=0.01, any_delta=True)
    assert forced.prices["phone"].epsilon == pytest.approx(1.0, rel=1e-6)
