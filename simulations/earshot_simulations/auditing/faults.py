"""Planted faults: each repeats a known mistake, and the audit must detect it.

A fault is a parameter of the same functions that audit the product: a rule that does not run as it
is accounted for, fewer shares of noise, a sampler, a store. None of them runs anywhere else.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client import clustering
from earshot_client.clustering import GRID, DPLloyd, box_grid
from earshot_client.phases import discovery as labelled_sums
from earshot_client.phases import statistics as counted_sums
from earshot_client.phases.memory import Memory
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.overriding import override
from earshot_protocol.phases import plan
from earshot_protocol.phases.discovery import LABELS, DiscoveryParameters, SumLabels
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_protocol.privacy.local_mechanisms import LaplaceLloyd
from earshot_protocol.privacy.mechanisms import BallotSum, Unit, VectorSum
from earshot_protocol.privacy.noise import discrete_laplace
from earshot_protocol.privacy.noisy_counts import with_normal
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.two_operators.messages import ID_BYTES
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_protocol.voting.vectors import bounded, projected, unit_steps
from earshot_simulations.auditing import sum_secrets, tallies
from earshot_simulations.auditing.asked_amiss import refusals_check
from earshot_simulations.auditing.asked_secrets import audit_asked
from earshot_simulations.auditing.ballots import (
    counted_on,
    difference_loss,
    noise_law,
    vote_finding,
)
from earshot_simulations.auditing.contacts import audit_distances, audit_marks
from earshot_simulations.auditing.crowds import noise_check, shares_of
from earshot_simulations.auditing.ensembles import (
    Labels,
    Thresholds,
    Winners,
    drawn_labels,
    drawn_winners,
)
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique
from earshot_simulations.auditing.lloyd import (
    LAPLACE,
    Clustering,
    clustering_finding,
    clustering_loss,
    noisy_numbers,
    sampled_clustering,
)
from earshot_simulations.auditing.losses import Bracket, discrete_laplace_loss
from earshot_simulations.auditing.operator_faults import halved, last_in_clear, operator_faults
from earshot_simulations.auditing.owners import rounded_weights
from earshot_simulations.auditing.plans import PHASES, Effort
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.published_costs import published_cost
from earshot_simulations.auditing.sum_secrets import Weakness, audit_secrets
from earshot_simulations.auditing.vectors import STEP, spread, worst_transcripts
from earshot_simulations.auditing.watching import replaced
from earshot_simulations.auditing.whole_phones import (
    AuditedPhones,
    ledger,
    noise_as_drawn,
    parties_apart,
    play,
    small,
    sums_apart,
)

Recordings = list[counted_sums._Recording]
_SURVIVORS = 900
_BALLOT = BallotSum(0.5, 3, _SURVIVORS)
_VECTOR = VectorSum(1.5, 320, 1e-6, _SURVIVORS)
_TEACHERS, _BINARY = 51, BinaryRule(sigma=5.0)
KINDS = ("local route, points", "secure-sum route", "votes on samples", "contacts by environment")
"""Phases, one of every kind."""
_POINTS, _SECURE_SUMS = KINDS[:2]
_OPERATED = "contacts by environment, two operators, unproved"
_CONFUSION = "contacts by environment, confusion matrix"
_PROVED = "local route, points, best of four runs, two operators"


def audit_faults(effort: Effort) -> Iterator[Result]:
    """Plant every fault."""
    trials, draws, seed = effort.trials, effort.draws, effort.seed
    yield too_long_vector()
    yield from label_faults()
    yield from contact_faults(seed)
    yield from confusion_faults(seed)
    yield servers_recordings()
    yield few_shares()
    yield one_vote()
    yield one_vote_too_many()
    yield half_the_noise(seed)
    yield half_the_sampled_noise(trials, seed)
    yield raw_counts(seed)
    yield from short_secrets()
    yield same_secrets()
    yield from phone_faults()
    yield from vote_faults(trials, seed)
    yield from reused_noise_of_sums(draws, seed)
    yield from operator_faults(draws, seed)


def too_long_vector() -> Finding:
    """Claim norm one for a vector of two parts, sums and counts, of norm one each."""
    law = noise_law(_VECTOR, _SURVIVORS)
    each = int(_VECTOR.sensitivity(Unit.PHONE))
    losses = difference_loss(law, np.array([each, each]), STEP)
    return vote_finding(_VECTOR, "a vector of norm √2 sold as 1", Unit.PHONE, losses)


def label_faults() -> Iterator[Result]:
    """Divide sums of labels by something else than the norm of all counts by row.

    Some of the vectors are too long; phones would refuse to send them, so that check is removed.
    The last fault divides correctly, but sorts a recording by the phone's other recordings. Where
    labels alone count once, a recording moves 1.07: ε stays within the accountant's slack, so the
    distance is what exceeds.
    """
    flat, finer, split = (
        PHASES[f"{_SECURE_SUMS}{more}"] for more in ("", ", choices", ", choices and kinds")
    )
    labels = len(finer.labels)
    assert isinstance(split, DiscoveryParameters)  # noqa: S101
    kinds = split.kinds

    def by_length(sums: npt.NDArray[np.float64], counts: Whole) -> npt.NDArray[np.float64]:
        """Divide by the norm of the sums, which may nearly cancel."""
        length = float(np.linalg.norm(sums))
        return sums / length if length else sums

    def without_labels_alone(
        sums: npt.NDArray[np.float64], counts: Whole
    ) -> npt.NDArray[np.float64]:
        """Omit the counts that have no row."""
        return bounded(sums, counts[: len(sums)])

    def by_labels(sums: npt.NDArray[np.float64], counts: Whole) -> npt.NDArray[np.float64]:
        """Divide by the norm of the counts by label, though choices have rows too."""
        return bounded(sums, counts[:labels])

    def by_kind(sums: npt.NDArray[np.float64], counts: Whole) -> npt.NDArray[np.float64]:
        """Divide the rows of each kind by the norm of that kind's counts."""
        counted = np.zeros(kinds * -(-len(counts) // kinds))
        counted[: len(counts)] = counts
        norms = np.linalg.norm(counted.reshape(-1, kinds), axis=0)
        rows = sums.reshape(-1, kinds, sums.shape[1]) / np.where(norms > 0, norms, 1)[:, None]
        return rows.reshape(sums.shape)

    def by_most(
        parameters: DiscoveryParameters, task: SumLabels, steps: npt.NDArray[np.float64]
    ) -> Whole:
        """Return the most frequent kind, for all recordings."""
        own = kinds_of_recordings(parameters, task, steps)
        return np.full_like(own, np.bincount(own).argmax() if len(own) else 0)

    kinds_of_recordings = labelled_sums._kinds
    over = {"quantized": _unchecked}
    for parameters, fault, words, unit in (
        (flat, {"bounded": by_length}, "sums of labels over their own norm", Unit.RECORDING),
        (finer, {"bounded": by_length}, "sums of choices over their own norm", Unit.RECORDING),
        (finer, {"bounded": without_labels_alone}, "labels alone that count once", Unit.RECORDING),
        (finer, {"bounded": by_labels}, "choices that do not count in the norm", Unit.PHONE),
        (split, {"bounded": by_kind}, "kinds of sound, each over its own norm", Unit.PHONE),
        (split, {"_kinds": by_most}, "recordings of a phone, all of one kind", Unit.RECORDING),
    ):
        part = parameters.plan().part(LABELS)
        assert isinstance(part, SecureSum) and isinstance(part.mechanism, VectorSum)  # noqa: S101, PT018
        assert isinstance(parameters, DiscoveryParameters)  # noqa: S101
        with replaced(labelled_sums, **over, **fault):
            found = list(worst_transcripts(part, part.mechanism, parameters, words))
        measured, distance = found[:2] if unit == Unit.RECORDING else found[2:]
        yield distance if without_labels_alone in fault.values() else measured


def contact_faults(seed: int) -> Iterator[Result]:
    """Count other contacts, or project them otherwise, than the sum of contacts claims."""
    part, mechanism, parameters = _counting(KINDS[-1])
    countable, labels = counted_sums._countable, len(parameters.labels)

    def newest(
        memory: Memory, agreed: StatisticsParameters, recordings: Recordings
    ) -> list[tuple[int, int]]:
        """Return the newest contacts alone, one of which an added one displaces."""
        return countable(memory, agreed, recordings)[-agreed.contacts :]

    def twice(
        memory: Memory, agreed: StatisticsParameters, recordings: Recordings
    ) -> list[tuple[int, int]]:
        """Return labelled contacts a second time, as if places named them, too."""
        found = countable(memory, agreed, recordings)
        return found + [(number, entry + labels) for number, entry in found if entry < labels]

    def shorter(counts: Whole, radius: int) -> npt.NDArray[np.float64]:
        """Project onto half of the length."""
        return projected(counts, radius // 2)

    class Unmarked(MemoryStore):
        """A store that marks no contact as counted."""

        def mark_counted(self, recordings: Iterable[int]) -> None:
            """Discard the marks."""

    for words, fault in (
        ("the newest contacts sold as projected ones", {"_countable": newest}),
        ("a contact in two entries", {"_countable": twice}),
        ("the length of another plan", {"projected": shorter}),
    ):
        with replaced(counted_sums, **fault):
            found = audit_distances(words, part, mechanism, parameters, seed)
            yield next(found)
    yield audit_marks("marks left out", part, parameters, Unmarked)


def confusion_faults(seed: int) -> Iterator[Result]:
    """Scale a confusion matrix, or its noise, otherwise than its sum claims.

    Vectors are too long; phones would refuse to send them, so that check is removed.
    """
    part, mechanism, parameters = _counting(_CONFUSION)

    def by_label(table: Whole, labelled: Whole) -> npt.NDArray[np.float64]:
        """Divide each label's recordings by their number: a phone's rates."""
        return table / np.maximum(1, labelled)[:, None]

    def undivided(
        counts: npt.NDArray[np.float64], matrix: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Send both as one vector, each of norm 1."""
        return np.concatenate([counts, matrix.ravel()])

    def under_all_names(recordings: Recordings, names: tuple[str, ...]) -> npt.NDArray[np.float64]:
        """Count a labelled recording under every name."""
        labelled = np.array([sum(each.label == name for each in recordings) for name in names])
        return bounded(np.repeat(labelled[:, None], len(names), axis=1), labelled)

    for words, fault in (
        ("rates of each label sold as a confusion matrix", {"bounded": by_label}),
        ("counts and a confusion matrix, each of norm 1", {"joined": undivided}),
        ("a labelled recording under every name", {"_confusion": under_all_names}),
    ):
        with replaced(counted_sums, quantized=_unchecked, **fault):
            _, _, _, measured, *_ = audit_distances(words, part, mechanism, parameters, seed)
            yield measured
    quieter = replace(mechanism, noise_multiplier=mechanism.noise_multiplier / math.sqrt(2))
    yield vote_finding(
        mechanism,
        "a confusion matrix at the cost of a week",
        Unit.PHONE,
        difference_loss(
            counted_on(quieter, parameters).law, spread(mechanism, Unit.PHONE, 1), STEP
        ),
    )


def _counting(name: str) -> tuple[SecureSum, VectorSum, StatisticsParameters]:
    """Return the sum of an audited statistics phase, its mechanism and its parameters."""
    parameters = PHASES[name]
    part = parameters.plan().part(HISTOGRAM)
    assert isinstance(part, SecureSum) and isinstance(part.mechanism, VectorSum)  # noqa: S101, PT018
    assert isinstance(parameters, StatisticsParameters)  # noqa: S101
    return part, part.mechanism, parameters


def _unchecked(vector: npt.NDArray[np.float64]) -> Whole:
    """Round a vector to whole numbers, however long it is."""
    return np.rint(vector * unit_steps(vector.size)).astype(np.int64)


def servers_recordings(held: int = 200) -> Finding:
    """Let the server claim one recording per phone, and the cost per phone rely on it."""
    mechanism = LaplaceLloyd(1.0, 1)
    case = f"the server says N = 1 to a phone that holds {held} recordings"
    audited = Clustering(case, DPLloyd(3, mechanism), mechanism, Geometry.EUCLIDEAN, 2)
    return clustering_finding(audited, Unit.PHONE, clustering_loss(audited, held, 0))


def few_shares() -> Finding:
    """Lose half of the phones whose noise is guaranteed."""
    losses = difference_loss(noise_law(_BALLOT, _SURVIVORS // 2), np.array([1, -1]))
    case = f"{_SURVIVORS // 2} shares of noise where {_SURVIVORS} are counted on"
    return vote_finding(_BALLOT, case, Unit.RECORDING, losses)


def one_vote() -> Finding:
    """Scale noise for a ballot of v = 1 to one vote, where a recording moves two."""
    sold = BallotSum(2 * _BALLOT.epsilon, 1, 900)
    half = discrete_laplace_loss(1, sold.scale, 1e-6).times(2)
    return finding(
        "noise for v = 1 where a recording moves two votes",
        Unit.RECORDING,
        _BALLOT,
        half.epsilon(DELTA),
        Technique(EXACT, "exact: the losses of both votes convolved"),
    )


def one_vote_too_many() -> Finding:
    """Let a phone count one more than the sensitivity allows for."""
    law = noise_law(_BALLOT, _SURVIVORS)
    losses = difference_loss(law, np.ones(_BALLOT.votes + 1, dtype=np.int64))
    case = f"ballots of {_BALLOT.votes + 1} ones where {_BALLOT.votes} are allowed"
    return vote_finding(_BALLOT, case, Unit.PHONE, losses)


class TwiceTheBudget(DPLloyd):
    """A clustering that spends twice its declared budget in every iteration: half the noise."""

    def split(self, dimensions: int) -> tuple[float, float]:
        """Return twice the declared budgets."""
        counts, coordinates = super().split(dimensions)
        return 2 * counts, 2 * coordinates


def half_the_noise(seed: int) -> Finding:
    """Halve the noise in DPLloyd: visible in a transcript, but not in the final centroids."""
    mechanism = LaplaceLloyd(1.0, 200)
    halved = TwiceTheBudget(3, mechanism)
    audited = Clustering("half the noise in DPLloyd", halved, mechanism, Geometry.EUCLIDEAN, 2)
    return clustering_finding(audited, Unit.RECORDING, clustering_loss(audited, 1, seed))


def half_the_sampled_noise(trials: int, seed: int) -> Finding:
    """Let the sampler return half of the noise requested, which only its output shows."""

    def half(scale: float, size: Any, random: RandomBytes) -> Any:
        return discrete_laplace(scale / 2, size, random)

    sound = smallest_clustering("a sampler of half the noise in DPLloyd")
    return sampled_clustering(replace(sound, samplers={LAPLACE: half}), trials, seed)


def smallest_clustering(case: str, epsilon: float = 2.0) -> Clustering:
    """Return one cluster on a line, in two iterations: four numbers, which need few trials."""
    mechanism = LaplaceLloyd(epsilon, 2)
    return Clustering(case, DPLloyd(1, mechanism), mechanism, Geometry.EUCLIDEAN, dimensions=1)


class _RawCounts(DPLloyd):
    """A clustering that divides by counts without noise, which its draws do not show."""

    def cluster(
        self, points: npt.ArrayLike, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float32]:
        """Return centroids of one iteration of DPLloyd, without noise on the counts."""
        steps, centroids = box_grid(points), np.linspace(-GRID, GRID, self.local_centroids)
        places = np.tile(centroids[:, None], (1, steps.shape[1]))
        counts, sums = clustering.cluster_sums(steps, places, Geometry.EUCLIDEAN)
        sampler = vars(clustering)["discrete_laplace"]  # DPLloyd's, even if replaced
        sums += sampler(GRID / self.mechanism.epsilon, sums.shape, random)
        means: npt.NDArray[np.float32] = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
        return means


def raw_counts(seed: int) -> Check:
    """Release numbers without noise."""
    mechanism = LaplaceLloyd(1.0, 200)
    raw, geometry = _RawCounts(3, mechanism), Geometry.EUCLIDEAN
    case = "no noise on the counts of DPLloyd"
    return noisy_numbers(Clustering(case, raw, mechanism, geometry, 2), seed)


def short_secrets() -> Iterator[Check]:
    """Draw only 32 random bits for seeds, locks and pairwise keys; the rest are zeros."""

    def short(system: RandomBytes) -> RandomBytes:
        missing = bytes(sum_secrets.KEY_BYTES - 4)
        return lambda size: system(4) + missing if size == sum_secrets.KEY_BYTES else system(size)

    seeds = audit_secrets(Weakness(source=short))
    keys = audit_secrets(Weakness(key=lambda key: key[:4] + bytes(28)))
    for fault, checks in (
        ("32-bit seeds and locks", itertools.islice(seeds, 3)),
        ("a 32-bit pairwise key", itertools.islice(keys, 3, 4)),
    ):
        for check in checks:
            yield replace(check, case=f"{fault}: {check.case}")


def same_secrets() -> Check:
    """Reuse the secrets of a sum in the next: two totals under the same masks reveal all."""
    drawn: list[bytes] = []
    count = itertools.count()

    def again(system: RandomBytes) -> RandomBytes:
        def source(size: int) -> bytes:
            of_phones = 2 * sum_secrets.PHONES  # a seed and a lock of each
            if size != sum_secrets.KEY_BYTES:
                return system(size)
            if len(drawn) < of_phones:
                drawn.append(system(size))
            return drawn[next(count) % of_phones]

        return source

    found = next(audit_secrets(Weakness(source=again)))
    return replace(found, case=f"secrets of the sum before: {found.case}")


def phone_faults() -> Iterator[Result]:
    """Break phones in phases: noise for too many, reused noise, weak secrets, a false ledger."""
    for name in KINDS:
        yield from noise_for_everybody(name)
    yield second_sums_noise()
    yield from one_stream()
    yield from weakened_noise()
    yield from weak_secrets()
    yield from careless_phones()
    yield forgetful_ledger()


def noise_for_everybody(name: str) -> Iterator[Check]:
    """Make shares of noise for n phones where n' are counted on, in every sum of a phase."""
    parameters = PHASES[name]
    sums: dict[str, Any] = {
        part.name: part.mechanism
        for part in parameters.plan().parts
        if isinstance(part, SecureSum) and part.repetition < 2
    }
    for step, mechanism in sums.items():
        broken = replace(mechanism, honest_survivors=parameters.phones)
        yield noise_check(f"n for n': {step}", {shares_of(parameters): broken})


def second_sums_noise() -> Check:
    """Reuse the noise of a phone's first sum: a server that subtracts totals removes it.

    In each sum by itself, the noise has its declared law.
    """
    seen = play(small(PHASES[_SECURE_SUMS]), AuditedPhones(reuses=True))
    return sums_apart("noise of the first sum in all", seen)


def one_stream() -> Iterator[Check]:
    """Draw noise from a stream that restarts with every sum, and from one shared by phones."""

    def anew(number: int) -> RandomBytes:
        def random(size: int) -> bytes:
            return keyed(bytes(KEY_BYTES), number)(size)

        return random

    for words, random, check in (
        ("one stream for all sums", anew, sums_apart),
        ("one stream for two phones", lambda number: anew(number // 4), parties_apart),
    ):
        yield check(words, play(small(PHASES[_SECURE_SUMS]), AuditedPhones(random=random)))


def weakened_noise() -> Iterator[Check]:
    """Halve the noise of phones, or add none to the last entry of a vector."""
    for words, change in (
        ("half the noise", halved),
        ("a last entry without noise", last_in_clear),
    ):
        for name in KINDS[1:3]:
            seen = play(small(PHASES[name]), AuditedPhones(noisy=change))
            yield noise_as_drawn(f"{words}, {name}", seen)


def weak_secrets() -> Iterator[Check]:
    """Draw phones' secrets too short, once per process, or not from the operating system."""

    def short(system: RandomBytes) -> RandomBytes:
        return lambda size: system(4) + bytes(size - 4)

    def once(system: RandomBytes) -> RandomBytes:
        kept = functools.cache(system)
        return lambda size: system(size) if size == ID_BYTES else kept(size)

    for name in (KINDS[-1], _OPERATED, _PROVED):
        for words, system in (("32-bit secrets", short), ("one secret a process", once)):
            seen = play(small(PHASES[name]), AuditedPhones(system=system))
            yield from audit_asked(f"{words}, {name}", seen.asked, seen.operators.sums)


def careless_phones() -> Iterator[Check]:
    """Let phones report under the offer of another task, and release a step twice."""

    class Careless(Policy):
        """A policy that accepts offers for any task."""

        def check_opening(self, *given: Any) -> None:
            """Refuse an opening for any other reason."""
            try:
                super().check_opening(*given)
            except RefusedError as error:
                if "another task" not in str(error):
                    raise

    class Unwritten(MemoryStore):
        """A store that keeps no ledger."""

        def append_ledger(self, entry: bytes) -> None:
            """Discard the entry."""

    def careless(policy: Policy) -> Policy:
        return Careless(**vars(policy))

    for words, name, crowd in (
        ("offers that are not compared", _OPERATED, AuditedPhones(policy=careless)),
        ("a phone that keeps no ledger", _POINTS, AuditedPhones(store=Unwritten)),
        ("a phone that keeps no ledger", _OPERATED, AuditedPhones(store=Unwritten)),
    ):
        seen = play(small(PHASES[name]), crowd)
        yield refusals_check(f"{words}, {name}", seen.tried, "a phone")


def forgetful_ledger() -> Finding:
    """Hold three times the recordings that the phase states, and pay only for the stated number."""
    with replaced(plan, held_by=lambda mechanism, recordings: mechanism):
        seen = play(small(PHASES[_POINTS]))
    *_, of_phone = ledger("recordings held ignored", seen)
    return of_phone


def vote_faults(trials: int, seed: int) -> Iterator[Result]:
    """Break a curator's votes: raw costs, reused or halved noise, free checks.

    Args:
        trials: Draws of the faults that only draws reveal; five times as many of labels.
        seed: Seed of the draws.
    """
    half = replace(_BINARY, sigma=_BINARY.sigma / 2)
    words = "half the noise on the positive count: 20 labels"
    yield from Labels(words, _BINARY, (25.0,), runs=half, teachers=_TEACHERS).findings()
    yield drawn_labels("half the noise", _BINARY, _TEACHERS, 5 * trials, seed, half)
    checked = BinaryRule(sigma=40.0, threshold=38.0, check_sigma=2.0)
    words = "an unpaid check: 20 labels"
    case = Labels(words, checked, (38.0,), pays_check=False, teachers=_TEACHERS)
    yield from case.findings()
    yield from free_check()
    options = {"sigma": 8.0, "threshold": 25.0, "check_sigma": 8.0}
    words = "noise of a check used for the answer, too"
    yield drawn_winners(words, ConfidentRule(**options), trials, seed, _ReusedNoise(**options))
    yield from unpaid_check()
    yield raw_cost()
    yield published_cost("exact, two classes", lambda local, beta: float(local[0]))
    yield rounded_weights()


def free_check() -> Iterator[Finding]:
    """Charge nothing for the checks of answered samples (Muschiol 2021, 4.2.4).

    "Revealing the same data twice does not harm privacy again": but with fresh noise, it does.
    """
    rule = GNThresholdRule(sigma=40.0, cut=21.0, winners=3, threshold=21.0, check_sigma=2.0)
    words = "a check against a threshold that answered samples do not pay"
    votes = (21.0, 21.0, 21.0)
    case = Thresholds(words, rule, votes, Unit.PHONE, pays_check=False, teachers=50)
    return case.findings()


class _ReusedNoise(ConfidentRule):
    """A rule that checks the largest noisy count and answers by the same noise."""

    @override
    def outcomes(
        self,
        votes: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
        scores: npt.NDArray[np.number] | None = None,
    ) -> Whole:
        noisy = with_normal(votes, self.sigma, random)
        passing = noisy.max(axis=1) >= self.threshold
        return np.where(passing, noisy.argmax(axis=1), NONE).astype(np.int64)


def unpaid_check() -> Iterator[Finding]:
    """Charge answers alone, as if checks revealed nothing (Mühl 2021, 4.2.2)."""
    rule = ConfidentRule(sigma=6.0, threshold=36.0, check_sigma=6.0)
    votes = (36, 2, 2)
    words = f"{Winners.queries} unpaid checks, T = 36, σ₁ = 6, votes 36/2/2"
    case = Winners(words, rule, votes, methods=(Method.EXACT,), pays_check=False)
    return case.findings()


def raw_cost() -> Finding:
    """Publish a data-dependent ε without noise, although neighbours' values differ."""
    rule = ConfidentRule(sigma=8.0, threshold=25.0, check_sigma=12.0)
    shown = [
        rule.spent_epsilon(
            np.array([votes] * 20), np.ones(20, dtype=bool), DELTA, Method.DEPENDENT
        )[0]
        for votes in ((37, 2, 1), (36, 3, 1))
    ]
    measured = math.inf if shown[0] != shown[1] else 0.0
    return Finding(
        f"a data-dependent ε published raw: {shown[0]:.6f} and, for a neighbour, {shown[1]:.6f}",
        Unit.REPLACED_PHONE,
        DELTA,
        max(shown),
        max(shown),
        Bracket(measured, measured),
        Technique(EXACT, "exact: one output of each, which its neighbour never gives"),
    )


def reused_noise_of_sums(draws: int, seed: int) -> Iterator[Check]:
    """Draw a teacher's noise independently of a sum's kind, or of its queries."""
    yield tallies.reused_noise(
        draws, seed, lambda key, *names: keyed(key, *names[1:]), "the noise of the votes"
    )
    yield tallies.reused_noise(
        draws,
        seed,
        lambda key, *names: keyed(key, names[0], *names[2:]),
        "the noise of the sum before",
    )
