"""What phones have spent, of one phase and of all together, against sums by hand."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from support.api_caller import Server, body_of
from support.dashboard_records import (
    gathering,
    never_started,
    published_learning,
    published_statistics,
    running,
    too_few,
)
from support.played_phase import PARAMETERS, PHONES, play

from earshot_protocol.api import JSON, MESSAGEPACK, PRIVACY, decode_body, encode_body
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.accounting import TOLD_DELTA, composed_cost, epsilon_at
from earshot_protocol.privacy.events import Approximate, SkellamSum
from earshot_protocol.privacy.local_mechanisms import COUNTED_RECORDINGS
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_server.accounting.accountant import ADDED_UP, AS_PHONES_DO, Composed
from earshot_server.api.views import PrivacySpent, Spent
from earshot_server.commands.options import OperatorConnection
from earshot_server.commands.phase import watching
from earshot_server.dashboard.spending import OF_NAMED_RECORDINGS, of_all, of_phase
from earshot_server.phases.spending import expenses_of, released, spending
from earshot_server.records import PUBLISHED, PhaseRecord
from earshot_server.store.database import Database


def by_hand(*records: PhaseRecord) -> dict[Unit, tuple[float, float]]:
    """ε and δ of published phases, added up from what they say themselves."""
    sums = dict.fromkeys(LEDGER_UNITS, (0.0, 0.0))
    for record in records:
        assert isinstance(record.ending, Outcome)
        for release in record.ending.privacy:
            epsilon, delta = sums[release.unit]
            sums[release.unit] = (epsilon + release.epsilon, delta + release.delta)
    return sums


def test_costs_are_composed_where_that_is_less_than_their_sum() -> None:
    phases = (
        published_learning(1, 1e9),
        published_learning(2, 2e9),
        published_statistics(3, 3e9),
    )
    spent = spending(phases)
    single = zip(((phase,) for phase in phases), spent.phases, strict=True)
    for records, costs in ((phases, spent.total), *single):
        for unit, (epsilon, delta) in by_hand(*records).items():
            assert epsilon > 0
            if costs[unit].method == ADDED_UP:
                assert costs[unit].epsilon == pytest.approx(epsilon)
                assert costs[unit].delta == pytest.approx(min(1.0, delta))
            else:
                assert costs[unit].epsilon < epsilon
                assert TOLD_DELTA <= costs[unit].delta <= max(TOLD_DELTA, delta)


def test_many_phases_cost_less_than_their_sum_and_what_a_phone_says() -> None:
    one = spending([published_statistics(1, 1e9)]).total[Unit.RECORDING]
    records = [published_statistics(week, 1e9) for week in range(1, 61)]
    spent = spending(records).total[Unit.RECORDING]
    assert spent.epsilon < 0.85 * 60 * one.epsilon
    assert spent.method == AS_PHONES_DO
    in_ledger = [
        each
        for record in records
        for each in expenses_of(record, released(record))
        if each.release.unit is Unit.RECORDING
    ]
    assert spent.epsilon == epsilon_at(spent.delta, in_ledger)


def test_of_what_parameters_do_not_explain_the_published_cost_is_kept() -> None:
    record = published_statistics(1, 1e9)
    assert isinstance(record.ending, Outcome)
    events = [each.event for each in expenses_of(record, record.ending.privacy)]
    assert all(isinstance(event, SkellamSum) for event in events)
    strange = tuple(
        msgspec.structs.replace(release, epsilon=2 * release.epsilon)
        for release in record.ending.privacy
    )
    for release, event in expenses_of(record, strange):
        assert event == Approximate(release.epsilon, release.delta)


def test_what_has_not_left_a_phone_is_not_spent() -> None:
    for record in (gathering(), never_started()):
        assert released(record) == ()
        assert all(cost.epsilon == 0 for cost in spending([record]).total.values())
    under_way = running()
    steps = [step.step for step in under_way.steps if step.answered]
    plan = under_way.parameters.plan()
    left = {release.step for release in released(under_way)}
    assert left
    for name in plan.mechanisms:
        step = plan.released_in(name)
        assert step is not None
        assert (name in left) == (step.name in steps)
    silent = msgspec.structs.replace(
        under_way,
        steps=tuple(msgspec.structs.replace(step, answered=0) for step in under_way.steps),
    )
    assert released(silent) == ()
    failed = too_few()
    assert 0 < len(released(failed)) < len(failed.parameters.plan().releases())


def test_a_cohort_spends_in_phases_that_are_open_to_it() -> None:
    everybody = published_statistics(1, 1e9)
    north = msgspec.structs.replace(published_learning(2, 2e9), cohorts=("north",))
    both = msgspec.structs.replace(published_learning(3, 3e9), cohorts=("north", "south"))
    spent = spending([everybody, north, both])
    assert set(spent.cohorts) == {"north", "south"}
    for name, phases in (("north", (everybody, north, both)), ("south", (everybody, both))):
        alone = spending(phases).total
        assert spent.cohorts[name] == alone
        for unit, (epsilon, _) in by_hand(*phases).items():
            assert 0 < alone[unit].epsilon <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize("recordings", [12, COUNTED_RECORDINGS])
def test_per_phone_a_ledger_counts_more_recordings_and_the_server_says_so(recordings: int) -> None:
    parameters = msgspec.structs.replace(PARAMETERS, recordings=recordings)
    game = play(ideal=True, parameters=parameters)
    game.until(PUBLISHED)
    published = msgspec.structs.replace(
        published_learning(1, 1e9),
        parameters=parameters,
        joined=PHONES,
        ending=game.coordinator.result(),
    )
    told = {unit: cost.epsilon for unit, cost in spending([published]).total.items()}
    ledger = game.phones[0].ledger
    kept = {unit: composed_cost(ledger.expenses_of(unit)).epsilon for unit in LEDGER_UNITS}
    assert kept[Unit.RECORDING] == pytest.approx(told[Unit.RECORDING])
    if recordings == COUNTED_RECORDINGS:
        assert kept[Unit.PHONE] == pytest.approx(told[Unit.PHONE])
    else:  # both clustering and selection count COUNTED_RECORDINGS / 12 times as many
        assert kept[Unit.PHONE] > 80 * told[Unit.PHONE]
    assert of_phase(published).limited == OF_NAMED_RECORDINGS
    assert f"{COUNTED_RECORDINGS:,} recordings" in OF_NAMED_RECORDINGS


def test_only_costs_of_local_clustering_are_limited_to_some_phones() -> None:
    counted, learned = published_statistics(1, 1e9), published_learning(2, 2e9)
    assert of_phase(counted).limited == ""
    assert [row.limited for row in of_all([counted])] == [""]
    by_kind = {row.sort: row.limited for row in of_all([counted, learned])}
    assert by_kind == {
        "learning phases": OF_NAMED_RECORDINGS,
        "statistics phases": "",
        "": OF_NAMED_RECORDINGS,
    }


def test_the_api_tells_it(database: Database, tmp_path: Path) -> None:
    server = Server.over(database, tmp_path)
    nothing = body_of(server.read(PRIVACY), PrivacySpent)
    assert nothing.phases == ()
    assert [(cost.unit, cost.epsilon) for cost in nothing.total] == [
        (unit, 0.0) for unit in LEDGER_UNITS
    ]
    phase = server.start(PARAMETERS)
    view = body_of(server.read(PRIVACY), PrivacySpent)
    assert [(each.phase, each.status) for each in view.phases] == [(phase.hex(), "gathering")]
    assert view.cohorts == {}


@pytest.mark.parametrize("media_type", [JSON, MESSAGEPACK])
def test_the_operator_reads_that_no_bound_holds(
    media_type: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {Unit.PHONE: Composed(math.inf, 1e-6, AS_PHONES_DO)}
    told = PrivacySpent(phases=(), total=Spent.each(costs), cohorts={})
    read = decode_body(encode_body(told, media_type), media_type, PrivacySpent)
    assert read == told
    client = SimpleNamespace(phases=tuple, privacy=lambda: read)
    monkeypatch.setattr(OperatorConnection, "operator", lambda self: client)
    watching.list_phases()
    assert "has spent ε = ∞, δ = 10⁻⁶ per phone" in capsys.readouterr().out
