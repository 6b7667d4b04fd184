from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from datetime import date, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_protocol.errors import InvalidInputError, LocalError, WrongStateError
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import (
    Approximate,
    DiscreteLaplaceSum,
    Event,
    Pure,
    RenyiCurve,
    ZeroConcentrated,
)
from earshot_protocol.privacy.ledger import DamagedLedgerError, Ledger, intact
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit

PHASE = bytes(range(16))
OTHER = bytes(16)
DAY = date(2026, 3, 2)


def both_units(step: str, epsilon: float, delta: float = 0.0) -> tuple[Expense, ...]:
    return tuple(
        Expense(Release(step, unit, cost, delta, "some noise"), Pure(cost))
        for unit, cost in ((Unit.RECORDING, epsilon), (Unit.PHONE, 10 * epsilon))
    )


def three_steps() -> tuple[bytes, ...]:
    ledger = Ledger()
    return (
        *ledger.append(PHASE, both_units("cluster", 1.0, 1e-6), DAY),
        *ledger.append(PHASE, both_units("select", 0.5), DAY),
        *ledger.append(OTHER, both_units("cluster", 2.0, 1e-6), DAY),
    )


NAMES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=5)
STEPS = st.lists(
    st.tuples(st.sampled_from([PHASE, OTHER]), NAMES, st.floats(0, 50)),
    unique_by=lambda step: step[:2],
    max_size=8,
)


@given(STEPS)
def test_what_is_appended_is_what_is_read(steps: list[tuple[bytes, str, float]]) -> None:
    written, stored = Ledger(), []
    for phase, step, epsilon in steps:
        stored += written.append(phase, both_units(step, epsilon, 1e-7), DAY)
    read = Ledger(stored)
    assert read.releases == written.releases
    assert read.events == written.events
    assert read.events == tuple(
        (unit, Pure(factor * epsilon))
        for _, _, epsilon in steps
        for unit, factor in ((Unit.RECORDING, 1), (Unit.PHONE, 10))
    )
    assert read.export() == written.export()
    everything = math.fsum(epsilon for _, _, epsilon in steps)
    assert read.spent()[Unit.RECORDING].epsilon == pytest.approx(everything)
    assert read.spent()[Unit.PHONE].epsilon == pytest.approx(10 * everything)
    assert read.spent()[Unit.RECORDING].delta == pytest.approx(1e-7 * len(steps))
    assert [release.step for release in read.releases_in(PHASE)] == [
        step for phase, step, _ in steps for _ in LEDGER_UNITS if phase == PHASE
    ]


def test_the_chain_is_the_hash_of_the_encoded_entry_before() -> None:
    previous = bytes(32)
    for encoded in three_steps():
        plain = msgspec.msgpack.decode(encoded)
        assert plain["previous"] == previous
        previous = hashlib.sha256(encoded).digest()


def test_a_ledger_read_from_a_store_goes_on_with_the_same_chain() -> None:
    written = Ledger()
    first = written.append(PHASE, both_units("cluster", 1.0), DAY)
    assert Ledger(first).append(PHASE, both_units("select", 1.0), DAY) == written.append(
        PHASE, both_units("select", 1.0), DAY
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda entries: entries[1:],
        lambda entries: entries[:2] + entries[3:],
        lambda entries: (entries[1], entries[0], *entries[2:]),
        lambda entries: (*entries, entries[-1]),
        lambda entries: (entries[0], *entries),
        lambda entries: (*entries, b""),
        lambda entries: (*entries[:-1], entries[-1] + b"\0"),
        lambda entries: (*entries[:-1], entries[-1][:-1]),
    ],
)
def test_a_broken_chain_is_noticed(
    damage: Callable[[tuple[bytes, ...]], tuple[bytes, ...]],
) -> None:
    with pytest.raises(DamagedLedgerError):
        Ledger(damage(three_steps()))


def test_every_changed_bit_before_the_last_entry_is_noticed() -> None:
    entries = three_steps()
    for number, encoded in enumerate(entries[:-1]):
        for place in range(8 * len(encoded)):
            changed = bytearray(encoded)
            changed[place // 8] ^= 1 << place % 8
            with pytest.raises(DamagedLedgerError, match="ledger"):
                Ledger((*entries[:number], bytes(changed), *entries[number + 1 :]))


def test_a_forged_entry_without_a_cost_is_noticed() -> None:
    release = msgspec.to_builtins(both_units("cluster", 1.0)[0].release)
    for name, value in (("epsilon", math.nan), ("epsilon", -5.0), ("delta", 1.5), ("unit", "day")):
        forged = {"phase": PHASE, "release": {**release, name: value}, "previous": bytes(32)}
        with pytest.raises(DamagedLedgerError, match=rf"unreadable: .*{name}"):
            Ledger([msgspec.msgpack.encode(forged)])
    assert issubclass(DamagedLedgerError, LocalError)


def test_a_step_of_a_phase_is_released_once() -> None:
    ledger = Ledger(three_steps())
    before = ledger.export()
    for releases in (
        both_units("cluster", 1.0),
        both_units("cluster", 0.0)[:1],
        both_units("new", 1.0) + both_units("select", 1.0),
    ):
        with pytest.raises(WrongStateError, match="released already"):
            ledger.append(PHASE, releases, DAY)
    assert ledger.export() == before
    assert len(ledger.append(OTHER, both_units("select", 1.0), DAY)) == 2
    assert len(ledger.append(PHASE, both_units("new", 1.0), DAY)) == 2


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1e-9, 0.0), (math.nan, 0.0), (1.0, -1e-9), (1.0, 1.1), (1.0, math.nan)]
)
def test_what_is_no_cost_is_not_recorded(epsilon: float, delta: float) -> None:
    ledger = Ledger()
    with pytest.raises(InvalidInputError):
        ledger.append(PHASE, (*both_units("cluster", 1.0), *both_units("x", epsilon, delta)), DAY)
    assert ledger.releases == ()


