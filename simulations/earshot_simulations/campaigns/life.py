"""What the phones of a campaign hear, week after week.

A phone has a number. When its user leaves, a new phone with an empty store gets the number. Weeks
count from 1, the campaign's first; the four before it, from −3, are what a discovery on the first
day finds in phones.

In week w, phone i has a Poisson number of contacts at place j. Its mean is the expected number of
contacts × the phone's activity (gamma, mean 1) × the place's share in the phone's own mix
(Dirichlet around the common mix) × the factor of week and place: waves, seasons and the authority's
file. A contact is a recording of its place, drawn from a pool. With drift, it is moved towards
another place, in proportion to the part of a year that has passed, and brought back to the sphere.
"""

from __future__ import annotations

import math
from collections import deque
from datetime import date, timedelta
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_client.expiry import KEEP_DAYS
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.campaigns.campaign import WEEK, Campaign
from earshot_simulations.campaigns.factors import read_factors
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.populations import seeds
from earshot_simulations.populations.interface import Recordings, SimulatedPopulation
from earshot_simulations.populations.population import UNLABELLED

KEPT_WEEKS = KEEP_DAYS // 7
FIRST_WEEK = 1 - KEPT_WEEKS
_WAVES = 2
_WAVE_WEEKS = 3.0
"""Standard deviation of a wave, in weeks."""
_YEAR_WEEKS = 366 / 7
_LEAST_YEAR = 52


class _Stream(IntEnum):
    """Independent sources of randomness under one seed."""

    YEAR = 0xCA0
    PEOPLE = 0xCA1
    LEAVERS = 0xCA2
    CONTACTS = 0xCA3


class WeekContacts(NamedTuple):
    """Contacts of all phones in one week, by phone and then by day.

    Attributes:
        number: Number of the week.
        phones: Phone of each contact, int64 (contacts,).
        recordings: The recordings.
    """

    number: int
    phones: NDArray[np.int64]
    recordings: Recordings


