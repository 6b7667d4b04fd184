from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence
from contextlib import closing
from datetime import date

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_client.encoder import shipped_encoder, start_centroids
from earshot_protocol.api import StartPhase
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.learning_budget import BUDGETS
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import epsilon_at, total
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.start_centroids import USUAL_COUNTS, USUAL_DIMENSIONS, WITH_ALL
from earshot_server.phases.costs import together
from earshot_server.phases.forecast import Refusal, forecast
from earshot_simulations.commands.simulate import try_it
from earshot_simulations.phases.local import CentroidFindings
from earshot_simulations.phases.run import NOISELESS
from earshot_simulations.phases.settings import (
    Discovery,
    PolicyChoice,
    Routes,
    Settings,
    geometry_of,
    whole_budget,
)
from earshot_simulations.phases.simulation import open_population
from earshot_simulations.populations import Blobs

LOCAL = Settings(discovery=Discovery.LOCAL)
positive = st.floats(1e-3, 1e3)


@given(values=st.tuples(positive, positive, positive, positive), order=st.permutations(range(4)))
def test_a_budget_is_read_in_any_order(values: tuple[float, ...], order: list[int]) -> None:
    names = ("clustering", "selection", "centroid-vote", "label-vote")
    text = ", ".join(f"{names[i]}={values[i]!r}" for i in order)
    assert whole_budget(text) == Budget(*values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "give each once"),
        ("clustering=1", "give each once"),
        ("clustering=1,selection=1,centroid-vote=1", "give each once"),
        ("clustering=1,selection=1,centroid-vote=1,label-vote=1,", "give each once"),
        ("clustering=1,clustering=1,selection=1,centroid-vote=1,label-vote=1", "give each once"),
        ("clustering=1,selection=1,centroid-vote=1,labels=1", "give each once"),
        ("clustering=1,selection=1,centroid_vote=1,label-vote=1", "centroid-vote=ε"),
        ("clustering,selection=1,centroid-vote=1,label-vote=1", "give each once"),
        ("clustering=one,selection=1,centroid-vote=1,label-vote=1", "clustering=one"),
        ("clustering=0,selection=1,centroid-vote=1,label-vote=1", "clustering=0"),
        ("clustering=1,selection=-2,centroid-vote=1,label-vote=1", "selection=-2"),
        ("clustering=1,selection=1,centroid-vote=nan,label-vote=1", "centroid-vote=nan"),
        ("clustering=1,selection=1,centroid-vote=1,label-vote=inf", "label-vote=inf"),
    ],
)
def test_a_budget_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        whole_budget(text)


def test_no_budget_is_no_noise_worth_the_name() -> None:
    settings = Settings(discovery=Discovery.LOCAL, budget=whole_budget(" none "))
    with pytest.raises(InvalidParametersError, match="largest_epsilon"):
        settings.check()
    settings = dataclasses.replace(settings, policy=PolicyChoice.ANYTHING)
    settings.check()
    spent = settings.parameters(Blobs(500, 200, 10, 0.3, 0)).plan().releases()
    assert min(release.epsilon for release in spent) >= 1e5


def notes_on(settings: Settings, p_values: tuple[float, ...] = ()) -> Sequence[str]:
    """Notes on a run in which places got their names with these p-values."""
    points = np.empty((0, 2), dtype=np.float32)
    found = CentroidFindings(label_names=(), points=points, name_p_values=p_values)
    with closing(open_population(settings)) as population:
        return settings.notes(population, None, found)


def test_phones_of_the_local_route_agree_to_what_it_costs_them_and_the_report_says_so() -> None:
    assert (Settings().agreement, Settings().refusals()) == (PolicyChoice.DEFAULT, ())
    settings = LOCAL
    assert settings.agreement is PolicyChoice.RECORDING
    (refused,) = settings.refusals()
    assert str(refused).startswith("largest_phone_epsilon: ε of the phase per phone=")
    note = notes_on(settings)[0]
    assert "This protects single recordings, but not phones" in note
    assert refused.reason in note
    assert refused.rule not in note
    settings = dataclasses.replace(settings, policy=PolicyChoice.DEFAULT)
    with pytest.raises(InvalidParametersError, match="--policy default: largest_phone_epsilon"):
        settings.check()


