"""What is said of a phase before it starts is what comes of it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from support.examples import examples
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)
from support.played_phase import PARAMETERS, make_phones
from support.points import AGREES, HeardPoints

from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.api import StartPhase
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.discovery_budget import affordable
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import CENTROID_VOTE, Budget
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.accounting import total
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise, NoiseLaw
from earshot_protocol.privacy.mechanisms import GRID, LEDGER_UNITS, Unit
from earshot_protocol.privacy.noise import skellam_share
from earshot_protocol.privacy.significance import LEVEL, name_p_values
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import Matrix, encode
from earshot_server.dashboard import prospects
from earshot_server.dashboard.spending import DEARER_RECORDING, OF_NAMED_RECORDINGS
from earshot_server.dashboard.wording import byte_size, whole
from earshot_server.discovery.cells import moved_cells
from earshot_server.discovery.optics import Optics
from earshot_server.discovery.prototypes import prototypes
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.expected import least_clear
from earshot_server.phases.forecast import (
    USUAL_BYTES,
    Forecast,
    expected,
    forecast,
    outlook,
    phase_bytes,
    samples_within,
)
from earshot_server.records import CohortRecord
from earshot_server.store.memory import MemoryPhaseStore

HOUR = 3600.0


def usual(**changes: Any) -> Parameters:
    """A learning phase that a default phone accepts: clustering costs it next to nothing."""
    accepted = {
        "phones": 1000,
        "budget": Budget(1e-6, 1e-6, 0.5, 0.5),
        "encoder": DEFAULT_ENCODER,
        "dimensions": 8,
        "dropout": 0.2,
        "top_global_centroids": 10,
        "centroid_votes": 3,
        "label_votes": 3,
    }
    return learning_parameters(**accepted | changes)


def seen(parameters: Parameters, **chosen: Any) -> Forecast:
    return forecast(StartPhase(parameters=parameters, **chosen))


def words(parameters: Parameters, **chosen: Any) -> str:
    asked = StartPhase(parameters=parameters, **chosen)
    return "\n".join(prospects.lines(asked, forecast(asked), now=0.0))


# ------------------------------------------------------------------------------ what is spent


def played(coordinator: Coordinator, phones: dict[int, Phone]) -> tuple[dict[int, int], int]:
    """Return the bytes that each phone sent in a whole phase, and its steps."""
    sent, steps = dict.fromkeys(phones, 0), 0
    while coordinator.missing():
        for number, phone in phones.items():
            answer = phone.answer(coordinator.task_for(number))
            if answer is not None:
                sent[number] += len(encode(answer))
                coordinator.accept(number, answer)
        assert coordinator.advance(0.0)
        steps += 1
    return sent, steps


def test_phones_spend_and_send_what_was_foretold() -> None:
    foreseen = seen(PARAMETERS, anyway=True)
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), PARAMETERS, now=0.0)
    phones = make_phones()
    sent, steps = played(coordinator, phones)
    assert steps == foreseen.steps
    published = total(foreseen.privacy)
    # A phone accounts for more recordings than it may hold here, and tells nobody how many it has.
    booked = total(each.release for each in PARAMETERS.expenses(1, 0))
    assert published[Unit.RECORDING] == booked[Unit.RECORDING]
    assert published[Unit.PHONE].epsilon < booked[Unit.PHONE].epsilon
    for phone in phones.values():
        spent = phone.ledger.spent()
        for unit in LEDGER_UNITS:
            assert foreseen.total[unit.value].epsilon <= spent[unit].epsilon * (1 + 1e-9)
            assert foreseen.total[unit.value].delta >= spent[unit].delta * (1 - 1e-9)
            assert booked[unit] == spent[unit]
    # Two environments were found where three may be kept: those sums were a little shorter.
    for number in phones:
        assert 0.98 * foreseen.bytes.sent < sent[number] <= foreseen.bytes.sent


def test_each_sum_has_the_neighbours_and_the_threshold_that_phones_will_be_told() -> None:
    parameters = usual()
    for part, each in zip(parameters.plan().parts[1:], seen(parameters).sums, strict=True):
        assert isinstance(part, SecureSum)
        agreed = parameters.sum_parameters(part, (10,))
        assert (each.part, each.neighbours, each.threshold) == (
            part.name,
            agreed.degree,
            agreed.threshold,
        )


def test_it_ends_between_the_earliest_and_the_latest_moment() -> None:
    foreseen = seen(usual(step_seconds=10 * HOUR), gather_seconds=5 * HOUR)
    assert foreseen.steps == 9
    assert foreseen.latest_seconds == (5 + 9 * 10) * HOUR
    # A phone that waits comes ten times in a step, so a step takes a tenth of its time at least.
    assert foreseen.earliest_seconds == 9 * HOUR


# ----------------------------------------------------------------------- votes and their noise


def test_the_noise_is_that_which_all_phones_draw_together() -> None:
    parameters = statistics_parameters(phones=100, noise=0.25, dropout=0.2, corrupted=0.05)
    (histogram,) = seen(parameters).sums
    random = np.random.default_rng(58)
    shares = (skellam_share(1024.0**2, 75, 20_000, random.bytes) for _ in range(100))
    draws = sum(shares) * (5 / unit_steps(5))  # five contacts are a length of 1
    assert histogram.deviation == pytest.approx(np.std(draws), rel=0.03)
    assert np.mean(np.abs(draws) <= histogram.radius) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("cells", [1, 11, 110])
def test_what_is_needed_to_stand_clear_is_what_noise_alone_seldom_reaches(cells: int) -> None:
    labels = tuple(f"l{number}" for number in range(cells))
    # With n' = n the noise is nearly normal, of a deviation of 5.5 times five contacts.
    parameters = statistics_parameters(labels=labels, dropout=0.0, corrupted=0.0, noise=5.5)
    outlook = seen(parameters).sums[0].outlook
    assert outlook is not None
    entries = 2 * cells + 1

    def chance(contacts: int) -> float:
        deviations = contacts * unit_steps(entries) / GRID / (5 * 5.5)
        return float(entries * norm.sf(deviations))

    assert chance(outlook.needed) <= 0.05 < chance(outlook.needed - 1)


def test_a_crowd_that_shares_its_contacts_among_all_numbers_is_in_the_bound_of_luck() -> None:
    """Every phone adds as much to each of the 2L + 1 numbers: in all √(2L + 1) of its length."""
    labels = tuple(f"l{number}" for number in range(110))
    parameters = statistics_parameters(phones=10, labels=labels, noise=12.0, dropout=0.0)
    part = parameters.plan().part("histogram")
    assert isinstance(part, SecureSum)
    found = outlook(parameters, part)
    assert found is not None
    entries = 2 * len(labels) + 1
    lifted = 10 * unit_steps(entries) / math.sqrt(entries) / part.mechanism.noise(10).deviation
    needed = norm.isf(0.05 / entries)
    assert 0.05 < entries * norm.sf(needed - lifted) <= found.chance < 0.2


@pytest.mark.parametrize("phones", [10, 5000])
def test_a_confusion_matrix_at_a_root_of_half_the_noise_changes_nothing_for_contacts(
    phones: int,
) -> None:
    week = statistics_parameters(
        phones=phones, labels=tuple("abcdefghijkl"), noise=8.0, dropout=0.0
    )
    agreed = AgreedPlaces(
        encoder="points", geometry=Geometry.SPHERICAL, centroids=Matrix.of(np.eye(2)), labels=(0, 1)
    )
    matrix = msgspec.structs.replace(week, noise=8.0 / math.sqrt(2), places=agreed, confusion=True)
    (plain,), (found,) = seen(week).sums, seen(matrix).sums
    assert (plain.entries, found.entries) == (25, 25 + 144)
    assert found.deviation == pytest.approx(plain.deviation, rel=2e-3)
    assert plain.outlook is not None
    assert found.outlook is not None
    assert found.outlook.needed == pytest.approx(plain.outlook.needed, rel=2e-3)
    assert found.outlook.clear == plain.outlook.clear
    assert found.outlook.chance == pytest.approx(plain.outlook.chance, rel=0.02)
    assert (plain.outlook.chance < 1) == (phones == 10)


def test_votes_are_shared_among_environments() -> None:
    parameters = usual(phones=1000, dropout=0.2, corrupted=0.05)
    centroid, label = (each.outlook for each in seen(parameters).sums)
    assert centroid is not None
    assert label is not None
    # 750 phones with three votes each, over ten environments.
    assert centroid.expected == label.expected == 225.0
    assert (centroid.environments, centroid.clear) == (10, 10)
    # The first vote is among a hundred candidates. A name must also be clear of its runner-up.
    noise = parameters.plan().mechanisms[CENTROID_VOTE].noise(parameters.phones)
    assert centroid.needed == least_clear((noise,), 100)
    cells = parameters.top_global_centroids * len(parameters.labels)
    assert label.needed > least_clear((noise,), cells)


def test_few_phones_find_less_and_hardly_any_nothing() -> None:
    clear = []
    for phones in (4000, 200, 100, 40):
        each = seen(usual(phones=phones, dropout=0.1)).sums[1].outlook
        assert each is not None
        clear.append(each.clear)
    assert clear[0] == 10
    assert clear == sorted(clear, reverse=True)
    assert clear[-1] < 5
    starved = usual(phones=30, dropout=0.0, corrupted=0.0)
    budget = msgspec.structs.replace(starved.budget, label_vote=0.02, centroid_vote=0.02)
    starved = msgspec.structs.replace(starved, budget=budget)
    assert {each.outlook and each.outlook.clear for each in seen(starved).sums} == {0}
    assert words(starved).count("it is unlikely that any can stand clear of the noise") == 2


@settings(max_examples=examples(30), deadline=None)
@given(
    phones=st.integers(100, 5000),
    votes=st.integers(1, 10),
    kept=st.integers(10, 60),
    epsilon=st.floats(0.05, 4),
)
def test_so_many_environments_do_stand_clear_and_one_more_does_not(
    phones: int, votes: int, kept: int, epsilon: float
) -> None:
    parameters = usual(phones=phones, centroid_votes=votes, top_global_centroids=kept)
    budget = msgspec.structs.replace(parameters.budget, centroid_vote=epsilon)
    outlook = seen(msgspec.structs.replace(parameters, budget=budget)).sums[0].outlook
    assert outlook is not None
    honest = parameters.honest_survivors

    def each(environments: int) -> float:
        return min(honest, honest * votes / environments)

    assert outlook.clear == 0 or each(outlook.clear) >= outlook.needed
    assert outlook.clear == kept or each(outlook.clear + 1) < outlook.needed


# -------------------------------------------------------------------------------- what is refused


def test_refusals_are_those_of_the_crowd_wanted_and_of_the_fewest() -> None:
    assert seen(usual()).refusals == ()
    assert seen(usual(phones=200), least_phones=100).refusals == ()
    (few,) = seen(usual(phones=200), least_phones=60).refusals
    assert few.rule == "least_phones"
    assert few.reason.startswith("if no more than 60 phones join, phones=60; at")
    (always,) = seen(usual(phones=90), least_phones=60).refusals
    assert always.reason.startswith("phones=90; at least 100 is accepted")


def test_what_clusters_on_each_phone_is_refused_and_operators_are_told_what_to_do() -> None:
    (refused,) = seen(usual(budget=Budget(1.0, 0.25, 0.5, 0.5))).refusals
    assert refused.rule == "largest_phone_epsilon"
    assert "at most 2.0 is accepted; the local route protects single recordings" in refused.reason
    assert "Policy.per_recording()" in refused.reason
    assert "earshot phone --per-recording" in refused.reason
    (dear,) = seen(statistics_parameters(noise=2.0, contacts=20)).refusals
    assert dear.rule == "largest_phone_epsilon"
    assert "per_recording" not in dear.reason
    assert OF_NAMED_RECORDINGS in words(usual())
    assert OF_NAMED_RECORDINGS not in words(statistics_parameters(noise=2.0, contacts=20))


def test_every_refusal_is_named_with_what_is_accepted() -> None:
    parameters = usual(phones=60, encoder="mine-1", dropout=0.35, corrupted=0.01)
    rules = [each.rule for each in seen(parameters).refusals]
    assert rules == ["encoder", "least_phones", "largest_dropout", "least_corrupted"]
    shown = words(parameters)
    for said in (f"'{DEFAULT_ENCODER}'", "at least 100", "at most 0.3", "at least 0.05"):
        assert said in shown


@pytest.mark.parametrize(
    ("parameters", "chosen", "said"),
    [
        (usual(dimensions=500), {}, "dimensions=500: must be at most 128"),
        (usual(phones=2), {}, "phones=2"),
        (usual(phones=200), {"least_phones": 300}, "least_phones=300"),
        (usual(phones=200), {"least_phones": 3}, "no safe graph"),
        (usual(dropout=0.6, corrupted=0.4), {}, "together"),
        (usual(), {"name": "a\nb"}, "printable"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    parameters: Parameters, chosen: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        seen(parameters, **chosen, anyway=True)


# --------------------------------------------------------------------------------------- in words


def test_a_forecast_says_everything_that_an_operator_asked() -> None:
    shown = words(usual(), gather_seconds=24 * HOUR)
    for said in (
        "learning phase of 1000 phones",
        "cluster  ",
        "together  ",
        "k = ",
        "t = ",
        "standard deviation",
        "in 95 of 100 cases",
        "honest votes: 225 for each of 10 environments",
        "kB in 9 steps",
        "ends at the earliest 1 Jan 1970, 21:36 UTC (21 h 36 min",
        "at the latest 11 Jan 1970, 00:00 UTC (10 days)",
        "a default phone accepts this phase",
    ):
        assert said in shown


def test_a_price_that_promises_nothing_is_called_that() -> None:
    assert "per phone, that promises nothing" in words(learning_parameters(recordings=100))
    assert "promises nothing" not in words(statistics_parameters())


def test_where_a_recording_costs_more_than_its_phone_the_reason_is_said() -> None:
    votes = labelling_parameters()
    costs = seen(votes).together
    assert costs["recording"].epsilon > costs["phone"].epsilon
    assert f"\n  {DEARER_RECORDING}\n" in words(votes)
    for parameters in (statistics_parameters(contacts=1), found_by_sums(), usual()):
        assert DEARER_RECORDING not in words(parameters)


def test_phones_of_the_cohorts_are_counted() -> None:
    cohorts = [CohortRecord("", 5, 4), CohortRecord("north", 30, 20), CohortRecord("west", 7, 7)]
    everybody = StartPhase(parameters=usual(phones=100), least_phones=42)
    some = msgspec.structs.replace(everybody, cohorts=("north", "west"))
    assert prospects.enrolled(everybody, cohorts) == (42, 31)
    assert prospects.enrolled(some, cohorts) == (37, 27)
    assert prospects.phone_lines(everybody, 42, 31) == [
        "42 phones are enrolled, 31 of them in no phase"
    ]
    (said,) = prospects.phone_lines(some, 37, 27)
    assert said == "37 phones are enrolled in north, west, 27 of them in no phase"
    assert prospects.too_few(everybody, 42) == ""
    assert prospects.too_few(some, 37) == (
        "; 42 must join, and 37 are enrolled in north, west: enrol more (earshot invite)"
    )


# --------------------------------------------------------------------------------- a discovery


def found_by_sums(**changes: Any) -> DiscoveryParameters:
    """As `earshot phase start` asks for it: ε = 2 per phone in all, 20 cells in 16 dimensions."""
    labels = tuple(f"l{number}" for number in range(11))
    start = np.random.default_rng(3).standard_normal((20, 16))
    asked = {
        "phones": 1000,
        "labels": labels,
        "encoder": DEFAULT_ENCODER,
        "start": CentroidSet.of(start),
        "sums": 2,
        "dropout": 0.2,
    }
    usual = affordable(discovery_parameters(**asked), 2.0)
    return msgspec.structs.replace(usual, **changes)


def noise_of(parameters: Parameters, name: str) -> NoiseLaw:
    part = parameters.plan().part(name)
    assert isinstance(part, SecureSum)
    return part.mechanism.noise(parameters.phones)


def test_the_noise_of_a_sum_of_cells_is_told_in_phones() -> None:
    parameters = found_by_sums(phones=100, noise_crowd=75)
    first, second, labels = seen(parameters).sums
    assert (first.part, second.part, labels.part) == ("cells 1", "cells 2", "labels")
    assert (first.entries, labels.entries) == (20 * 16, 11 * 17)
    random = np.random.default_rng(12)
    variance = (parameters.cells_noise * GRID) ** 2
    draws = sum(skellam_share(variance, 75, 20_000, random.bytes) for _ in range(100))
    in_phones = draws / unit_steps(20 * 16)
    assert first.deviation == second.deviation == pytest.approx(np.std(in_phones), rel=0.03)
    assert np.mean(np.abs(in_phones) <= first.radius) == pytest.approx(0.95, abs=0.01)


def test_as_many_phones_as_are_said_move_a_cell_and_give_a_label_a_prototype() -> None:
    parameters = found_by_sums()
    cells, _, labels = seen(parameters).sums
    assert cells.outlook is not None
    assert labels.outlook is not None
    noise = noise_of(parameters, "cells 1")
    start = parameters.start.centroids()

    def moves(phones: int) -> bool:
        total = np.zeros((20, 16))
        total[0] = phones * unit_steps(20 * 16) * start[0]
        return bool(moved_cells(np.rint(total).astype(np.int64), noise.deviation, start)[1][0])

    assert moves(cells.outlook.needed)
    assert not moves(cells.outlook.needed - 1)

    law = noise_of(parameters, "labels")

    def clear(phones: int) -> bool:
        # The last entry counts, and a quarter of a phone's length goes there.
        total = np.zeros((11, 17))
        total[0, :16] = phones * math.sqrt(15) / 4 * unit_steps(11 * 17) * start[0]
        found = prototypes(np.rint(total).astype(np.int64), law.deviation, start)
        return bool(found.p_values[0] <= LEVEL)

    assert clear(labels.outlook.needed)
    assert not clear(labels.outlook.needed - 1)
    assert labels.outlook.expected == 750 / 11


def test_what_a_discovery_costs_is_what_was_asked_for_whatever_its_sums_add_up_to() -> None:
    foreseen = seen(found_by_sums())
    assert foreseen.together["phone"].epsilon == pytest.approx(2.0, abs=1e-6)
    assert foreseen.together["phone"].delta == 1e-6
    assert foreseen.together["recording"] == foreseen.together["phone"]
    assert 4.0 < foreseen.together["replaced phone"].epsilon < 4.5
    assert total(foreseen.privacy)[Unit.PHONE].epsilon > 3.0  # added up
    assert foreseen.total == {each.value: foreseen.together[each.value] for each in LEDGER_UNITS}
    shown = words(found_by_sums())
    for said in (
        "discovery phase of 1000 phones",
        "per phone (zero-out: its part against zeros)",
        "a phone replaced by another: ε = 4.29",
        "honest phones: 37.5 for each of 20 cells, if each hears one thing, in one cell",
        "can be moved to where sound is",
        "honest phones: 68.2 for each of 11 labels, if all that a phone labelled has one label",
        "can get a prototype",
        "in 12 steps",
    ):
        assert said in shown
    starved = words(found_by_sums(phones=100, labels_noise=24.0))
    assert (
        "not enough for any to get a prototype, except by chance: more phones (--phones)" in starved
    )


def test_a_discovery_sends_what_was_foretold() -> None:
    parameters = found_by_sums(phones=12, dropout=0.0)
    foreseen = seen(parameters, anyway=True)
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), parameters, now=0.0)
    encoder = HeardPoints(DEFAULT_ENCODER, 16)
    phones = {number: Phone(MemoryStore(), encoder, AGREES) for number in range(12)}
    sent, steps = played(coordinator, phones)
    assert steps == foreseen.steps == 12
    assert set(sent.values()) == {foreseen.bytes.sent}


# ------------------------------------------------------------------------------- what luck can do

SEEDS = 600


def lifted(parameters: Parameters, name: str, places: int) -> float:
    """The share of sums in which noise makes a place clear, if all phones agree on some places.

    A phone adds as much to each of them as it can; noise and tests are those of a phase.
    """
    random, inputs = np.random.default_rng([places, 7]), expected(parameters, name)
    assert inputs is not None
    law, shape = noise_of(parameters, name), (SEEDS, *inputs.shape)
    true = np.zeros(inputs.shape, dtype=np.int64)
    if isinstance(parameters, DiscoveryParameters):
        drawn = [random.poisson(law.deviation**2 / 2, shape) for _ in range(2)]
        true[:places, 0] = math.ceil(parameters.phones * inputs.unit / math.sqrt(places))
    else:
        assert isinstance(law, DiscreteLaplaceNoise)
        chance = -math.expm1(-1 / law.scale)
        drawn = [random.negative_binomial(law.order, chance, shape) for _ in range(2)]
        true[: min(places, inputs.votes), 0] = parameters.phones

    def clear(sums: np.ndarray) -> bool:
        if name == "labels":
            cells = np.eye(20, inputs.shape[1] - 1)
            return bool(prototypes(sums, law.deviation, cells).p_values.min() <= LEVEL)
        return min(name_p_values(sums, law)) <= LEVEL

    found = 0
    for sums in true + drawn[0] - drawn[1]:
        if name.startswith("cells"):
            found += bool(moved_cells(sums, law.deviation, np.eye(*inputs.shape))[1].any())
        else:
            found += clear(sums)
    return found / SEEDS


@pytest.mark.parametrize(
    ("name", "phones"),
    [
        *(("cells 1", 8), ("cells 1", 15), ("labels", 15), ("labels", 20)),
        *(("label vote", 30), ("label vote", 60), ("label vote", 120)),
    ],
)
def test_what_is_called_unlikely_is_as_rare_as_is_said(name: str, phones: int) -> None:
    """It happens, if seldom, where all phones agree."""
    if name == "label vote":
        budget = Budget(1e-6, 1e-6, 0.12, 0.12)
        parameters = usual(phones=phones, budget=budget, corrupted=0.0)
    else:
        parameters = found_by_sums(phones=phones, noise_crowd=phones)
    (outlook,) = (each.outlook for each in seen(parameters).sums if each.part == name)
    assert outlook is not None
    assert outlook.clear == 0
    happened = [lifted(parameters, name, places) for places in (1, 2, 4)]
    assert max(happened) > 0
    for each in happened:
        assert each <= outlook.chance + 4 * math.sqrt(each * (1 - each) / SEEDS)


def test_a_forecast_speaks_of_luck_before_it_speaks_of_none() -> None:
    for phones, said in (
        (
            4,
            "unlikely that any can get a prototype (a probability of at most 18 %, whatever phones",
        ),
        (15, "not enough for any to get a prototype, except by chance: more phones (--phones) or"),
        (60, "that is enough for 2 of 11 to get a prototype"),
        (3000, "all 11 can get a prototype"),
    ):
        assert said in words(found_by_sums(phones=phones, noise_crowd=phones))


# ---------------------------------------------------------------------------- what phones send

SPLIT, UNPROVED = SummationName.TWO_OPERATORS, SummationName.TWO_OPERATORS_UNPROVED


def labelled(samples: int, labels: int, summation: SummationName) -> LabellingParameters:
    points = np.random.default_rng(5).standard_normal((samples, 8)).astype(np.float32)
    return labelling_parameters(
        labels=tuple(f"label {each}" for each in range(labels)),
        samples=Matrix.of(points),
        phones=1000,
        threshold=500.0,
        summation=summation,
    )


def test_as_many_samples_as_are_proposed_are_a_megabyte_and_one_more_is_not() -> None:
    fitting = samples_within(labelled(4096, 15, SPLIT))
    assert 3000 < fitting < 4096
    assert phase_bytes(labelled(fitting, 15, SPLIT)).sent <= USUAL_BYTES == 10**6
    assert phase_bytes(labelled(fitting + 1, 15, SPLIT)).sent > USUAL_BYTES
    assert samples_within(labelled(100, 15, SPLIT)) == 100


def test_what_a_phone_sends_is_told_with_what_all_send_and_both_operators_keep() -> None:
    parameters = labelled(100, 15, SPLIT)
    sent = phase_bytes(parameters)
    told = words(parameters)
    assert f"each phone sends {byte_size(sent.sent)} in 2 steps" in told
    assert f"all phones together {byte_size(1000 * sent.sent)}; " in told
    assert f"database keeps up to {byte_size(sent.server)} at a time" in told
    assert f"the helper’s disk keeps up to {byte_size(sent.helper)}, " in told
    assert "the helper’s disk" not in words(labelled(100, 15, SummationName.BELL))
    for small in (parameters, labelled(4096, 15, UNPROVED), labelled(4096, 15, SummationName.BELL)):
        assert "is proposed" not in words(small)


def test_a_large_phase_says_both_ways_to_make_it_smaller() -> None:
    large, most = labelled(4096, 15, SPLIT), samples_within(labelled(4096, 15, SPLIT))
    less = byte_size(phase_bytes(labelled(4096, 15, UNPROVED)).sent)
    said = (
        "each phone sends 1.2 MB, most of it proofs, and no more than 1 MB is proposed: with "
        f"{whole(most)} samples or fewer in place of {whole(4096)} it would send less; without "
        f"proofs (--summation two-operators-unproved) it would send {less}, and nobody could check"
    )
    assert said in words(large)
    proposed = prospects.proposed_summation(labelled(4096, 15, SummationName.BELL), large)
    assert (
        f"two operators (--summation two-operators with {whole(most)} samples at most, or "
        f"--summation two-operators-unproved: with all {whole(4096)} samples and proofs a phone "
        "would send 1.2 MB)"
    ) in proposed
    few = labelled(100, 15, SPLIT), labelled(100, 15, SummationName.BELL)
    assert "two operators (--summation two-operators). A" in prospects.proposed_summation(
        few[1], few[0]
    )


def test_a_large_phase_without_samples_is_proposed_without_proofs() -> None:
    labels, start = tuple(map(str, range(256))), CentroidSet.of(np.eye(3, 64))
    split = discovery_parameters(labels=labels, start=start, kinds=4, summation=SPLIT)
    masked = msgspec.structs.replace(split, summation=SummationName.BELL)
    sent = byte_size(phase_bytes(split).sent)
    assert f"each phone sends {sent}, most of it proofs" in words(split)
    assert "samples" not in "".join(prospects.large_inputs(split))
    assert (
        f"(--summation two-operators-unproved, as a phone would send {sent} with proofs)"
    ) in prospects.proposed_summation(masked, split)
