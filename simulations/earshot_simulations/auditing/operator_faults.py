"""Planted faults in two operators' noise, in its accounting, and in proofs."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.arrays import Whole
from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.overriding import override
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.discovery_budget import affordable
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.prio3.circuit import Circuit
from earshot_protocol.prio3.derivation import Derivation
from earshot_protocol.prio3.field import Arithmetic, Elements
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Counts, Norm, Shape
from earshot_protocol.prio3.xof import SEED_BYTES
from earshot_protocol.privacy.mechanisms import GRID, BallotSum, Unit, VectorSum
from earshot_protocol.privacy.noise import Size
from earshot_protocol.privacy.sum_noise import (
    NoiseOfOperators,
    SkellamShares,
    WholeGaussian,
    WholeLaplace,
    laplace,
)
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import encoding
from earshot_protocol.two_operators import lists
from earshot_protocol.two_operators.messages import AddUp, HelperTotal
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.shares import helper_shares, unseal
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_protocol.wire import Answer, Task
from earshot_server.helper.book import MemoryBook, Record, Secret
from earshot_simulations.auditing.asked_amiss import list_refusals
from earshot_simulations.auditing.ballots import counted_on, difference_loss, vote_finding
from earshot_simulations.auditing.crowds import noise_check, shares_of
from earshot_simulations.auditing.decisions import decisions_check
from earshot_simulations.auditing.false_inputs import (
    GUESSED_KEY,
    GUESSED_SIGNS,
    GUESSED_WEIGHTS,
    LONGER,
    WRAPPED,
    WeakVerification,
    audit_false_inputs,
)
from earshot_simulations.auditing.findings import Check, Finding, Result
from earshot_simulations.auditing.operators import noise_checks, noise_words, sums_of_operators
from earshot_simulations.auditing.plans import PHASES, differences_of
from earshot_simulations.auditing.proved_ballots import WeakProofs, audit_proved_ballots
from earshot_simulations.auditing.vectors import STEP, spread
from earshot_simulations.auditing.votes import worst
from earshot_simulations.auditing.watched_operators import AuditedOperators, WatchedOperators
from earshot_simulations.auditing.watching import replaced
from earshot_simulations.auditing.whole_phones import (
    AuditedPhones,
    audit_noise,
    ledger,
    noise_as_drawn,
    play,
    small,
)

_HELPER, _LEADER, _APART, _EARLY, _ADDED = range(5)
"""Places of the checks that `noise_checks` yields."""
_PROVED = " in a proved sum"
_CUTS: dict[type[NoiseOfOperators], float] = {WholeGaussian: 4.5, WholeLaplace: 6.0}
"""Deviations, or scales, beyond which planted faults cut noise."""
_PLAYED = "secure-sum route, two operators"
"""Phase that whole phones play with faulty operators; it has three sums."""
_SITTING = "secure-sum route, labels alone, two operators"
_HALVED = ("contacts by environment, two operators", "secure-sum route, choices, two operators")
"""Phases in which a helper adds half the noise."""


def operator_faults(draws: int, seed: int) -> Iterator[Result]:
    """Plant every fault of operators.

    Args:
        draws: Entries of a sum.
        seed: Seed of phones' inputs.
    """
    yield from faults_of_sums(draws, seed)
    yield from cut_samplers()
    yield from broken_phases()
    yield from charged_less()
    yield from hostile_lists()
    yield from weak_proofs()
    yield from weak_verification()


def faults_of_sums(draws: int, seed: int) -> Iterator[Result]:
    """Plant faults that one or two sums reveal; the arguments are those of all faults."""
    operated = next(
        each
        for each in sums_of_operators()
        if not each.proved and isinstance(each.mechanism, VectorSum)
    )
    proved = next(
        each
        for each in sums_of_operators()
        if each.proved and isinstance(each.mechanism, BallotSum)
    )
    for fault, operators, which in broken_operators():
        each = proved if fault.endswith(_PROVED) else operated
        checks = noise_checks(each.words, each.agreed(draws), seed, operators)
        check = next(itertools.islice(checks, which, None))
        yield replace(check, case=f"{fault}: {check.case}")
    yield from both_in_the_ledger()
    yield zeros_for_shares()


def broken_operators() -> Iterator[tuple[str, AuditedOperators, int]]:
    """Yield faults of operators, and the place of the check that must find each."""
    yield "a helper that adds nothing", AuditedOperators(helper=_silent), _HELPER
    yield "a leader that adds nothing", AuditedOperators(leader=_silent), _LEADER
    yield "a helper with the same noise in two sums", AuditedOperators(helper=_again), _APART
    yield "a leader with the same noise in two sums", AuditedOperators(leader=_again), _APART
    same = AuditedOperators(helper=_again, leader=_again)
    yield "two operators with the same noise", same, _APART
    less = AuditedOperators(lambda: _OtherNoise(_noise_of_one_sum))
    yield "the noise of a sum of another phase and length", less, _HELPER
    yield "the share of one of n' phones", AuditedOperators(lambda: _OtherNoise(_share)), _HELPER
    yield "noise drawn once a list is there", AuditedOperators(_LateNoise), _EARLY
    yield "half the noise", _changed(halved), _HELPER
    yield "a last entry without noise", _changed(last_in_clear), _ADDED
    yield "noise that is cut once it is drawn", AuditedOperators(lambda: _OtherNoise(_cut)), _ADDED
    yield f"noise without its sign{_PROVED}", _changed(np.abs), _HELPER


def broken_phases() -> Iterator[Check]:
    """Break operators in ways that no single sum shows, and run whole phones with them."""
    parameters = small(PHASES[_PLAYED])
    sums = sum(isinstance(part, SecureSum) for part in parameters.plan().parts)

    def silent_at_last(number: int) -> RandomBytes:
        """Return a source of noise for all sums of a phase but the last, which gets none."""
        return bytes if number % sums == sums - 1 else os.urandom

    def each_phase(number: int) -> RandomBytes:
        """Return a source that restarts in every phase."""
        return keyed(bytes(KEY_BYTES), number % sums)

    def each_sum(number: int) -> RandomBytes:
        """Return a source that restarts in every sum, differently each time."""
        return keyed(bytes(KEY_BYTES), number)

    for fault, operators, found in (
        ("a helper silent in one sum", AuditedOperators(helper=silent_at_last), "helper adds"),
        ("a leader silent in one sum", AuditedOperators(leader=silent_at_last), "leader adds"),
        ("a helper's noise of the phase before", AuditedOperators(helper=each_phase), "two sums"),
        ("a leader's noise of the phase before", AuditedOperators(leader=each_phase), "two sums"),
        (
            "one source for both operators",
            AuditedOperators(helper=each_sum, leader=each_sum),
            "two operators",
        ),
    ):
        checks = audit_noise(fault, play(parameters, AuditedPhones(operators=operators)))
        yield next(each for each in checks if found in each.case.removeprefix(fault))
    for name in _HALVED:
        fault = f"half the noise, {name}"
        half = play(small(PHASES[name]), AuditedPhones(operators=_changed(halved)))
        yield noise_as_drawn(fault, half)


def cut_samplers() -> Iterator[Check]:
    """Cut the tails of noise: let a sampler clip them, or draw again."""
    noises = {type(each.agreed(1).noise): each.agreed(1).noise for each in sums_of_operators()}
    for noise in noises.values():
        most = _most(noise)

        def clipped(size: Any, random: RandomBytes = os.urandom) -> Whole:
            return noise.drawn(size, random).clip(-most, most)  # noqa: B023

        def again(size: Any, random: RandomBytes = os.urandom) -> Whole:
            drawn = noise.drawn(size, random)  # noqa: B023
            while (beyond := np.abs(drawn) > most).any():  # noqa: B023
                drawn[beyond] = noise.drawn(int(beyond.sum()), random)  # noqa: B023
            return drawn

        cut = f"{noise_words(noise)} that ends at {_CUTS[type(noise)]:g}"
        yield decisions_check(f"{cut}, by its last value", noise, clipped)
        yield decisions_check(f"{cut}, drawn again", noise, again)


def hostile_lists() -> Iterator[Check]:
    """Let a helper add up any list of a leader, or a second list."""
    operated = next(each for each in sums_of_operators() if not each.proved)
    agreed = operated.agreed(3)
    yield list_refusals("a helper that adds up a report twice", agreed, tolerant=_tolerant)
    forgetful = AuditedOperators(_Forgetful)
    yield list_refusals("a helper that forgets that it answered", agreed, forgetful)


def charged_less() -> Iterator[Finding]:
    """Let phones enter less in their ledgers than one operator's noise costs."""
    expenses = DiscoveryParameters.expenses
    for fault, name, times in (
        ("both operators' noise in a phone's ledger", _PLAYED, math.sqrt(2)),
        ("a sitting that is charged half", _SITTING, 2.0),
    ):

        def charged(self: DiscoveryParameters, weight: int, *recordings: int | None) -> Any:
            changed = ("cells_noise", "labels_noise")
            noisier = {each: times * getattr(self, each) for each in changed}  # noqa: B023
            return expenses(msgspec.structs.replace(self, **noisier), weight, *recordings)

        with replaced(DiscoveryParameters, expenses=charged):
            seen = play(small(PHASES[name]))
        *_, of_phone = ledger(fault, seen)
        yield of_phone