def test_phase_and_releases_are_needed() -> None:
    for phase in (b"", bytes(15), bytes(17)):
        with pytest.raises(InvalidInputError, match="16"):
            Ledger().append(phase, both_units("cluster", 1.0), DAY)
    with pytest.raises(InvalidInputError, match="nothing to record"):
        Ledger().append(PHASE, (), DAY)


def test_a_release_without_noise_is_recorded_as_what_it_is() -> None:
    stored = Ledger().append(PHASE, both_units("cluster", math.inf), DAY)
    assert Ledger(stored).spent()[Unit.RECORDING].epsilon == math.inf


def test_the_export_is_for_people() -> None:
    rows = Ledger(three_steps()).export()
    assert rows[3] == {
        "number": 4,
        "day": "2026-03-02",
        "phase": PHASE.hex(),
        "step": "select",
        "mechanism": "some noise",
        "unit": "phone",
        "epsilon": 5.0,
        "delta": 0.0,
        "event": {"event": "pure", "epsilon": 5.0, "times": 1},
    }
    assert json.loads(json.dumps(rows)) == rows
    assert all(type(row["unit"]) is str for row in rows)


@pytest.mark.parametrize(
    "event",
    [
        Pure(1.0),
        ZeroConcentrated(0.1),
        DiscreteLaplaceSum(4.0, 2.0),
        RenyiCurve((2.0, 3.5), (0.1, 0.2)),
        Approximate(1, 1e-6),
    ],
)
def test_every_event_survives_the_store(event: Event) -> None:
    release = Release("step", Unit.PHONE, 1.0, 1e-6, "noise")
    stored = Ledger().append(PHASE, [Expense(release, event)], DAY)
    assert Ledger(stored).events == ((Unit.PHONE, event),)


def test_an_entry_keeps_its_day_for_good() -> None:
    release = Release("vote", Unit.PHONE, 1.0, 1e-12, "ballots")
    (first,) = Ledger().append(PHASE, [Expense(release, Pure(1.0))], DAY)
    ledger = Ledger([first])
    assert [row["day"] for row in ledger.export()] == ["2026-03-02"]
    for days, counted in ((0, 1), (365, 1), (366, 0), (10_000, 0)):
        assert len(ledger.expenses_of(Unit.PHONE, today=DAY + timedelta(days=days))) == counted
    (second,) = ledger.append(OTHER, [Expense(release, Pure(2.0))], DAY)
    with pytest.raises(DamagedLedgerError, match="does not follow"):
        Ledger([first.replace(b"2026", b"2016"), second])


@pytest.mark.parametrize("lacking", ["event", "day"])
def test_an_entry_without_an_event_or_a_day_is_not_read(lacking: str) -> None:
    fields = msgspec.msgpack.decode(three_steps()[0])
    del fields[lacking]
    with pytest.raises(DamagedLedgerError, match="entry 1 of the ledger is unreadable"):
        Ledger([msgspec.msgpack.encode(fields)])


@given(
    st.lists(st.dates(date(2000, 1, 1), date(2030, 1, 1)), max_size=12),
    st.dates(date(1999, 1, 1), date(2035, 1, 1)),
)
def test_a_year_holds_what_may_have_been_released_in_it(days: list[date], today: date) -> None:
    """Against a slow reading of the rule; what a later clock frees, no earlier one does."""
    ledger = Ledger()
    for number, day in enumerate(days):
        release = Release(str(number), Unit.PHONE, 1.0, 0.0, "some noise")
        ledger.append(PHASE, [Expense(release, Pure(1.0))], day)
    expected = []
    for number in range(len(days)):
        if (today - max(days[: number + 1])).days < 366:
            expected.append(str(number))
    found = [each.release.step for each in ledger.expenses_of(Unit.PHONE, today=today)]
    assert found == expected
    assert ledger.expenses_of(Unit.RECORDING, today=today) == ()
    before = ledger.expenses_of(Unit.PHONE, today=today - timedelta(days=100))
    assert set(found) <= {each.release.step for each in before}


def test_as_many_entries_are_intact_as_come_before_the_first_that_is_not() -> None:
    entries = three_steps()
    assert intact(()) == 0
    assert intact(entries) == len(entries) == 6
    for at in range(len(entries)):
        unreadable = (*entries[:at], b"no entry", *entries[at + 1 :])
        without = (*entries[:at], *entries[at + 1 :])
        assert intact(unreadable) == at
        assert intact(without) == (at if at < len(entries) - 1 else len(entries) - 1)
    with pytest.raises(DamagedLedgerError, match="entry 3 of the ledger is unreadable"):
        Ledger((*entries[:2], b"no entry"))
