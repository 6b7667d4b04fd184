"""Noise of two operators, as a real helper and leader add it.

The privacy of a sum by two operators relies on the noise of one. So both are recorded: the noise
that each adds must have the law that the offer states, be all that was drawn, and be fresh in every
sum; the helper must draw it before it sees a list. Their samplers are read word by word.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeLaplace
from earshot_protocol.sum_in_process import run_sum
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_simulations.auditing import power
from earshot_simulations.auditing.asked_amiss import list_refusals
from earshot_simulations.auditing.ballots import operator_law
from earshot_simulations.auditing.correlations import apart, together
from earshot_simulations.auditing.decisions import decisions_check
from earshot_simulations.auditing.findings import Check, p_said
from earshot_simulations.auditing.plans import PHASES
from earshot_simulations.auditing.sampling import UNLIKELY, fit
from earshot_simulations.auditing.streams import WORD_BITS, drawn_again, steered
from earshot_simulations.auditing.watched_operators import (
    PRODUCT,
    AuditedOperators,
    WatchedOperators,
    WatchedSum,
)

_PHONES, _SUMS = 3, 2
_FEW = 10
"""Entries of a sum whose total is not inspected."""
_STEERED = 2000
"""Entries of a sum whose noise is drawn with words that reach the tails."""
_LONGEST_BALLOT = 200_000
"""Most entries of a proved ballot: a million take minutes and more than a gigabyte."""


class OperatedSum(NamedTuple):
    """One sum of an audited phase to which two operators add the noise.

    Attributes:
        step: Name of the private step.
        mechanism: Mechanism of the sum.
        parameters: Parameters of its phase.
        proved: Whether phones prove their inputs.
    """

    step: str
    mechanism: SumMechanism
    parameters: Parameters
    proved: bool

    @property
    def words(self) -> str:
        """Description of the sum."""
        return f"{self.step}, proved" if self.proved else self.step

    def agreed(self, draws: int) -> TwoOperatorParameters:
        """Return parameters of such a sum with few phones and this many entries, fewer if proved.

        Args:
            draws: Entries of the sum; each is one draw of each operator.
        """
        part = self.parameters.plan().part(self.step)
        assert isinstance(part, SecureSum)  # noqa: S101
        length = min(draws, _LONGEST_BALLOT) if self.proved else draws
        agreed = self.parameters.sum_parameters(part, (length,))
        assert isinstance(agreed, TwoOperatorParameters)  # noqa: S101
        return msgspec.structs.replace(agreed, phones=_PHONES, least=_PHONES)


def audit_operators(draws: int, seed: int) -> Iterator[Check]:
    """Audit the noise on every sum of the audited phases by two operators.

    Args:
        draws: Entries of a sum; each is one draw of each operator.
        seed: Seed of phones' inputs.
    """
    read = set[object]()
    for operated in sums_of_operators():
        yield from noise_checks(operated.words, operated.agreed(draws), seed)
        noise = operated.agreed(1).noise
        if (noise, operated.proved) not in read:
            yield decisions_check(f"{operated.words}, {noise_words(noise)}", noise)
            yield list_refusals(operated.words, operated.agreed(_FEW))
        read.add((noise, operated.proved))


def noise_checks(
    case: str, parameters: TwoOperatorParameters, seed: int, operators: AuditedOperators = PRODUCT
) -> Iterator[Check]:
    """Check the noise of operators in real sums: its law, its freshness, and when it is drawn.

    Args:
        case: Description of the sum.
        parameters: Parameters of the sum.
        seed: Seed of phones' inputs.
        operators: Operators, with a fault where one is planted.
    """
    seen = real_sums(parameters, seed, operators)
    noises = [(each.helper, each.leader) for each in seen]
    for who, added in zip(("helper", "leader"), zip(*noises, strict=True), strict=True):
        found, cells = fit(operator_law(parameters.noise), np.concatenate(added))
        draws = _SUMS * parameters.length
        yield Check(
            f"{case}: what the {who} adds",
            f"the noise that the offer states (p ≥ {UNLIKELY:g})",
            p_said(found),
            found >= UNLIKELY,
            f"χ² test of {draws} entries of {_SUMS} real sums",
            power.of_fit(cells, draws, UNLIKELY),
        )
    pairs = (*zip(*noises, strict=True), *noises)
    yield apart(
        f"{case}: noise of two sums, and of two operators",
        [together(one[None], other[None]) for one, other in pairs],
    )
    early = all(
        np.array_equal(each.offered, helpers)
        for each, (helpers, _) in zip(seen, noises, strict=True)
    )
    yield Check(
        f"{case}: when the helper draws its noise",
        "before it sees a list: the total has the noise of the offer",
        "the noise of the offer" if early else "another noise",
        early,
        f"the helper's secret at the offer, and its total, of {_SUMS} real sums",
        power.EXACTLY,
    )
    proof = parameters.proof
    if isinstance(proof, Counts):
        proof = msgspec.structs.replace(proof, block=_STEERED)
    steered_sum = msgspec.structs.replace(parameters, shape=(_STEERED,), proof=proof)
    yield noise_as_drawn(case, steered_sum, seed, operators)


def noise_as_drawn(
    case: str, parameters: TwoOperatorParameters, seed: int, operators: AuditedOperators
) -> Check:
    """Check that operators add all that they draw to every entry, for words that reach the tails.

    The arguments are those of `noise_checks`; the sources of the operators' noise are replaced.
    """
    sources = (
        lambda number: steered(bytes(KEY_BYTES), "helper", number),
        lambda number: steered(bytes(KEY_BYTES), "leader", number),
    )
    led = replace(operators, helper=sources[0], leader=sources[1])
    seen, noise = real_sums(parameters, seed, led), parameters.noise
    wrong, most = 0, 0
    for each in seen:
        for added, words in zip((each.helper, each.leader), each.drawn, strict=True):
            drawn = drawn_again(lambda random: noise.drawn(parameters.length, random), words)
            # These draws may exceed the words of a sum, which hold all noise but for 2^-80.
            word = parameters.modulus_bits if parameters.proof is None else WORD_BITS
            other = (
                None if drawn is None else (added - drawn).astype(np.uint64) << (WORD_BITS - word)
            )
            wrong += parameters.length if other is None else int((other != 0).sum())
            most = max(most, 0 if drawn is None else int(np.abs(drawn).max()))
    deviation = math.sqrt(operator_law(noise).variance)
    return Check(
        f"{case}: what operators add of what they draw",
        "all of it, to every entry",
        f"{wrong} entries have another"
        if wrong
        else f"all, up to {most / deviation:.0f} deviations",
        not wrong,
        f"{_SUMS} real sums of {parameters.length} entries, by words that lead into the tails",
        power.EXACTLY,
    )


def noise_words(noise: NoiseOfOperators) -> str:
    """Return a description of an operator's noise."""
    if isinstance(noise, WholeLaplace):
        return f"discrete Laplace noise of scale {noise.scale:.4g}"
    return f"discrete Gaussian noise of deviation {math.sqrt(noise.variance):.4g}"


