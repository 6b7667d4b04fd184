"""The name of a mechanism in ledgers and on pages says which noise is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy import sum_noise
from earshot_protocol.privacy.sum_noise import NoiseOfOperators
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators.parameters import TwoOperatorParameters

WORDS = {
    "polya_share": "discrete Laplace noise",  # shares of it
    "skellam_share": "Skellam noise",
    "discrete_laplace": "discrete Laplace noise",
    "discrete_gaussian": "discrete Gaussian noise",
}
PHASES = [
    learning_parameters(),
    discovery_parameters(),
    discovery_parameters(sums=3, kinds=2),
    labelling_parameters(),
    statistics_parameters(),
]


class DrawnError(Exception):
    """A sampler was called."""


def sampler_of(parameters: Parameters, part: SecureSum, monkeypatch: pytest.MonkeyPatch) -> str:
    """The sampler that makes the noise of a sum: each phone's, or each operator's."""
    with monkeypatch.context() as watched:
        for name in WORDS:

            def drawn(*args: Any, sampler: str = name) -> Any:
                raise DrawnError(sampler)

            watched.setattr(sum_noise, name, drawn)
        draw: Callable[[int], Any] = part.mechanism.noise_share
        agreed = parameters.sum_parameters(part, (2, 2))
        if isinstance(agreed, TwoOperatorParameters):
            # As an operator draws it: from what the offer says, which travels.
            sent = msgspec.msgpack.encode(agreed.noise)
            draw = msgspec.msgpack.decode(sent, type=NoiseOfOperators).drawn
        with pytest.raises(DrawnError) as caught:
            draw(4)
    return str(caught.value)


@pytest.mark.parametrize("summation", SummationName)
@pytest.mark.parametrize("parameters", PHASES, ids=lambda each: each.kind)
def test_every_ledger_and_page_names_the_noise_that_is_drawn(
    parameters: Parameters, summation: SummationName, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = msgspec.structs.replace(parameters, summation=summation)
    plan = parameters.plan()
    sums = [part for part in plan.parts if isinstance(part, SecureSum)]
    assert sums
    for part in sums:
        word = WORDS[sampler_of(parameters, part, monkeypatch)]
        published = [each for each in plan.releases() if each.step == part.name]
        booked = [
            each.release
            for weight in parameters.weights
            for each in parameters.expenses(weight, 5)
            if each.release.step == part.name
        ]
        assert len(published) == 2
        assert len(booked) == 2 * len(parameters.weights)
        for release in (*published, *booked):
            assert release.mechanism.endswith(f" with {word}")
            assert sum(other in release.mechanism for other in set(WORDS.values())) == 1
            assert len(release.mechanism) < 60