def weak_proofs() -> Iterator[Check]:
    """Let phones prove their ballots without blinding, or with repeated randomness."""

    def again(system: RandomBytes) -> RandomBytes:
        """Return a source that repeats its bytes for shares and proofs in all reports."""
        kept = system(Prio3.rand_bytes)
        return lambda size: kept if size == len(kept) else system(size)

    bare = list(audit_proved_ballots(WeakProofs(blinding=np.zeros_like)))
    same = list(audit_proved_ballots(WeakProofs(source=again)))
    for fault, checks in (
        ("proofs that hide nothing", [*bare[:2], bare[-1]]),
        ("the same randomness in all reports", same[2:4]),
    ):
        for check in checks:
            yield replace(check, case=f"{fault}: {check.case}")


def weak_verification() -> Iterator[Check]:
    """Let operators verify less than they should, and phones who know that send false inputs."""

    def accepted(self: Circuit, verifiers: Elements, field: Arithmetic) -> npt.NDArray[np.bool_]:
        """Accept every report."""
        return np.ones(len(verifiers), dtype=np.bool_)

    def fixed(self: Derivation, leader_part: bytes, helper_part: bytes) -> bytes:
        """Return a seed that does not depend on the shares."""
        return bytes(SEED_BYTES)

    def zeros(system: RandomBytes) -> RandomBytes:
        """Return a source of zeros."""
        return bytes

    twice_as_long, once = {"squared_bits": Norm.squared_bits + 2}, {"sign_checks": 1}
    every: tuple[type[Shape], ...] = (Counts, Norm)
    for fault, weakness, attack, of in (
        (
            "operators that check nothing",
            WeakVerification(Circuit, {"decide": accepted}),
            LONGER,
            every,
        ),
        ("vectors of twice the length", WeakVerification(Norm, twice_as_long), LONGER, (Norm,)),
        ("one check of a wrap-around", WeakVerification(Norm, once), WRAPPED, (Norm,)),
        (
            "signs that no share fixes",
            WeakVerification(Derivation, {"signs_seed": fixed}),
            GUESSED_SIGNS,
            (Norm,),
        ),
        (
            "weights that no share fixes",
            WeakVerification(Derivation, {"joint_seed": fixed}),
            GUESSED_WEIGHTS,
            every,
        ),
        ("a verify key that phones know", WeakVerification(source=zeros), GUESSED_KEY, every),
    ):
        for check in audit_false_inputs(weakness, attack, of):
            yield replace(check, case=f"{fault}: {check.case}")


