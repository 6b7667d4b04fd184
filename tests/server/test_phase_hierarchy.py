"""A phase with choices, from an operator's file to a phone's first task; and one nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from support.api_caller import Server, body_of, problem_of
from support.parameters import statistics_parameters
from support.played_phase import PARAMETERS, Play, make_phones, outcome
from support.steps import Step

from earshot_protocol.api import MESSAGEPACK, PHASES, StartPhase
from earshot_protocol.environments import LabelHierarchy, default_hierarchy
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.phases.statistics import CountContacts, Statistics
from earshot_server.api.views import PhaseView
from earshot_server.commands.phase.hierarchy import asked
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.store.database import Database
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL

HIERARCHY = LabelHierarchy({"bus": ("tram", "bus stop"), "park": ("garden",)})
CHOICES = tuple(HIERARCHY.groups.values())


def test_the_first_task_tells_the_choices(server: Server, database: Database) -> None:
    parameters = msgspec.structs.replace(PARAMETERS, phones=3, dropout=0.0)
    body = StartPhase(parameters=parameters, choices=CHOICES, anyway=True)
    phase = json.loads(server.order(PHASES, body).data)["phase"]
    view = body_of(server.read(f"{PHASES}/{phase}"), PhaseView)
    assert view.parameters.hierarchy == HIERARCHY.digest
    phones = [server.phone() for _ in range(3)]
    for phone in phones:
        phone.task()
    Driver(database, Optics(), keep_seconds=1e9).turn()
    task = phones[0].task()
    assert isinstance(task, Cluster)
    assert task.parameters.agreed_hierarchy(task.choices) == HIERARCHY


def test_choices_that_do_not_fit_are_refused_over_http(server: Server) -> None:
    body = StartPhase(parameters=PARAMETERS, choices=(("tram",),), anyway=True)
    problem_of(server.order(PHASES, body, MESSAGEPACK), 422, "invalid-parameters")


def test_a_histogram_tells_its_choices_and_a_phase_without_them_does_not_begin() -> None:
    counting = statistics_parameters(labels=("bus", "park"), hierarchy=HIERARCHY.digest)
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), counting, 0.0, choices=CHOICES, summation=IDEAL
    )
    task = coordinator.task_for(0)
    assert isinstance(task, CountContacts)
    assert task.choices == CHOICES
    with pytest.raises(InvalidParametersError, match="digest"):
        Coordinator.start(MemoryPhaseStore(), Optics(), counting, 0.0, summation=IDEAL)


def test_labels_that_no_phone_knows_name_nothing() -> None:
    # The phones' recordings are of "bus" and "park"; all votes for these labels are noise.
    parameters = msgspec.structs.replace(PARAMETERS, labels=("gastronomy", "home", "sport"))
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), parameters, 0.0, summation=IDEAL)
    phones = make_phones(IDEAL)
    game = Play(coordinator, phones)
    game.step()
    assert all("knows none" in phone.shortfall for phone in phones.values())
    game.until(Step.PUBLISHED)
    result = outcome(coordinator)
    assert any(vote for votes in result.label_votes for vote in votes), "there was no noise"
    assert result.names == (None,) * len(result.labels)
    assert set(result.labels) == {-1}
    assert min(result.name_p_values) > 0.05


def test_contacts_that_no_phone_had_stay_within_the_noise() -> None:
    parameters = statistics_parameters(
        phones=12, labels=("sea", "sky"), contacts=12, noise=0.2, dropout=0.25
    )
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), parameters, 0.0, summation=IDEAL)
    game = Play(coordinator, make_phones(IDEAL))
    game.until(Step.PUBLISHED)
    result = coordinator.result()
    assert isinstance(result, Statistics)
    assert result.clear == (False, False)
    known = msgspec.structs.replace(parameters, labels=("bus", "sky"))
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), known, 0.0, summation=IDEAL)
    Play(coordinator, make_phones(IDEAL)).until(Step.PUBLISHED)
    result = coordinator.result()
    assert isinstance(result, Statistics)
    assert result.clear == (True, False)


def test_an_operator_names_labels_or_a_file_of_choices(tmp_path: Path) -> None:
    assert asked("a, b", None) == (("a", "b"), ())
    everyday = default_hierarchy()
    assert asked(None, None) == (everyday.classes, tuple(everyday.groups.values()))
    file = tmp_path / "hierarchy.json"
    file.write_text('{"car": ["taxi", "car park"], "sea": []}')
    assert asked(None, file) == (("car", "sea"), (("taxi", "car park"), ()))
    with pytest.raises(InvalidInputError, match="one of them"):
        asked("a", file)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "give JSON such as"),
        ("[]", "give JSON such as"),
        ('{"car": "taxi"}', "give JSON such as"),
        ('{"car": ["taxi"], "taxi": []}', "'taxi'"),
        ('{"car": ["\xff"]}', "line 1: is not UTF-8"),
        ("{}", "at least one"),
        (" " * 2**20 + "{}", "at most"),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused_by_name(
    tmp_path: Path, content: str, reason: str
) -> None:
    file = tmp_path / "hierarchy.json"
    file.write_text(content, "latin-1")
    with pytest.raises(InvalidInputError, match=reason) as caught:
        asked(None, file)
    assert str(file) in str(caught.value)
    with pytest.raises(InvalidInputError, match="No such file"):
        asked(None, tmp_path / "none.json")
