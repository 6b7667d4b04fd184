"""Sums by two operators as operators meet them: settings, orders, keys and pages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.api_caller import Server, body_of, problem_of
from support.played_phase import PARAMETERS as LEARNING
from support.statistics_phase import PARAMETERS

from earshot_protocol.api import PHASES, TWO_OPERATORS, StartPhase
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.api.views import TwoOperators
from earshot_server.credentials import Credentials
from earshot_server.dashboard import prospects, sentences, tables
from earshot_server.phases.forecast import forecast
from earshot_server.processes.settings import Serving
from earshot_server.records import RUNNING, PhaseRecord, StepRecord, Trouble
from earshot_server.store.database import Database

PROVED = msgspec.structs.replace(LEARNING, summation=SummationName.TWO_OPERATORS)
BY_TWO = msgspec.structs.replace(PARAMETERS, summation=SummationName.TWO_OPERATORS_UNPROVED)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw().hex()
NOW = 1.8e9


@pytest.mark.parametrize(
    ("helper", "key", "says"),
    [
        ("https://helper.example", None, "give both, or neither"),
        (None, KEY, "give both, or neither"),
        ("https://helper.example", KEY[1:], "not an operator's key"),
        ("http://helper.example", KEY, "use https"),
        ("helper.example", KEY, "not the URL of a server"),
    ],
)
def test_a_helper_has_an_address_and_a_key(helper: str | None, key: str | None, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Serving(helper=helper, helper_key=key).check()


def test_a_server_with_a_helper_has_connections_for_errands() -> None:
    serving = Serving(helper="https://helper.example", helper_key=f" {KEY.upper()} ")
    serving.check()
    assert serving.helper_identity == KEY
    assert serving.database_connections == Serving().database_connections + 2


@pytest.mark.parametrize("parameters", [BY_TWO, PROVED], ids=["plain", "proved"])
def test_a_phase_by_two_operators_is_refused_at_start_where_there_is_no_helper(
    server: Server, parameters: Parameters
) -> None:
    asked = StartPhase(parameters=parameters, anyway=True)
    refused = problem_of(server.order(PHASES, asked), 422, "invalid-parameters")
    assert "this server has no helper" in refused.detail
    assert body_of(server.read(TWO_OPERATORS), TwoOperators) == TwoOperators(leader="", helper="")
    assert "Two operators" not in server.read("/").text


def test_a_server_with_a_helper_starts_it_and_shows_both_keys(
    database: Database, tmp_path: Path
) -> None:
    credentials = Credentials.load_or_create(tmp_path, leads=True)
    app = create_app(ApiSettings(database, credentials, helper_key=KEY))
    server = Server(app, credentials)
    phase, proved = server.start(BY_TWO), server.start(PROVED)
    known = body_of(server.read(TWO_OPERATORS), TwoOperators)
    assert known == TwoOperators(leader=credentials.leader, helper=KEY)
    page = server.read("/").text
    assert credentials.leader in page
    assert KEY in page
    for each, words, said in (
        (phase, "two operators, inputs unproved", "one phone can decide the outcome"),
        (proved, "two operators, inputs proved", "Invalid inputs are left out"),
    ):
        shown = server.read(f"/phases/{each.hex()}").text
        assert "never put their data together" in shown
        assert f">{words}</" in shown
        assert said in shown


def step(number: int, name: str, expected: int, answered: int, closed: bool) -> StepRecord:
    return StepRecord(
        number, f"histogram: {name}", expected, answered, NOW, NOW + 1 if closed else None
    )


def under_way(*steps: StepRecord, helper: Trouble | None = None) -> PhaseRecord:
    return PhaseRecord(
        phase=bytes(16),
        parameters=BY_TWO,
        status=RUNNING,
        created=NOW,
        finished=None,
        wanted=12,
        least=10,
        joined=12,
        gather_until=NOW,
        step=steps[-1].step,
        deadline=NOW + 1e5,
        steps=steps,
        ending=None,
        helper=helper,
    )


def test_a_step_of_the_helper_waits_for_it_and_not_for_phones() -> None:
    offer, report = step(0, "offer", 1, 1, True), step(1, "report", 12, 11, True)
    total = step(2, "total", 1, 0, False)
    record = under_way(offer, report, total, helper=Trouble(3, "unreachable", NOW + 600))
    assert sentences.headline(record) == "Waiting for the helper"
    assert sentences.outcome(record) == "histogram: total: waits for the helper"
    assert sentences.present_step(record) is None
    assert sentences.stayed(record) == 11
    assert [row.helper for row in tables.participation(record)] == [True, False, True]
    said = sentences.waiting(record.helper, total, NOW + 3600)
    assert "since 15 Jan 2027, 08:00 UTC (1 hour ago)" in said
    assert "3 times without success (unreachable)" in said
    reporting = under_way(offer, step(1, "report", 12, 4, False))
    assert sentences.headline(reporting) == "4 of 12 phones have answered"


def test_a_forecast_counts_visits_of_phones_and_knows_no_neighbours() -> None:
    by_two, masked = (forecast(StartPhase(parameters=each)) for each in (BY_TWO, PARAMETERS))
    assert (by_two.steps, masked.steps) == (1, 4)
    assert by_two.sums[0].neighbours is None
    assert by_two.sums[0].threshold is None
    assert masked.sums[0].neighbours


def test_prospects_say_which_apps_take_part() -> None:
    plain, proved, masked = (
        [line for line in prospects.lines(asked, forecast(asked)) if " refuse: " in line]
        for asked in (StartPhase(parameters=each) for each in (BY_TWO, PROVED, PARAMETERS))
    )
    assert masked == []
    assert [line.rpartition(" ")[2] for line in plain] == ["unknown_helper"]
    assert [line.rpartition(" ")[2] for line in proved] == ["unknown_helper", "proofs"]