def _silent(number: int) -> RandomBytes:
    """Return a source of zeros, from which every draw is 0."""
    return bytes


def _again(number: int) -> RandomBytes:
    """Return a source that restarts in every sum."""
    return keyed(bytes(KEY_BYTES), "noise")


def halved(noise: Whole) -> Whole:
    """Return half of some noise."""
    return noise // 2


def last_in_clear(noise: Whole) -> Whole:
    """Return noise on all entries but the last."""
    left = noise.copy()
    left.flat[-1] = 0
    return left


def _changed(change: Callable[[Whole], Whole]) -> AuditedOperators:
    """Return operators whose helper changes its noise before it stores it."""
    return AuditedOperators(lambda: _OtherNoise(lambda parameters, drawn: change(drawn)))


def _cut(parameters: TwoOperatorParameters, drawn: Whole) -> Whole:
    """Truncate the noise."""
    return drawn.clip(-_most(parameters.noise), _most(parameters.noise))


def _most(noise: NoiseOfOperators) -> int:
    """Return the cut of noise in planted faults."""
    unit = noise.scale if isinstance(noise, WholeLaplace) else math.sqrt(noise.variance)
    return math.floor(_CUTS[type(noise)] * unit)


def _noise_of_one_sum(parameters: TwoOperatorParameters, drawn: Whole) -> Whole:
    """Draw as for a phase with one sum of cells, of twice the length, instead of two."""
    agreed = PHASES["secure-sum route"]
    assert isinstance(agreed, DiscoveryParameters)  # noqa: S101
    alone = affordable(msgspec.structs.replace(agreed, sums=1, most_cells=40), 2.0, 0.5)
    return WholeGaussian.of((alone.cells_noise * GRID) ** 2).drawn(parameters.length)