@pytest.mark.parametrize(("data", "epsilon"), [("blobs", 2.5), ("soundscapes", 3.0)])
def test_a_default_budget_adds_up_to_what_it_claims(data: str, epsilon: float) -> None:
    parameters = dataclasses.replace(LOCAL, data=data).any_parameters()
    cost = total(parameters.plan().releases())[Unit.RECORDING]
    assert cost.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("data", ["blobs", "soundscapes"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 5.0])
def test_on_the_local_route_epsilon_is_what_the_phase_costs_per_recording(
    data: str, epsilon: float
) -> None:
    settings = dataclasses.replace(LOCAL, data=data, epsilon=epsilon, delta=1e-7)
    parameters = settings.any_parameters()
    assert isinstance(parameters, PhaseParameters)
    events = [each.event(Unit.RECORDING) for each in parameters.plan().mechanisms.values()]
    assert composed_epsilon(events, 1e-7) == pytest.approx(epsilon, rel=1e-9)
    usual = BUDGETS[geometry_of(data)]
    ratios = [getattr(parameters.budget, name) / getattr(usual, name) for name in _names(usual)]
    assert ratios == pytest.approx([ratios[0]] * 4)


def _names(budget: Budget) -> tuple[str, ...]:
    return budget.__struct_fields__


@pytest.mark.parametrize(
    "settings",
    [
        dataclasses.replace(LOCAL, data="soundscapes", recordings=100),
        dataclasses.replace(LOCAL, data="soundscapes", recordings=5, epsilon=1.0),
        dataclasses.replace(LOCAL, recordings=30),
        Settings(epsilon=5.0),
    ],
    ids=["sound", "few", "plane", "sums"],
)
def test_one_epsilon_is_told_of_what_a_phase_costs_a_phone(settings: Settings) -> None:
    parameters = settings.any_parameters()
    refused = " ".join(map(str, settings.refusals()))
    told = re.search(r"largest_phone_epsilon: ε of the phase per phone=(\S+);", refused)
    assert told is not None
    shown = together(parameters.plan())[Unit.PHONE]
    assert float(told[1]) == pytest.approx(shown.epsilon, rel=1e-9)
    foreseen = forecast(StartPhase(parameters=parameters)).together["phone"]
    assert foreseen.epsilon == shown.epsilon
    assert any(f"per phone={told[1]};" in each.reason for each in default(parameters))
    events = [each.event(Unit.PHONE) for each in parameters.plan().mechanisms.values()]
    assert composed_epsilon(events, 1e-6) == pytest.approx(shown.epsilon, rel=1e-6)


def default(parameters: Parameters) -> tuple[Refusal, ...]:
    """What `earshot phase start` tells that a default phone refuses."""
    return forecast(StartPhase(parameters=parameters)).refusals


def test_a_limit_at_a_smaller_delta_refuses_by_what_is_reached_there() -> None:
    parameters = dataclasses.replace(LOCAL, recordings=1, epsilon=0.2).any_parameters()
    spent = [each for each in parameters.plan().expenses() if each.release.unit is Unit.PHONE]
    less, more = (epsilon_at(delta, spent) for delta in (1e-6, 1e-10))
    assert less < more
    limits = Limits(largest_phone_epsilon=(less + more) / 2, largest_phone_delta=1e-10)
    refused = limits.refusals_of_cost(spent, Ledger(), date(2026, 3, 2))
    assert [each.rule for each in refused] == [Rule.LARGEST_PHONE_EPSILON]


@pytest.mark.parametrize("clear", [0, 2, 5])
def test_notes_say_how_few_names_stand_clear_and_nothing_where_most_do(clear: int) -> None:
    settings = dataclasses.replace(LOCAL, data="soundscapes")
    p_values = (0.001,) * clear + (0.9,) * (6 - clear)
    said = " ".join(notes_on(settings, p_values))
    assert ("stands clear of the noise" in said) == (clear < 3)
    few = f"Only {clear}" if clear else "None"
    assert (f"{few} of 6 centroids got a name" in said) == (clear < 3)
    assert "baseline" not in said


def test_the_command_to_try_is_of_the_same_route() -> None:
    assert "--discovery local " in try_it(Routes.LOCAL)
    assert "--discovery both " in try_it(Routes.BOTH)
    assert "--discovery" not in try_it(Routes.SECURE_SUM)


def test_epsilon_and_a_budget_at_once_are_refused() -> None:
    settings = dataclasses.replace(LOCAL, epsilon=2.0, budget=BUDGETS[Geometry.EUCLIDEAN])
    with pytest.raises(InvalidParametersError, match="epsilon and budget: give one of them"):
        settings.check()


