"""A year of contacts in twelve places, contact by contact, with the truth beside what is summed.

Two waves and a season move the places differently, and one place is closed for eight weeks. Phones
differ in how many contacts they have (exponential) and in their places. Three contacts in ten carry
a label. A new map comes every quarter, with mistakes of its own: a place is mostly taken for one of
two others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WEEKS, MAPS = 52, 4
QUARTER = WEEKS // MAPS
SHARES = np.array([0.2, 0.15, 0.13, 0.11, 0.09, 0.08, 0.07, 0.06, 0.05, 0.03, 0.02, 0.01])
"""Shares of the places in all contacts, on average."""
PLACES = len(SHARES)
ENTRIES = 2 * PLACES + 1
UNKNOWN = ENTRIES - 1
CONTACTS = 3.0
"""Contacts of a phone in a week, on average."""
CLOSED, FIRST, LAST = 2, 30, 37
"""A place, and the first and the last week in which it is closed."""
PEAKS = (12, 42)
"""Weeks in which the waves are highest."""
_WIDTHS, _HEIGHTS = (2.5, 2.0), (0.8, 1.0)
_LABELLED, _NOT_HEARD, _JITTER = 0.3, 0.04, 0.03
_BEFORE = 4
"""Weeks whose recordings a phone still has when a new map comes."""


@dataclass(frozen=True)
class World:
    """What the maps make of the sound.

    Attributes:
        right: Share of recordings that a map names rightly, on average over places.
        harder: Share of the unlabelled recordings that is harder: half as often right.
    """

    right: float
    harder: float


class Year(NamedTuple):
    """A year of some phones.

    Attributes:
        sums: Sums of projected counts, without noise, float64 (weeks, entries): labelled, named and
            unknown contacts.
        made: Contacts that were made and have a label or a name, float64 (weeks, places).
        tables: For each map, labelled recordings of the four weeks before it by label and name,
            each phone's scaled down to a length of 1, float64 (maps, places, places).
    """

    sums: Reals
    made: Reals
    tables: Reals


def lived(phones: int, world: World, length: int, seed: int) -> Year:
    """Live through a year.

    Args:
        phones: Number of phones.
        world: What the maps make of the sound.
        length: Length to which a phone's counts of a week are projected, B.
        seed: Seed of waves, maps and contacts.
    """
    source, rates, habits = _people(phones, seed)
    maps = np.stack(
        [_rights(np.random.default_rng([seed, 2, each]), world.right) for each in range(MAPS)]
    )
    year = Year(
        np.zeros((WEEKS, ENTRIES)), np.zeros((WEEKS, PLACES)), np.zeros((MAPS, PLACES, PLACES))
    )
    kept: list[tuple[Integers, Integers]] = []
    for week, weekly in enumerate(rates, start=-_BEFORE):
        phone, place = _contacts(habits, weekly, source)
        labelled = source.random(len(phone)) < _LABELLED
        kept = [*kept, (phone[labelled], place[labelled])][-_BEFORE:]
        if week >= 0:
            entries = _entries(place, labelled, maps[week // QUARTER], world.harder, source)
            year.sums[week] = _projected(phone, entries, phones, length)
            year.made[week] = np.bincount(place[entries != UNKNOWN], minlength=PLACES)
        after = week + 1
        if after >= 0 and after % QUARTER == 0 and after < WEEKS:
            rights = maps[after // QUARTER]
            year.tables[after // QUARTER] = _table(kept, rights, phones, source)
    return year


def weekly_contacts(phones: int, seed: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield the phone and the place of each contact, by phone, for every week of a year.

    Args:
        phones: Number of phones.
        seed: Seed of waves and contacts.
    """
    source, rates, habits = _people(phones, seed)
    for weekly in rates[_BEFORE:]:
        yield _contacts(habits, weekly, source)


def _people(phones: int, seed: int) -> tuple[np.random.Generator, Reals, tuple[Reals, Reals]]:
    """Return a source of contacts, rates of all weeks, and habits of phones."""
    source = np.random.default_rng([seed, phones])
    rates = _rates(np.random.default_rng([seed, 1]))
    habits = source.exponential(CONTACTS, phones), source.dirichlet(np.full(PLACES, 0.5), phones)
    return source, rates, habits


