"""Noise of two operators, as a helper and a leader really add it in sums of the product's code.

What a sum by two operators tells rests on one operator's noise. So both are watched: what each adds
must have the law that the offer states, must be fresh in every sum, and the helper must have drawn
its noise before it sees a list.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.sum_in_process import run_sum
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.two_operators.messages import HelperTotal, OfferMade, PhoneReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.wire import Answer, Task
from earshot_server.helper.book import MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_simulations.auditing import power
from earshot_simulations.auditing.ballots import operator_law
from earshot_simulations.auditing.findings import Check, p_said
from earshot_simulations.auditing.plans import PHASES
from earshot_simulations.auditing.sampling import fit
from earshot_simulations.auditing.whole_phones import apart, together

Whole = npt.NDArray[np.int64]

_PHONES, _SUMS = 3, 2
_UNLIKELY = 1e-9


def _system(number: int) -> RandomBytes:
    return os.urandom


@dataclass(frozen=True)
class AuditedOperators:
    """Operators of a sum; without arguments they are the product's, and a fault changes a part.

    Attributes:
        book: Makes the helper's book, from the parameters of the sum.
        helper: Returns the source of the helper's noise, by the number of the sum.
        leader: Returns the source of the leader's noise, likewise.
    """

    book: Callable[[TwoOperatorParameters], MemoryBook] = lambda parameters: MemoryBook()
    helper: Callable[[int], RandomBytes] = _system
    leader: Callable[[int], RandomBytes] = _system


PRODUCT = AuditedOperators()


@dataclass
class AddedNoise:
    """Noise that operators added in one sum, int64 (length,).

    Attributes:
        offered: Noise that the helper kept with its key when it offered the sum.
        helper: Noise in the helper's total.
        leader: Noise in the result beyond the helper's.
    """

    offered: Whole
    helper: Whole
    leader: Whole


@dataclass
class _Watch:
    """What is seen of one sum."""

    offered: Whole = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shares: list[bytes] = field(default_factory=list)
    total: bytes = b""


def audit_operators(draws: int, seed: int) -> Iterator[Check]:
    """Audit the noise on every sum of the audited phases by two operators.

    Args:
        draws: Entries of a sum; each is one draw of each operator.
        seed: Seed of phones' inputs.
    """
    for step, mechanism, parameters in sums_of_operators():
        yield from noise_checks(step, mechanism, parameters, draws, seed)


def noise_checks(
    step: str,
    mechanism: SumMechanism,
    parameters: Parameters,
    draws: int,
    seed: int,
    operators: AuditedOperators = PRODUCT,
) -> Iterator[Check]:
    """Check what operators add in real sums: two laws, whether it is fresh, and when it is drawn.

    Args:
        step: Name of the sum, with a planted fault in words.
        mechanism: Mechanism of the sum.
        parameters: Parameters of its phase.
        draws: Entries of a sum.
        seed: Seed of phones' inputs.
        operators: Operators, with a fault where one is planted.
    """
    name = next(name for name, each in parameters.plan().mechanisms.items() if each == mechanism)
    part = parameters.plan().part(name)
    assert isinstance(part, SecureSum)  # noqa: S101
    agreed = parameters.sum_parameters(part, (draws,))
    assert isinstance(agreed, TwoOperatorParameters)  # noqa: S101
    agreed = msgspec.structs.replace(agreed, phones=_PHONES, least=_PHONES)
    seen = [added_noise(agreed, number, seed, operators) for number in range(_SUMS)]
    for who, noises in (
        ("helper", [each.helper for each in seen]),
        ("leader", [each.leader for each in seen]),
    ):
        found, cells = fit(operator_law(agreed.noise), np.concatenate(noises))
        yield Check(
            f"{step}: what the {who} adds",
            f"the noise that the offer states (p ≥ {_UNLIKELY:g})",
            p_said(found),
            found >= _UNLIKELY,
            f"χ² test of {_SUMS * draws} entries of {_SUMS} real sums",
            power.of_fit(cells, _SUMS * draws, _UNLIKELY),
        )
    first, second = seen
    pairs = (
        (first.helper, second.helper),
        (first.leader, second.leader),
        (first.helper, first.leader),
        (second.helper, second.leader),
    )
    yield apart(
        f"{step}: noise of two sums, and of two operators",
        [together(one[None], other[None]) for one, other in pairs],
    )
    early = all(np.array_equal(each.offered, each.helper) for each in seen)
    yield Check(
        f"{step}: when the helper draws its noise",
        "before it sees a list: the total has the noise of the offer",
        "the noise of the offer" if early else "another noise",
        early,
        f"the helper's secret at the offer, and its total, of {_SUMS} real sums",
        power.EXACTLY,
    )


def added_noise(
    parameters: TwoOperatorParameters, number: int, seed: int, operators: AuditedOperators
) -> AddedNoise:
    """Run a sum, and work out what each operator added to the phones' inputs.

    Args:
        parameters: Parameters of the sum; all phones report.
        number: Number of the sum.
        seed: Seed of phones' inputs.
        operators: Operators, with a fault where one is planted.
    """
    own, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    keys = LeaderKeys(own, other.public_key().public_bytes_raw(), operators.leader(number))
    book, watch = operators.book(parameters), _Watch()
    policy = HelperPolicy(
        frozenset({keys.identity}), least_reports=_PHONES, largest_length=parameters.length
    )
    helper = Helper(other, book, policy, random=operators.helper(number))

    def answer(task: Task) -> Answer:
        given = helper.answer(task)
        if isinstance(given, OfferMade):
            secret = book.secret(given.sum_id)
            watch.offered = np.frombuffer(secret.noise if secret else b"", dtype="<i8")
        elif isinstance(given, HelperTotal):
            watch.total = given.total
        return given

    class Noting(ReportingParticipant):
        """A phone whose share for the leader is noted."""

        def answer(self, task: SumTask) -> PhoneReport:
            """Return the report."""
            report = super().answer(task)
            watch.shares.append(report.share)
            return report

    bound, generator = parameters.bound, np.random.default_rng([seed, number])
    inputs = generator.integers(-bound, bound + 1, (_PHONES, *parameters.shape))
    summation = replace(TWO_OPERATORS, participant=Noting, aggregator=keys)
    result = run_sum(parameters, inputs.__getitem__, summation=summation, helper=answer).total

    def unpacked(words: bytes) -> Any:
        return encoding.unpack(words, parameters)

    # Every input is the sum of its two shares.
    helpers: Any = unpacked(watch.total) + sum(map(unpacked, watch.shares))
    from_helper = encoding.decode(helpers, parameters) - inputs.sum(axis=0)
    return AddedNoise(watch.offered, from_helper, result - inputs.sum(axis=0) - from_helper)


@functools.cache
def sums_of_operators() -> tuple[tuple[str, Any, Parameters], ...]:
    """Return every sum of an audited phase whose noise is two operators', once a mechanism."""
    found: dict[Any, tuple[str, Any, Parameters]] = {}
    for parameters in PHASES.values():
        for step, mechanism in parameters.plan().mechanisms.items():
            if getattr(mechanism, "honest_survivors", 0) is None:
                found.setdefault(mechanism, (step, mechanism, parameters))
    return tuple(found.values())