def _share(parameters: TwoOperatorParameters, drawn: Whole) -> Whole:
    """Draw the share of one of n' phones."""
    noise = parameters.noise
    assert isinstance(noise, WholeGaussian)  # noqa: S101
    shared = SkellamShares(noise.variance, shares_of(PHASES["secure-sum route"]))
    return shared.share(parameters.length)


class _OtherNoise(MemoryBook):
    """A book that replaces the noise of an offer, so that its total has the other one.

    Args:
        other: Function that returns the other noise, from the parameters and the drawn noise.
    """

    def __init__(self, other: Callable[[TwoOperatorParameters, Whole], Whole]) -> None:
        super().__init__()
        self._other = other

    @override
    def offer(self, sum_id: bytes, record: Record, secret: Secret) -> None:
        drawn = np.frombuffer(secret.noise, dtype="<i8").astype(np.int64)
        noise = self._other(record.terms.parameters, drawn).astype("<i8").tobytes()
        super().offer(sum_id, record, secret._replace(noise=noise))


class _Forgetful(MemoryBook):
    """A book that records no answer, and erases nothing."""

    @override
    def answer(self, sum_id: bytes, reports: bytes, total: bytes, now: float) -> None:
        pass


def _tolerant(watched: WatchedOperators) -> Callable[[Task], Answer]:
    """Return a helper that adds up a list with a repeated report."""

    def answer(task: Task) -> Answer:
        secret = watched.book.secret(getattr(task, "sum_id", b""))
        if not isinstance(task, AddUp) or secret is None:
            return watched.answer(task)
        terms, key = watched.sums[task.sum_id].parameters, secret.key
        private = X25519PrivateKey.from_private_bytes(key)
        entries = list(lists.entries(task.reports, terms))
        if len({each.report_id for each in entries}) == len(entries):
            return watched.answer(task)
        seeds = [unseal(each.sealed, private, task.offer, each.report_id) for each in entries]
        total = helper_shares(filter(None, seeds), terms)
        total += np.frombuffer(secret.noise, dtype="<i8").astype(total.dtype)
        return HelperTotal(
            sum_id=task.sum_id,
            offer=task.offer,
            reports=hashlib.sha256(task.reports).digest(),
            refused=b"",
            total=encoding.pack(total, terms.modulus_bits),
        )

    return answer


class _LateNoise(MemoryBook):
    """A book that draws new noise when a list arrives, until the first number is even."""

    @override
    def secret(self, sum_id: bytes) -> Secret | None:
        kept, record, noise = super().secret(sum_id), self.record(sum_id), np.ones(1, dtype="<i8")
        if kept is None or record is None:
            return None
        terms = record.terms.parameters
        while noise[0] % 2:
            noise = terms.noise.drawn(terms.length).astype("<i8")
        return kept._replace(noise=noise.tobytes())


def both_in_the_ledger() -> Iterator[Finding]:
    """Claim a cost by both operators' noise, though each operator knows its own part."""
    for step, mechanism, parameters, proved in sums_of_operators():
        if proved:
            continue  # a proof does not change the noise
        law = counted_on(mechanism, parameters).law
        match mechanism:
            case VectorSum():
                sold: Any = replace(
                    mechanism, noise_multiplier=math.sqrt(2) * mechanism.noise_multiplier
                )
                difference = spread(mechanism, Unit.PHONE, 1)
            case VoteSum():
                sold = replace(mechanism, deviation=math.sqrt(2) * mechanism.deviation)
                difference = worst(mechanism, Unit.PHONE)
            case BallotSum():
                sold = replace(mechanism, epsilon=mechanism.epsilon / math.sqrt(2))
                difference = differences_of(step, parameters)[Unit.PHONE]
        case = f"{step}: both operators' noise in the ledger"
        yield vote_finding(sold, case, Unit.PHONE, difference_loss(law, difference, STEP))


@dataclass(frozen=True)
class _Zeros(BallotSum):
    """A vote in which phones add zeros, as with two operators, though no operator adds noise."""

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> Any:
        """Return zeros."""
        return laplace(self.scale, None).share(size, random)


def zeros_for_shares() -> Check:
    """Let phones add zeros in a sum whose noise should come from them."""
    case = "phones that add zeros where nobody else adds noise"
    return noise_check(case, {900: _Zeros(0.5, 3, 900)})