def _rates(source: np.random.Generator) -> Reals:
    """Draw each place's share of a week's contacts, over the average week, for all weeks."""
    weeks = np.arange(-_BEFORE, WEEKS)[:, np.newaxis]
    reaction = source.uniform(-0.5, 2.5, PLACES)
    rates = 1 + 0.15 * np.cos(2 * np.pi * (weeks - 2) / WEEKS) * np.ones(PLACES)
    for peak, width, height in zip(PEAKS, _WIDTHS, _HEIGHTS, strict=True):
        rates += height * reaction * np.exp(-(((weeks - peak) / width) ** 2) / 2)
    rates = SHARES * np.maximum(rates, 0.05) * np.exp(source.normal(0, _JITTER, rates.shape))
    rates[_BEFORE + FIRST : _BEFORE + LAST + 1, CLOSED] = 0
    scaled: Reals = rates / rates[_BEFORE:].sum(axis=1).mean()
    return scaled


def _rights(source: np.random.Generator, right: float) -> Reals:
    """Draw how often a map gives each name to the recordings of each place, (places, names)."""
    rates = np.zeros((PLACES, PLACES))
    for place in range(PLACES):
        own = np.clip(right + source.normal(0, 0.04), 0.3, 0.99)
        others = np.delete(np.arange(PLACES), place)
        likely = source.choice(others, 2, replace=False)
        rates[place, others] += (1 - own) * 0.3 / len(others)
        rates[place, likely] += (1 - own) * 0.7 * np.array([0.65, 0.35])
        rates[place, place] = own
    return rates


def _contacts(
    habits: tuple[Reals, Reals], weekly: Reals, source: np.random.Generator
) -> tuple[Integers, Integers]:
    """Draw the contacts of a week: of which phone, and at which place."""
    activity, favourites = habits
    rates = favourites * PLACES * weekly
    own = source.poisson(activity * rates.sum(axis=1))
    phone = np.repeat(np.arange(len(own)), own)
    return phone, _drawn(np.cumsum(rates, axis=1), phone, source)


def _drawn(cumulative: Reals, rows: Integers, source: np.random.Generator) -> Integers:
    """Draw a column for each row of these, in proportion to cumulative weights."""
    drawn = source.random(len(rows)) * cumulative[rows, -1]
    columns = np.zeros(len(rows), np.int64)
    for column in range(cumulative.shape[1] - 1):
        columns += drawn > cumulative[rows, column]
    return columns


def _entries(
    place: Integers,
    labelled: npt.NDArray[np.bool_],
    rights: Reals,
    harder: float,
    source: np.random.Generator,
) -> Integers:
    """Return the entry of the sum in which each contact counts."""
    half = (rights + (1 - np.eye(PLACES)) / (PLACES - 1)) / 2
    named = _drawn(np.cumsum(rights, axis=1), place, source)
    hard = source.random(len(place)) < harder
    named[hard] = _drawn(np.cumsum(half, axis=1), place[hard], source)
    heard = source.random(len(place)) >= _NOT_HEARD
    return np.where(labelled, place, np.where(heard, PLACES + named, UNKNOWN))


def _projected(phone: Integers, entries: Integers, phones: int, length: int) -> Reals:
    """Add up all phones' counts, each scaled down to a length."""
    counts = np.bincount(phone * ENTRIES + entries, minlength=phones * ENTRIES)
    counts = counts.reshape(phones, ENTRIES)
    norms = np.sqrt((counts**2).sum(axis=1))
    projected: Reals = np.minimum(1, length / np.maximum(norms, 1)) @ counts
    return projected


def _table(
    kept: list[tuple[Integers, Integers]],
    rights: Reals,
    phones: int,
    source: np.random.Generator,
) -> Reals:
    """Add up all phones' labelled recordings by label and name, each phone's to a length of 1.

    The length is that of a phone's numbers of recordings by label, whatever their names: scaled by
    the table's own length, phones whose names are wrong would weigh more than others.
    """
    phone, place = (np.concatenate(part) for part in zip(*kept, strict=True))
    named = _drawn(np.cumsum(rights, axis=1), place, source)
    by_label = np.bincount(phone * PLACES + place, minlength=phones * PLACES)
    lengths = np.sqrt((by_label.reshape(phones, PLACES) ** 2).sum(axis=1))
    weights = 1 / np.maximum(lengths, 1)
    cells = np.bincount(place * PLACES + named, weights[phone], minlength=PLACES**2)
    return cells.reshape(PLACES, PLACES).astype(np.float64)
