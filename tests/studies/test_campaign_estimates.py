"""A year of contacts, and what smoothing and correction make of its noisy sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.published_statistics import published
from support.reproduced import reproduced
from support.slots import COMPUTED, slot, weekly

from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.plan import planned
from earshot_server.campaigns.series import series_of
from earshot_studies.campaigns import estimates, year
from earshot_studies.campaigns.estimates import (
    AFTER,
    CORRECTED,
    RAW,
    SMOOTHED,
    campaign,
    noise_of,
)
from earshot_studies.campaigns.year import CLOSED, FIRST, LAST, PLACES, QUARTER, World, lived

WORLD = World(0.75, 0.0)


def test_every_contact_is_in_one_entry_and_beside_it_in_the_truth() -> None:
    whole, short = (lived(300, WORLD, length, 1) for length in (10_000, 3))
    assert whole.sums.sum() == pytest.approx(np.round(whole.sums).sum())
    known = whole.sums[:, : 2 * PLACES].sum(axis=1)
    assert known == pytest.approx(whole.made.sum(axis=1))
    # Labels are right, so no more contacts have a label than were made.
    assert (whole.sums[:, :PLACES] <= whole.made + 1e-6).all()
    assert short.sums.sum() < 0.9 * whole.sums.sum()
    assert short.made == pytest.approx(whole.made)
    assert not whole.made[FIRST : LAST + 1, CLOSED].any()
    assert whole.made[[FIRST - 1, LAST + 1], CLOSED].all()
    # A map's mistakes name contacts after a place that is closed.
    assert whole.sums[FIRST : LAST + 1, PLACES + CLOSED].sum() > 0


def test_a_table_weighs_right_and_wrong_names_alike() -> None:
    """Phones with several recordings of a place would weigh less if all their names were right."""
    rights = 0.8 * np.eye(PLACES) + 0.2 * np.roll(np.eye(PLACES), 1, axis=1)
    phones = np.repeat(np.arange(20_000), 4)
    places = np.repeat(np.arange(20_000) % PLACES, 4)
    table = year._table([(phones, places)], rights, 20_000, np.random.default_rng(53))
    assert table.sum() == pytest.approx(20_000)
    rates = table / table.sum(axis=1, keepdims=True)
    assert rates == pytest.approx(rights, abs=0.02)


def test_no_phone_moves_a_table_by_more_than_one() -> None:
    source = np.random.default_rng(53)
    rights = np.full((PLACES, PLACES), 1 / PLACES)
    for recordings in (1, 2, 5, 40):
        places = source.integers(PLACES, size=recordings)
        kept = [(np.zeros(recordings, np.int64), places)]
        assert np.linalg.norm(year._table(kept, rights, 1, source)) <= 1 + 1e-12


def test_harder_sound_is_named_wrongly_more_often() -> None:
    easy, hard = (lived(2000, World(0.93, harder), 100, 2) for harder in (0.0, 1.0))
    closed = slice(FIRST, LAST + 1)
    assert hard.sums[closed, PLACES + CLOSED].sum() > 2 * easy.sums[closed, PLACES + CLOSED].sum()
    # Labelled recordings are not harder, so a table does not know.
    right = np.trace(hard.tables, axis1=1, axis2=2) / hard.tables.sum(axis=(1, 2))
    assert right == pytest.approx(np.full(4, 0.93), abs=0.05)


@pytest.mark.slow
def test_the_command_leaves_what_the_estimates_are_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowds = ((20_000, SummationName.TWO_OPERATORS),)
    monkeypatch.setattr(estimates.reproduce, "__defaults__", (2, crowds, (WORLD,), print))
    rows = reproduced("campaign-estimates", tmp_path, "--seeds", 2)
    errors = {row["estimate"]: float(row["share_error"]) for row in rows}
    assert len(errors) == len(rows) == 7
    assert errors[AFTER] < errors[CORRECTED] < 0.5 * errors[SMOOTHED]
    noise = {row["estimate"]: float(row["noise_error"] or "nan") for row in rows}
    assert noise[SMOOTHED] < noise[RAW]
    held = {row["estimate"]: float(row["share_coverage"]) for row in rows}
    assert held[RAW] < 0.5
    assert 0.9 < held[CORRECTED] < 0.99
    note = (tmp_path / "campaign-estimates.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in note for name in errors)
    assert (tmp_path / "campaign-estimates.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(("phones", "right"), [(5000, 0.75), (100_000, 0.93)])
def test_a_corrected_series_holds_the_truth(phones: int, right: float) -> None:
    """Published intervals of places of 5 % or more, against the contacts that were made."""
    plan = planned(campaign(phones, SummationName.TWO_OPERATORS))
    noise, source = noise_of(plan), np.random.default_rng(76)
    year = lived(phones, World(right, 0.0), plan.contacts, 76)
    sums = year.sums + noise.with_tables * source.standard_normal(year.sums.shape)
    tables = year.tables + noise.table * source.standard_normal(year.tables.shape)
    held: dict[bool, list[list[bool]]] = {}
    for is_corrected in (False, True):
        slots = [
            slot(
                phase,
                map=f"{number // QUARTER:032x}",
                result=published(
                    plan.campaign.labels,
                    labelled=tuple(sums[number, :PLACES]),
                    named=tuple(sums[number, PLACES:-1]),
                    unknown=float(sums[number, -1]),
                    confusion=tuple(tables[number // QUARTER].flat)
                    if is_corrected and number % QUARTER == 0
                    else (),
                    deviation=noise.with_tables,
                    contacts=plan.contacts,
                    phones=phones,
                ),
            )
            for number, phase in enumerate(weekly(plan))
        ]
        held[is_corrected] = []
        for week, made in zip(series_of(plan, slots, COMPUTED).weeks, year.made, strict=True):
            assert week.corrected == is_corrected
            for row, true in zip(week.places, made, strict=True):
                if true < 0.05 * made.sum():
                    continue
                figures = (
                    (row.contacts, true),
                    (row.share, true / made.sum()),
                    (row.smoothed, true / phones),
                )
                held[is_corrected].append(
                    [each is not None and each.least <= at <= each.most for each, at in figures]
                )
    without, corrected = (np.mean(held[each], axis=0) for each in (False, True))
    assert without.max() < 0.75
    assert corrected.min() > 0.93
