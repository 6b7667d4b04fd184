from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_protocol.errors import InvalidInputError, LocalError, WrongStateError
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import Approximate, DiscreteLaplaceSum, Pure, ZeroConcentrated
from earshot_protocol.privacy.ledger import DamagedLedgerError, Ledger
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit

PHASE = bytes(range(16))
OTHER = bytes(16)


def both_units(step: str, epsilon: float, delta: float = 0.0) -> tuple[Expense, ...]:
    return tuple(
        Expense(Release(step, unit, cost, delta, "some noise"), Pure(cost))
        for unit, cost in ((Unit.RECORDING, epsilon), (Unit.PHONE, 10 * epsilon))
    )


def three_steps() -> tuple[bytes, ...]:
    ledger = Ledger()
    return (
        *ledger.append(PHASE, both_units("cluster", 1.0, 1e-6)),
        *ledger.append(PHASE, both_units("select", 0.5)),
        *ledger.append(OTHER, both_units("cluster", 2.0, 1e-6)),
    )


STEPS = st.lists(
    st.tuples(st.sampled_from([PHASE, OTHER]), st.text(max_size=5), st.floats(0, 50)),
    unique_by=lambda step: step[:2],
    max_size=8,
)


@given(STEPS)
def test_what_is_appended_is_what_is_read(steps: list[tuple[bytes, str, float]]) -> None:
    written, stored = Ledger(), []
    for phase, step, epsilon in steps:
        stored += written.append(phase, both_units(step, epsilon, 1e-7))
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
    first = written.append(PHASE, both_units("cluster", 1.0))
    assert Ledger(first).append(PHASE, both_units("select", 1.0)) == written.append(
        PHASE, both_units("select", 1.0)
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
        with pytest.raises(DamagedLedgerError):
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
            ledger.append(PHASE, releases)
    assert ledger.export() == before
    assert len(ledger.append(OTHER, both_units("select", 1.0))) == 2
    assert len(ledger.append(PHASE, both_units("new", 1.0))) == 2


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1e-9, 0.0), (math.nan, 0.0), (1.0, -1e-9), (1.0, 1.1), (1.0, math.nan)]
)
def test_what_is_no_cost_is_not_recorded(epsilon: float, delta: float) -> None:
    ledger = Ledger()
    with pytest.raises(InvalidInputError):
        ledger.append(PHASE, (*both_units("cluster", 1.0), *both_units("x", epsilon, delta)))
    assert ledger.releases == ()


def test_phase_and_releases_are_needed() -> None:
    for phase in (b"", bytes(15), bytes(17)):
        with pytest.raises(InvalidInputError, match="16"):
            Ledger().append(phase, both_units("cluster", 1.0))
    with pytest.raises(InvalidInputError, match="nothing to record"):
        Ledger().append(PHASE, ())


def test_a_release_without_noise_is_recorded_as_what_it_is() -> None:
    stored = Ledger().append(PHASE, both_units("cluster", math.inf))
    assert Ledger(stored).spent()[Unit.RECORDING].epsilon == math.inf


def test_the_export_is_for_people() -> None:
    rows = Ledger(three_steps()).export()
    assert rows[3] == {
        "number": 4,
        "phase": PHASE.hex(),
        "step": "select",
        "mechanism": "some noise",
        "unit": "phone",
        "epsilon": 5.0,
        "delta": 0.0,
    }
    assert json.loads(json.dumps(rows)) == rows
    assert all(type(row["unit"]) is str for row in rows)


def test_a_ledger_from_before_events_were_kept_is_read_and_goes_on() -> None:
    """Its bytes stay as they are: only so does the chain still say that nobody changed them."""
    first = {
        "phase": PHASE,
        "release": {
            "step": "cluster",
            "unit": "recording",
            "epsilon": 1.5,
            "delta": 1e-6,
            "mechanism": "some noise",
        },
        "previous": bytes(32),
    }
    stored = msgspec.msgpack.encode(first)
    ledger = Ledger([stored])
    noise = DiscreteLaplaceSum(4.0, 2.0)
    release = Release("vote", Unit.RECORDING, 0.5, 1e-12, "ballots")
    (new,) = ledger.append(PHASE, [Expense(release, noise)])
    read = Ledger([stored, new])
    assert read.events == (
        (Unit.RECORDING, Approximate(1.5, 1e-6)),
        (Unit.RECORDING, noise),
    )
    assert read.spent()[Unit.RECORDING].epsilon == 2.0
    with pytest.raises(DamagedLedgerError, match="does not follow"):
        Ledger([stored.replace(b"cluster", b"clustex"), new])


@pytest.mark.parametrize(
    "event", [Pure(1.0), ZeroConcentrated(0.1), DiscreteLaplaceSum(4.0, 2.0), Approximate(1, 1e-6)]
)
def test_every_event_survives_the_store(event: Pure) -> None:
    release = Release("step", Unit.PHONE, 1.0, 1e-6, "noise")
    stored = Ledger().append(PHASE, [Expense(release, event)])
    assert Ledger(stored).events == ((Unit.PHONE, event),)