def test_an_epsilon_without_noise_has_none_on_either_route() -> None:
    quiet = dataclasses.replace(LOCAL, epsilon=NOISELESS).any_parameters()
    assert isinstance(quiet, PhaseParameters)
    assert quiet.budget == whole_budget("none")


def test_a_phase_gets_what_the_settings_and_the_population_say() -> None:
    settings = Settings(
        discovery=Discovery.LOCAL,
        phones=300,
        recordings=40,
        scenes=3,
        dropout=0.2,
        corrupted=0.1,
        budget=Budget(4.0, 3.0, 2.0, 1.0),
        local_centroids=7,
        top_local_centroids=5,
        top_global_centroids=9,
        centroid_votes=4,
        label_votes=6,
        dimensions=99,
    )
    parameters = settings.parameters(Blobs(300, 40, 3, 0.3, 0))
    for name in (
        "phones",
        "recordings",
        "dropout",
        "corrupted",
        "budget",
        "local_centroids",
        "top_local_centroids",
        "top_global_centroids",
        "centroid_votes",
        "label_votes",
    ):
        assert getattr(parameters, name) == getattr(settings, name)
    # These are the population's: blobs are in the plane whatever sound would be projected to.
    assert (parameters.dimensions, parameters.geometry) == (2, Geometry.EUCLIDEAN)
    assert parameters.encoder == "blobs"
    assert parameters.labels == ("scene 1", "scene 2", "scene 3")
    parameters.check()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimensions": 0}, "dimensions=0"),
        ({"top_local_centroids": 7}, "top_local_centroids=7"),
        ({"centroid_votes": 11}, "centroid_votes=11"),
        ({"label_votes": 11}, "label_votes=11"),
        (
            {"budget": msgspec.structs.replace(BUDGETS[Geometry.EUCLIDEAN], label_vote=1e-5)},
            "label-vote",
        ),
    ],
)
def test_settings_that_cannot_be_simulated_are_named(
    changes: dict[str, object], message: str
) -> None:
    settings = dataclasses.replace(LOCAL, **changes)
    with pytest.raises(InvalidParametersError, match=message):
        settings.check()


def test_a_phone_names_every_place_that_is_kept_by_default() -> None:
    settings = Settings(discovery=Discovery.LOCAL, top_global_centroids=7)
    for votes, expected in ((None, 7), (2, 2)):
        asked = dataclasses.replace(settings, label_votes=votes).any_parameters()
        assert isinstance(asked, PhaseParameters)
        assert asked.label_votes == expected


@pytest.mark.parametrize(
    ("scenes", "asked", "kept"),
    [(15, None, 15), (11, None, 11), (10, None, 10), (3, None, 10), (15, 4, 4)],
)
def test_every_label_may_have_a_centroid_unless_told_otherwise(
    scenes: int, asked: int | None, kept: int
) -> None:
    settings = Settings(discovery=Discovery.LOCAL, scenes=scenes, top_global_centroids=asked)
    parameters = settings.parameters(Blobs(300, 40, scenes, 0.3, 0))
    assert isinstance(parameters, PhaseParameters)
    assert len(parameters.labels) == scenes
    assert (parameters.top_global_centroids, parameters.label_votes) == (kept, kept)


@pytest.mark.parametrize("data", ["soundscapes", "a folder"])
def test_an_encoder_without_start_centroids_is_refused_before_any_work(data: str) -> None:
    """By the name of one that has them; the route that needs none takes it."""
    settings = Settings(data=data, encoder="contrast-1")
    with pytest.raises(InvalidParametersError, match=f"'contrast-1' has no .*{WITH_ALL}"):
        settings.check()
    dataclasses.replace(settings, encoder=WITH_ALL).check()
    dataclasses.replace(settings, discovery=Discovery.LOCAL).check()
    with pytest.raises(InvalidParametersError, match="has no 20 start centroids in 31 dim"):
        Settings(data=data, dimensions=31).check()


def test_the_encoder_that_a_refusal_names_has_all_usual_start_centroids() -> None:
    encoder = shipped_encoder(WITH_ALL)
    for dimensions, count in itertools.product(USUAL_DIMENSIONS, USUAL_COUNTS):
        assert start_centroids(encoder, dimensions, count).shape == (count, dimensions)
