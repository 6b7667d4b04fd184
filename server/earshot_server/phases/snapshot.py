"""All that is known of a phase at the start of a step."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import WrongStateError
from earshot_protocol.messages import Failed, Matrix, Result, Statistics
from earshot_protocol.phase import Parameters, PhaseParameters, Step
from earshot_protocol.privacy import accounting


class Snapshot(msgspec.Struct):
    """A phase at the start of a step: all that must survive but the answers of that step.

    `local` is the union of what phones published, `clusters` the global centroid of each of its
    rows (-1: none); `top` indexes the global centroids that the first vote kept; `contacts` is the
    histogram of a statistics phase; `sum` is the state of the secure sum under way.
    """

    phase: bytes
    parameters: Parameters
    step: Step
    deadline: float
    local: bytes = b""
    clusters: tuple[int, ...] = ()
    centroids: Matrix | None = None
    centroid_votes: tuple[int, ...] = ()
    top: tuple[int, ...] = ()
    label_votes: tuple[tuple[int, ...], ...] = ()
    labels: tuple[int, ...] = ()
    contacts: tuple[int, ...] = ()
    sum: bytes = b""
    failure: str = ""

    @property
    def learning(self) -> PhaseParameters:
        """The parameters of a learning phase.

        Raises:
            WrongStateError: it is another type of phase.
        """
        if not isinstance(self.parameters, PhaseParameters):
            raise WrongStateError(f"phase {self.phase.hex()} is not a learning phase")
        return self.parameters

    def local_centroids(self) -> npt.NDArray[np.float32] | None:
        """What phones published, float32 of shape (points, dimensions); None before discovery."""
        if not self.local:
            return None
        return np.frombuffer(self.local, dtype="<f4").reshape(-1, self.learning.dimensions)

    def candidates(self) -> Matrix:
        """The centroids that are voted on, or published: all of them, then the top ones.

        Raises:
            WrongStateError: none have been found yet.
        """
        if self.centroids is None:
            raise WrongStateError("no centroids have been found yet")
        if not self.top:
            return self.centroids
        return Matrix.of(self.centroids.array()[list(self.top)])

    def ending(self) -> Result | Statistics | Failed:
        """What phones are told at the end.

        Raises:
            WrongStateError: the phase is not over.
        """
        if self.step is Step.FAILED:
            return Failed(phase=self.phase, reason=self.failure)
        if self.step is not Step.PUBLISHED:
            raise WrongStateError(f"no result: the phase is at '{self.step}'")
        privacy = accounting.phase_releases(self.parameters)
        if not isinstance(self.parameters, PhaseParameters):
            return Statistics(
                phase=self.phase,
                label_names=self.parameters.labels,
                contacts=self.contacts,
                privacy=privacy,
            )
        return Result(
            phase=self.phase,
            geometry=self.parameters.geometry,
            centroids=self.candidates(),
            labels=self.labels,
            label_names=self.parameters.labels,
            centroid_votes=tuple(self.centroid_votes[i] for i in self.top),
            label_votes=self.label_votes,
            privacy=privacy,
        )