class Life:
    """Phones of a campaign, from week to week.

    Args:
        campaign: The campaign.
        settings: Settings, checked; its number of phones is that of the campaign.
        pool: Recordings from which contacts are drawn; all scenes are known.
        scenes: Label of the campaign that each scene of the pool is.

    Attributes:
        phones: Number of phones.
        factors: Factors of contacts, float64 (weeks, places).
        shares: Common mix of places, float64 (places,).

    Raises:
        InvalidInputError: The file of factors cannot be used.
    """

    def __init__(
        self,
        campaign: Campaign,
        settings: CampaignSettings,
        pool: Recordings,
        scenes: NDArray[np.int64],
    ) -> None:
        self._campaign, self._settings = campaign, settings
        self.phones = campaign.expected.phones
        self._places = len(campaign.labels)
        places = scenes[pool.scenes]
        order = np.argsort(places, kind="stable")
        self._pool = pool.points[order]
        self._starts = np.searchsorted(places[order], np.arange(self._places + 1))
        present = np.diff(self._starts) > 0
        year = seeds.generator(settings.seed, _Stream.YEAR)
        shares = 1 / np.sqrt(1.0 + year.permutation(self._places)) * present
        self.shares = shares / shares.sum()
        self.factors = self._factors(year)
        self._directions = self._towards_others(year.permutation(np.flatnonzero(present)))
        self._activity = np.empty(self.phones)
        self._mix = np.empty((self.phones, self._places))
        self._week = FIRST_WEEK - 1
        self._kept: deque[WeekContacts] = deque()
        self._gone = np.zeros(self.phones, dtype=np.int64)
        self.joined = np.full(self.phones, FIRST_WEEK)

    @property
    def week(self) -> int:
        """Newest week that has been lived."""
        return self._week

    def live(self) -> NDArray[np.int64]:
        """Live through one more week; return the phones that were replaced at its beginning."""
        self._week += 1
        if self._week == FIRST_WEEK:
            self._renew(np.arange(self.phones))
            leavers = np.empty(0, dtype=np.int64)
        else:
            drawn = seeds.generator(
                self._settings.seed, _Stream.LEAVERS, self._week - FIRST_WEEK
            ).random(self.phones)
            leavers = np.flatnonzero(drawn < self._settings.turnover)
            self._renew(leavers)
        self._kept.append(self._contacts())
        if len(self._kept) > KEPT_WEEKS:
            old = self._kept.popleft()
            of_same = old.phones[self.joined[old.phones] <= old.number]
            self._gone += np.bincount(of_same, minlength=self.phones)
        return leavers

    def newest(self) -> WeekContacts:
        """Return the contacts of the newest week."""
        return self._kept[-1]

    def of_week(self, number: int) -> WeekContacts:
        """Return the contacts of one of the newest four weeks."""
        return next(each for each in self._kept if each.number == number)

    def present(self, source: SimulatedPopulation) -> PresentPhones:
        """Return the phones with what they have heard in the newest four weeks."""
        phones = np.concatenate([each.phones for each in self._kept])
        weeks = np.repeat(
            [each.number for each in self._kept], [len(each.phones) for each in self._kept]
        )
        own = weeks >= self.joined[phones]
        columns = zip(*(each.recordings for each in self._kept), strict=True)
        heard = Recordings(*(np.concatenate(column) for column in columns))
        order = np.flatnonzero(own)[np.argsort(phones[own], kind="stable")]
        starts = np.concatenate([[0], np.cumsum(np.bincount(phones[own], minlength=self.phones))])
        return PresentPhones(
            source, self._campaign.labels, heard.rows(order), starts, self._gone + 1
        )

    def _towards_others(self, cycle: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return directions from the mean recording of each place to that of the next in a cycle.

        Towards another place drift does a map most harm.
        """
        directions = np.zeros((self._places, self._pool.shape[1]))
        means = [
            self._pool[self._starts[place] : self._starts[place + 1]].mean(axis=0)
            for place in cycle
        ]
        directions[cycle] = np.roll(means, -1, axis=0) - means
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.where(length > 0, length, 1.0)
        return directions

    def _factors(self, generator: np.random.Generator) -> NDArray[np.float64]:
        settings, weeks = self._settings, self._campaign.weeks
        numbers = np.arange(FIRST_WEEK, weeks + 1)
        # One in each half of a year: a short campaign may see none, and not both at once.
        half = max(weeks, _LEAST_YEAR) / _WAVES
        peaks = (np.arange(_WAVES) + generator.random(_WAVES)) * half
        bumps = np.exp(-((numbers[:, None] - peaks) ** 2) / (2 * _WAVE_WEEKS**2)).sum(axis=1)
        phases = generator.random(self._places)
        season = np.cos(2 * math.pi * (numbers[:, None] / _YEAR_WEEKS - phases))
        factors: NDArray[np.float64] = (1 + settings.wave * bumps)[:, None] * (
            1 + settings.season * season
        )
        if settings.contacts is not None:
            factors[-FIRST_WEEK + 1 :] *= read_factors(
                settings.contacts, weeks, self._campaign.labels
            )
        return factors

    def _renew(self, phones: NDArray[np.int64]) -> None:
        """Give phones new users."""
        settings = self._settings
        people = seeds.generator(settings.seed, _Stream.PEOPLE, self._week - FIRST_WEEK)
        if settings.overdispersion:
            shape = 1 / settings.overdispersion
            self._activity[phones] = people.gamma(shape, 1 / shape, len(phones))
        else:
            self._activity[phones] = 1.0
        weights = settings.concentration * self.shares
        drawn = people.gamma(np.broadcast_to(weights, (len(phones), self._places)))
        total = drawn.sum(axis=1, keepdims=True)
        mix = np.divide(drawn, total, out=np.zeros_like(drawn), where=total > 0)
        self._mix[phones] = np.where(total > 0, mix, self.shares)
        self.joined[phones] = self._week
        self._gone[phones] = 0

    def _contacts(self) -> WeekContacts:
        settings = self._settings
        generator = seeds.generator(settings.seed, _Stream.CONTACTS, self._week - FIRST_WEEK)
        mean = self._campaign.expected.contacts * self.factors[self._week - FIRST_WEEK]
        counts = generator.poisson(self._activity[:, None] * self._mix * mean)
        cells = np.repeat(np.arange(counts.size), counts.ravel())
        phones, places = np.divmod(cells, self._places)
        total = len(phones)
        days = generator.integers(7, size=total)
        order = np.lexsort((days, phones))
        phones, places, days = phones[order], places[order], days[order]
        rows = generator.integers(self._starts[places], self._starts[places + 1])
        points = self._pool[rows]
        if settings.drift:
            passed = settings.drift * (self._week - FIRST_WEEK) / _YEAR_WEEKS
            moved = points + passed * self._directions[places]
            points = (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)
        labelled = generator.random(total) < settings.labelled
        first = np.datetime64(self._begins(self._week), "D")
        scenes = places.astype(np.int16)
        return WeekContacts(
            self._week,
            phones,
            Recordings(
                points,
                np.where(labelled, scenes, np.int16(UNLABELLED)),
                scenes,
                first + days.astype("timedelta64[D]"),
            ),
        )

    def _begins(self, week: int) -> date:
        return self._campaign.begins + timedelta(days=(week - 1) * WEEK.days)


class PresentPhones(SimulatedPopulation):
    """Phones at one moment of a campaign, with the recordings that they have not forgotten yet.

    Args:
        source: Population whose encoder and start centroids are used.
        labels: Labels of the campaign.
        heard: Recordings by phone.
        starts: First recording of each phone, and the number of all.
        numbers: Number of each phone's oldest recording.
    """

    name = "campaign"

    def __init__(
        self,
        source: SimulatedPopulation,
        labels: tuple[str, ...],
        heard: Recordings,
        starts: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> None:
        self.encoder, self.geometry = source.encoder, Geometry(source.geometry)
        self.dimensions, self.labels = source.dimensions, labels
        self.phones = len(starts) - 1
        self._source, self._heard, self._starts, self._numbers = source, heard, starts, numbers

    @override
    def recordings(self, phone: int) -> Recordings:
        return self._heard.rows(slice(self._starts[phone], self._starts[phone + 1]))

    @override
    def first_number(self, phone: int) -> int:
        return int(self._numbers[phone])

    @override
    def start(self, cells: int) -> CentroidSet:
        return self._source.start(cells)

    @override
    def held_out(self) -> Recordings:
        return self._source.held_out()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_source": None}
