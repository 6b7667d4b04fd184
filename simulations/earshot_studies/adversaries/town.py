"""A town of fifteen places, each of four kinds of sound, and a label that nobody gives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_client.labels import UNLABELLED
from earshot_protocol.geometry import unit_rows
from earshot_simulations.populations.interface import Recordings

PLACES, KINDS, DIMENSIONS = 15, 4, 64
EMPTY = PLACES
"""Label that nobody gives."""
_HELD_OUT = 200
"""Held-out recordings of each place."""
_KIND, _SHAPE, _SCALE = 0.6, 4.0, 0.18
"""Length of what sets a kind apart from its place, and law of what sets a sound apart from it."""


class Town:
    """A `Population` whose sounds are as alike as those of fifteen mixed places.

    Their mean cosine is .73, and 5 % of the cosines are .24 or more below it, as decision 55
    measured.

    Args:
        phones: Number of phones.
        recordings: Recordings of each.
        labelled: Fraction of the recordings that carry a label.
        seed: Seed of sounds and phones.
    """

    labels = (*(f"place {place + 1}" for place in range(PLACES)), "empty")
    dimensions = DIMENSIONS

    def __init__(self, phones: int, recordings: int, labelled: float, seed: int) -> None:
        self.phones = phones
        self._recordings, self._labelled, self._seed = recordings, labelled, seed
        source = np.random.default_rng([seed, 1])
        middles = unit_rows(source.standard_normal((PLACES, DIMENSIONS)))
        apart = source.standard_normal((PLACES, KINDS, DIMENSIONS)) / np.sqrt(DIMENSIONS)
        self._kinds = unit_rows((middles[:, None] + _KIND * apart).reshape(-1, DIMENSIONS))

    def recordings(self, phone: int) -> Recordings:
        """Return the recordings of one phone, of places that are all equally frequent."""
        source = np.random.default_rng([self._seed, 2, phone])
        places = source.integers(0, PLACES, self._recordings)
        return self._heard(source, places, self._labelled)

    def held_out(self) -> Recordings:
        """Return recordings that no phone has heard."""
        source = np.random.default_rng([self._seed, 3])
        return self._heard(source, np.repeat(np.arange(PLACES), _HELD_OUT), 1.0)

    def _heard(
        self, source: np.random.Generator, places: npt.NDArray[np.int64], labelled: float
    ) -> Recordings:
        own = self._kinds[KINDS * places + source.integers(0, KINDS, len(places))]
        apart = source.standard_normal((len(places), DIMENSIONS)) / np.sqrt(DIMENSIONS)
        points = unit_rows(own + source.gamma(_SHAPE, _SCALE, (len(places), 1)) * apart)
        labels = np.where(source.random(len(places)) < labelled, places, UNLABELLED)
        scenes = places.astype(np.int16)
        return Recordings(points.astype(np.float32), labels.astype(np.int16), scenes)
