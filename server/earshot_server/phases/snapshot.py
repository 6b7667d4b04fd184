"""All that is known of a phase at the start of a step, and what its kind makes of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import WrongStateError
from earshot_protocol.messages import AnyParameters, Failed
from earshot_protocol.phases.parameters import Choices
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
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.wire import Ending
from earshot_server.discovery.interface import Discovery
from earshot_server.phases.expected import Expected

Totals = npt.NDArray[np.int64]


class Snapshot(msgspec.Struct, kw_only=True):
    """A phase at the start of a step: all that must survive but the answers of that step.

    A kind of phase adds what it knows, and says what its parts make of it.

    Attributes:
        phase: identifier, 16 bytes.
        parameters: of the phase.
        step: the present one's name, or `PUBLISHED` or `FAILED`.
        deadline: seconds since 1970, on the store's clock.
        sum: of a former version, the state of the secure sum under way; now it lies beside.
        failure: why the phase failed.
        choices: per label, what polls offer for it.
        inputs: for each secure sum that is over, how many phones' inputs are in it.
    """

    phase: bytes
    parameters: AnyParameters
    step: str
    deadline: float
    sum: bytes = b""
    failure: str = ""
    choices: Choices = ()
    inputs: dict[str, int] = {}

    # What a kind of phase says of its parts; the first two before there is one.

    @staticmethod
    def expected(parameters: Any, part: str) -> Expected | None:
        """What phones will put into a secure sum, for forecasts; None where nothing is known."""

    @staticmethod
    def expected_answer(parameters: Any) -> ReleaseAnswer | None:
        """An answer to a local release, as long as one will be; None where there is none."""

    def shape(self, part: str) -> tuple[int, ...]:
        """Of an input of the secure sum that is about to begin."""
        raise self._unknown(part)

    def release_task(self, part: str) -> PartTask:
        """What begins a local release, for the phone of number 0."""
        raise self._unknown(part)

    def sum_task(self, part: str, advertise: AdvertiseKeys) -> SumPartTask:
        """What begins a secure sum, for the phone of number 0."""
        raise self._unknown(part)

    def take_answers(self, part: str, answers: Mapping[int, Any], discovery: Discovery) -> None:
        """Let the answers to a local release, by phone, go into the phase.

        Raises:
            EarshotError: nothing can be made of them; the phase ends.
        """
        raise self._unknown(part)

    def take_total(self, part: str, total: Totals) -> None:
        """Let the total of a secure sum go into the phase."""
        raise self._unknown(part)

    def published(self) -> Outcome:
        """What is published at the end."""
        raise WrongStateError(f"this kind of phase publishes nothing: {type(self).__name__}")

    def _unknown(self, part: str) -> WrongStateError:
        return WrongStateError(f"{type(self).__name__} knows nothing of a part '{part}'")

    # What is the same for all.

    def noise(self, part: str) -> NoiseLaw:
        """On each entry of the total of a secure sum that is over.

        Where nobody counted the inputs, as in a sum that began under a former release, all phones
        are taken to have added theirs: that is the most noise there can be.
        """
        parameters = self.parameters
        summed = parameters.plan().part(part)
        if not isinstance(summed, SecureSum):
            raise WrongStateError(f"'{part}' is no secure sum: no noise is shared in it")
        return summed.mechanism.noise(self.inputs.get(part, parameters.phones))

    def fail(self, reason: str) -> None:
        """Let the phase end without a result, for a reason that phones are told."""
        self.step, self.failure = FAILED, reason

    def ending(self) -> Ending:
        """What phones are told at the end.

        Raises:
            WrongStateError: the phase is not over.
        """
        if self.step == FAILED:
            return Failed.because(self.phase, self.failure)
        if self.step != PUBLISHED:
            raise WrongStateError(f"no result: the phase is at '{self.step}'")
        return self.published()