def real_sums(
    parameters: TwoOperatorParameters, seed: int, operators: AuditedOperators = PRODUCT
) -> list[WatchedSum]:
    """Run sums of the same operators, to which all phones report, and return the recorded sums.

    Args:
        parameters: Parameters of each sum.
        seed: Seed of phones' inputs.
        operators: Operators, with a fault where one is planted.
    """
    watched = WatchedOperators(operators)
    with watched.watching():
        for number in range(_SUMS):
            inputs = _inputs(parameters, np.random.default_rng([seed, number]))
            run_sum(parameters, inputs, summation=watched.summation, helper=watched.answer)
    return list(watched.sums.values())


def _inputs(
    parameters: TwoOperatorParameters, generator: np.random.Generator
) -> Callable[[int], npt.NDArray[np.int64]]:
    """Return a function from a phone's number to its input, which is valid in a proved sum."""
    bound, shape = parameters.bound, (parameters.phones, parameters.length)
    match parameters.proof:
        case None:
            inputs = generator.integers(-bound, bound + 1, shape)
        case Norm():  # one entry that is almost as long as a vector may be, and small ones
            inputs = generator.integers(-1, 2, shape)
            inputs[:, 0] = bound - 1 - parameters.length // bound
        case Counts(total=total, block=block):
            inputs = np.zeros(shape, dtype=np.int64)
            blocks = inputs.reshape(-1, block)
            for _ in range(total):
                blocks[np.arange(len(blocks)), generator.integers(block, size=len(blocks))] += 1
            if parameters.proof.width == 1:
                np.minimum(inputs, 1, out=inputs)
    return inputs.reshape(-1, *parameters.shape).__getitem__


@functools.cache
def sums_of_operators() -> tuple[OperatedSum, ...]:
    """Return every sum of an audited phase with the noise of two operators, each kind once."""
    found: dict[object, OperatedSum] = {}
    for parameters in PHASES.values():
        for part in parameters.plan().parts:
            if isinstance(part, SecureSum) and part.mechanism.honest_survivors is None:
                agreed = parameters.sum_parameters(part, (1,))
                assert isinstance(agreed, TwoOperatorParameters)  # noqa: S101
                proved = agreed.proof is not None
                operated = OperatedSum(part.name, part.mechanism, parameters, proved)
                found.setdefault((part.task, agreed.noise, agreed.bound, proved), operated)
    return tuple(found.values())
