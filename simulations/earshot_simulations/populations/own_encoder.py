"""An encoder of the caller's own, whose every answer is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder, rate_of
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_protocol.wire import LARGEST_DIMENSIONS
from earshot_simulations.own_code import OwnCodeError, own_code
from earshot_simulations.populations.interface import random_directions
from earshot_simulations.populations.own import checked_points, short_text

LEAST_RATE, LARGEST_RATE = 1_000, 192_000
"""Least and most samples per second of an encoder."""


class OwnEncoder:
    """An `Encoder` of the caller's own, as phones ask it.

    Attributes:
        name: Name of the encoder.
        dimensions: Length of an embedding.
        rate: Samples per second that it hears.
        key: Text that changes with the encoder; None without one.
        projects: Whether it has projections; without them, embeddings are compared whole.
        has_start: Whether it has start centroids; without them, they are random directions.
    """

    def __init__(self, own: Encoder) -> None:
        """Check everything but the embeddings.

        Raises:
            InvalidParametersError: An attribute is missing or cannot be used.
        """
        self._own: Any = own
        self._is = f"encoder {type(own).__name__}"
        if not callable(getattr(own, "embed", None)) or not hasattr(own, "dimensions"):
            raise InvalidParametersError(
                f"{self._is}: must have `name`, `dimensions` and embed(samples), and may have "
                "`rate`, project(embeddings, dimensions) and start_centroids(dimensions, count) "
                "(earshot_simulations.Encoder)"
            )
        self.name = short_text(self._is, "name", getattr(own, "name", type(own).__name__))
        if self.name in SHIPPED_ENCODERS:
            raise InvalidParametersError(
                f"{self._is}: name='{self.name}': is that of a shipped encoder, whose embeddings "
                "do not compare with these; give another"
            )
        most = LARGEST_DIMENSIONS
        self.dimensions = checks.whole(f"{self._is}: dimensions", own.dimensions, 1, most)
        rate = getattr(own, "rate", None)
        self.rate = checks.whole(
            f"{self._is}: rate", rate_of(own) if rate is None else rate, LEAST_RATE, LARGEST_RATE
        )
        self.key: str | None = getattr(own, "key", None)
        self.projects = callable(getattr(own, "project", None))
        self.has_start = callable(getattr(own, "start_centroids", None))

    def usual_dimensions(self, usual: int) -> int:
        """Return the dimensions in which sound is compared, where the settings do not say."""
        return min(usual, self.dimensions) if self.projects else self.dimensions

    def check_dimensions(self, dimensions: int) -> None:
        """Refuse a projection that there is not.

        Raises:
            InvalidParametersError: The encoder cannot project on this many dimensions.
        """
        least = 1 if self.projects else self.dimensions
        if not least <= dimensions <= self.dimensions:
            accepted = f"1 to {self.dimensions}" if self.projects else f"{self.dimensions}"
            why = "the length of an embedding" + ("" if self.projects else ", as it has no project")
            raise InvalidParametersError(
                f"dimensions={dimensions}: must be {accepted}, {why}, for {self._is}"
            )

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Embed seconds of sound, float32 (batch, rate).

        Raises:
            OwnCodeError: The encoder raised, or its embeddings are not finite unit rows.
        """
        with own_code(f"{self._is}: embed"):
            given = self._own.embed(samples)
        return self._rows("embed", given, len(samples), self.dimensions)

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Project embeddings.

        Raises:
            OwnCodeError: The encoder raised, or its projections are not finite unit rows.
        """
        if not self.projects:
            return np.asarray(embeddings, dtype=np.float32)
        with own_code(f"{self._is}: project"):
            given = self._own.project(embeddings, dimensions)
        return self._rows("project", given, len(embeddings), dimensions)

    def start_centroids(self, dimensions: int, count: int) -> NDArray[np.float32]:
        """Return the encoder's start centroids, or random directions.

        Raises:
            OwnCodeError: The encoder raised, or they are not as many finite rows.
        """
        if not self.has_start:
            return random_directions(count, dimensions).astype(np.float32)
        with own_code(f"{self._is}: start_centroids"):
            given = self._own.start_centroids(dimensions, count)
        where = f"{self._is}: start_centroids({dimensions}, {count})"
        return _as_many(where, checked_points(where, given, dimensions), count)

    def _rows(self, call: str, given: Any, count: int, dimensions: int) -> NDArray[np.float32]:
        where = f"{self._is}: {call}"
        points = checked_points(where, given, dimensions, Geometry.SPHERICAL)
        return _as_many(where, points, count)


def _as_many(where: str, rows: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    if len(rows) != count:
        raise OwnCodeError(f"{where} has {len(rows)} rows: must be {count}")
    return rows
