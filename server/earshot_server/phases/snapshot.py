"""Snapshot of a phase, with the server's part in it, which each kind of phase implements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import WrongStateError
from earshot_protocol.messages import AnyParameters, Failed
from earshot_protocol.phases.parameters import Choices, hierarchy_of
from earshot_protocol.phases.plan import (
    FAILED,
    PUBLISHED,
    Outcome,
    PartTask,
    ReleaseAnswer,
    SecureSum,
    SumPartTask,
)
from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.summations import Opening
from earshot_protocol.wire import Ending
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.phases.expected import Expected

Totals = npt.NDArray[np.int64]


class Snapshot(msgspec.Struct, kw_only=True):
    """Phase at the start of a step: its whole state except the answers of that step.

    Each kind of phase adds its own state, and the methods that process its parts.

    Attributes:
        phase: Identifier of the phase, 16 bytes.
        parameters: Parameters of the phase.
        step: Name of the present step, or `PUBLISHED` or `FAILED`.
        deadline: End of the present step in seconds since 1970, on the store's clock.
        failure: Reason why the phase failed.
        choices: Choices that polls offer, per label.
        inputs: Number of phones in each secure sum that is over, by part.
    """

    phase: bytes
    parameters: AnyParameters
    step: str
    deadline: float
    failure: str = ""
    choices: Choices = ()
    inputs: dict[str, int] = {}

    @property
    def hierarchy(self) -> LabelHierarchy:
        """Labels of the phase with their choices."""
        return hierarchy_of(self.parameters.labels, self.choices)

    # Each kind of phase defines these; the first two need no phase, only parameters.

    @staticmethod
    def expected(parameters: Any, part: str) -> Expected | None:
        """Return the expected inputs of a secure sum, for forecasts; None if unknown."""

    @staticmethod
    def expected_answer(parameters: Any) -> ReleaseAnswer | None:
        """Return an example answer to a local release, of the right size; None without one."""

    def shape(self, part: str) -> tuple[int, ...]:
        """Return the shape of an input of the secure sum that is about to begin."""
        raise self._unknown(part)

    def release_task(self, part: str) -> PartTask:
        """Return the task that begins a local release, for phone number 0."""
        raise self._unknown(part)

    def sum_task(self, part: str, opening: Opening) -> SumPartTask:
        """Return the task that begins a secure sum, for phone number 0."""
        raise self._unknown(part)

    def take_answers(
        self, part: str, answers: Mapping[int, Any], discovery: CentroidDiscovery
    ) -> None:
        """Process the answers to a local release, by phone.

        Raises:
            EarshotError: No result can be computed from them; the phase ends.
        """
        raise self._unknown(part)

    def take_total(self, part: str, total: Totals) -> None:
        """Process the total of a secure sum."""
        raise self._unknown(part)

    def published(self) -> Outcome:
        """Return the result to be published."""
        raise WrongStateError(f"this kind of phase publishes nothing: {type(self).__name__}")

    def _unknown(self, part: str) -> WrongStateError:
        return WrongStateError(f"{type(self).__name__} does not implement the part '{part}'")

    # These are the same for all kinds.

    def noise(self, part: str) -> NoiseLaw:
        """Return the law of the noise on each entry of the total of a secure sum that is over."""
        summed = self.parameters.plan().part(part)
        if not isinstance(summed, SecureSum):
            raise WrongStateError(f"'{part}' is not a secure sum: no noise is shared in it")
        return summed.mechanism.noise(self.inputs[part])

    def fail(self, reason: str) -> None:
        """End the phase without a result; the reason is sent to phones."""
        self.step, self.failure = FAILED, reason

    def ending(self) -> Ending:
        """Return the ending that is sent to phones.

        Raises:
            WrongStateError: The phase is not over.
        """
        if self.step == FAILED:
            return Failed.because(self.phase, self.failure)
        if self.step != PUBLISHED:
            raise WrongStateError(f"no result: the phase is at '{self.step}'")
        return self.published()
