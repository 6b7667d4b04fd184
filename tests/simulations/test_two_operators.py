"""Phases of every kind by two operators: as plain addition gives, whoever vanishes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from support.simulated import KINDS, essence

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.plan import Plan
from earshot_protocol.prio3.field import from_signed, unpacked
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.prio3.shapes import Norm
from earshot_protocol.privacy.mechanisms import GRID, Unit
from earshot_protocol.two_operators.messages import PhoneReport
from earshot_protocol.wire import Answer
from earshot_simulations import (
    Attack,
    OwnCodeError,
    PolicyChoice,
    Settings,
    SummationChoice,
    result,
    simulate,
)
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.phases.run import NOISELESS, Run, render
from earshot_simulations.phases.settings import Discovery, PhaseSettings
from earshot_simulations.populations import Blobs

BOTH = SummationChoice.TWO_OPERATORS
UNPROVED = SummationChoice.TWO_OPERATORS_UNPROVED


def by_both(name: str, **changes: object) -> PhaseSettings:  # type: ignore[type-arg]
    return replace(KINDS[name], **({"summation": BOTH} | changes))  # type: ignore[type-var]


def local(**changes: object) -> Settings:
    settings = by_both("local", **changes)
    assert isinstance(settings, Settings)
    return settings


@pytest.mark.parametrize("summation", [BOTH, UNPROVED])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_votes_without_noise_come_out_as_by_plain_addition(
    dropout: float, summation: SummationChoice
) -> None:
    """Phones that vanish are others, as there are other steps; without any, all is the same."""
    settings = local(budget=None, epsilon=NOISELESS, dropout=dropout, summation=summation)
    run = simulate(settings)
    assert run.interrupted is None
    if dropout == 0:
        plain = simulate(replace(settings, summation=SummationChoice.IDEAL))
        assert run.found.global_centroids is not None
        np.testing.assert_array_equal(run.found.global_centroids, plain.found.global_centroids)
        np.testing.assert_array_equal(run.found.labels, plain.found.labels)
        assert run.found.ari_test == plain.found.ari_test


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_runs_to_its_end_and_again_with_the_same_seed(name: str) -> None:
    first, again = (simulate(by_both(name)) for _ in range(2))
    assert first.interrupted is None
    assert first.notes == again.notes
    assert essence(first) == essence(again)
    asked = [step for step in first.steps if step.step.endswith((": offer", ": total"))]
    assert asked
    assert {(step.asked, step.answered) for step in asked} == {(1, 1)}
    assert all(step.helper_bytes > 0 and step.bytes_up == 0 for step in asked)


@pytest.mark.parametrize("name", KINDS)
def test_the_promise_is_the_one_asked_for_and_says_whom_it_trusts(name: str) -> None:
    run, plain = simulate(by_both(name)), simulate(KINDS[name])
    # Asked for per phone, a statistics phase costs a recording what the noise's law makes of that,
    # and shares of noise have another law than operators' noise.
    apart = {Unit.PHONE: 0.02, Unit.RECORDING: 0.03 if name == "statistics" else 0.02}
    for unit, rel in apart.items():
        one, other = run.together[unit].epsilon, plain.together[unit].epsilon
        # Where the chance that shares do not suffice is all of δ, plain sums promise nothing.
        assert one < other if math.isinf(other) else one == pytest.approx(other, rel=rel)
    assert any("two operators" in note for note in run.notes)
    assert not any("two operators" in note for note in plain.notes)


def test_whoever_vanishes_after_the_report_is_counted() -> None:
    settings = local(phones=60, dropout=0.3, seed=1)
    parameters = settings.parameters(Blobs(60, 10, 4, 0.5, 1))
    lost = draw_dropouts(parameters, 1)
    assert lost["centroid vote: total"]
    run = simulate(settings)
    assert run.interrupted is None
    records = {step.step: step for step in run.steps}
    reported = records["centroid vote: report"].answered
    assert reported == 60 - sum(
        len(lost[name])
        for name in ("local centroids", "centroid vote: offer", "centroid vote: report")
    )
    gone = sum(len(each) for each in lost.values())
    assert run.survivors == 60 - gone


class Leaving(Attack):
    """Some phones vanish before the first step, and nobody else does."""

    def __init__(self, *gone: int) -> None:
        self._gone = gone

    def phones(self, count: int, seed: int) -> tuple[int, ...]:
        return ()

    def vanishing(
        self, others: Mapping[str, tuple[int, ...]], plan: Plan
    ) -> Mapping[str, tuple[int, ...]]:
        return dict.fromkeys(others, ()) | {next(iter(others)): self._gone}


def named(run: Run[Any]) -> list[int]:
    """Phones whose report the helper refuses in the first sum, by the notes of the run."""
    found = (re.search(r"^server, .*: phone (\d+): the helper cannot count", n) for n in run.notes)
    return list(dict.fromkeys(int(each[1]) for each in found if each))


STUFFING = Adversary(ballot_stuffing=0.1)


def test_plain_ballots_can_be_stuffed_and_proved_ones_end_the_sum() -> None:
    """Plain: a phone may add what it likes, without a name. Proved: nobody may be left out here."""
    plain = simulate(local(adversary=STUFFING, summation=UNPROVED))
    assert plain.interrupted is None
    proved = simulate(local(adversary=STUFFING))
    assert proved.interrupted is not None
    assert "the helper has not given its total" in proved.interrupted
    too_few = "too few reports of the list open: this sum gets no total"
    assert f"helper, centroid vote: total: {too_few}" in proved.notes


def test_stuffed_ballots_are_refused_by_name() -> None:
    run = simulate(local(adversary=STUFFING, dropout=0.1), attack=Leaving())
    assert run.interrupted is None
    assert named(run) == sorted(STUFFING.members(24, 9)["ballot_stuffing"])
    assert run.adversary is not None
    assert run.adversary.refused == 2 * 2, "in both votes"


class Unchecked(Norm):
    """The shape in a program that leaves out the check of its own vector."""

    def fixed(self, measurement: np.ndarray) -> np.ndarray:
        squared = int(np.square(measurement.astype(np.float64)).sum())
        bits = squared >> np.arange(self.squared_bits) & 1
        return from_signed(np.concatenate([measurement, bits]))

    def signed(self, measurement: np.ndarray, signs: np.ndarray) -> np.ndarray:
        products = unpacked(signs, len(measurement)) @ measurement + self._middle
        bits = products[:, None] >> np.arange(self.product_bits) & 1
        return from_signed(bits.ravel())


class Few(Attack):
    """Phones whose vectors are too long, whose reports do not open, and whose shares are bent."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet

    def phones(self, count: int, seed: int) -> range:
        return range(5, 11)

    def added(self, phone: int, values: np.ndarray, parameters: Any) -> np.ndarray:
        too_long = phone < 8 and not self.quiet
        return np.full_like(values, parameters.bound if too_long else 0)

    def sent(self, phone: int, answer: Answer) -> Answer:
        if phone < 8 or self.quiet or not isinstance(answer, PhoneReport):
            return answer
        part = "sealed" if phone < 10 else "share"
        bent = bytearray(getattr(answer, part))
        bent[0] ^= 1
        return msgspec.structs.replace(answer, **{part: bytes(bent)})

    def vanishing(self, others: Mapping[str, tuple[int, ...]], plan: Plan) -> Any:
        """Let nobody vanish by chance, so that those who are refused may be missing."""
        return dict.fromkeys(others, ())


def test_wrong_vectors_are_refused_by_name_and_the_sums_are_those_of_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(VECTORS, phones=60, epsilon=NOISELESS, sums=1, dropout=0.2)
    zeros = simulate(settings, attack=Few(quiet=True))
    assert zeros.adversary is not None
    assert zeros.adversary.refused == 0
    assert "No answer was refused." in render(zeros)
    for name in ("fixed", "signed"):
        monkeypatch.setattr(Norm, name, getattr(Unchecked, name))
    run = simulate(settings, attack=Few(quiet=False))
    assert run.interrupted is None
    assert run.adversary is not None
    assert run.adversary.refused == 2 * 6
    refused = {step.step: step.refused for step in run.steps if step.refused}
    assert refused == dict.fromkeys(("cells 1: total", "labels: total"), 5) | dict.fromkeys(
        ("cells 1: report", "labels: report"), 1
    )
    for part in ("cells 1", "labels"):
        for phone in range(5, 10):
            said = f"phone {phone}: the helper cannot count its report"
            assert f"server, {part}: total: {said}" in run.notes
        bent = f"server, {part}: report: phone 10: a public share that does not fit"
        assert any(note.startswith(bent) for note in run.notes)
    assert "12 answers were refused by name" in render(run)
    assert "The two operators exchanged" in render(run)
    assert result(run)["refused_by_step"] == {step.step: step.refused for step in run.steps}
    for name in ("global_centroids", "cells", "lengths", "labels"):
        np.testing.assert_array_equal(getattr(run.found, name), getattr(zeros.found, name))


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_proved_sums_are_bit_for_bit_those_without_proofs(jobs: int) -> None:
    """With noise: the operators' follows from the seed, and a proof changes no input."""
    settings = replace(VECTORS, phones=60, sums=1)
    proved, unproved = (
        simulate(replace(settings, summation=summation, jobs=count))
        for summation, count in ((BOTH, jobs), (UNPROVED, 1))
    )
    for name in ("global_centroids", "cells", "lengths", "labels"):
        np.testing.assert_array_equal(getattr(proved.found, name), getattr(unproved.found, name))
    reports = [[step for step in run.steps if step.bytes_up] for run in (proved, unproved)]
    for with_proof, without in zip(*reports, strict=True):
        assert with_proof.per_phone(with_proof.bytes_up) > 30_000
        assert without.per_phone(without.bytes_up) < 1_000
    assert any(note.startswith("Inputs prove themselves") for note in proved.notes)
    assert any(note.startswith("Inputs are not proved") for note in unproved.notes)


def test_simulated_phones_prove_by_the_engine_of_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of phones, of the same bytes, would take several times as long."""

    def refuse(*_: object) -> None:
        raise AssertionError("a simulated phone that proves by numpy")

    monkeypatch.setattr(LimbArithmetic, "dot", refuse)
    assert simulate(replace(VECTORS, phones=12, sums=0)).interrupted is None


VECTORS = Settings(
    phones=200,
    recordings=20,
    scenes=6,
    labelled=0.5,
    corrupted=0.0,
    epsilon=8.0,
    policy=PolicyChoice.ANYTHING,
    summation=BOTH,
    jobs=1,
    seed=3,
)


def test_one_phone_of_two_hundred_takes_half_of_all_names() -> None:
    """Half of the rows point away from where the adversary wants them, and name nothing."""
    run = simulate(replace(VECTORS, adversary=Adversary(false_vectors=0.005), summation=UNPROVED))
    assert run.interrupted is None
    assert run.adversary is not None
    assert (run.adversary.controlled, run.adversary.refused) == (1, 0)
    assert run.found.label_accuracy is not None
    assert run.found.label_accuracy < 0.6
    assert max(run.found.lengths) > 100


def test_where_vectors_are_proved_false_ones_are_refused_by_name_and_change_nothing() -> None:
    """As if those phones had vanished before they sent anything, to the last bit."""
    adversary = Adversary(false_vectors=0.05)
    few = replace(VECTORS, phones=40, dropout=0.05, sums=1)
    liars = sorted(adversary.members(40, few.seed)["false_vectors"])
    assert len(liars) == 2
    attacked = simulate(replace(few, adversary=adversary), attack=Leaving())
    without = simulate(few, attack=Leaving(*liars))
    assert named(attacked) == liars
    assert attacked.adversary is not None
    assert attacked.adversary.refused == 2 * len(liars), "cells and labels"
    assert attacked.interrupted is without.interrupted is None
    assert attacked.found.label_accuracy is not None
    assert attacked.found.label_accuracy > 0.8
    for each in ("global_centroids", "names", "lengths", "label_accuracy"):
        assert np.array_equal(getattr(attacked.found, each), getattr(without.found, each)), each


@pytest.mark.parametrize("attack", ["negative_counts", "pushed_label", "swapped_labels"])
def test_of_legal_vectors_sums_are_the_same_proved_and_unproved(attack: str) -> None:
    """So a study of legal vectors need not prove them."""
    few = replace(VECTORS, phones=30, sums=1, adversary=Adversary(**{attack: 0.1}))
    proved, unproved = (simulate(replace(few, summation=each)) for each in (BOTH, UNPROVED))
    for run in (proved, unproved):
        assert run.interrupted is None
        assert run.adversary is not None
        assert (run.adversary.controlled, run.adversary.refused) == (3, 0)
    assert essence(proved) == essence(unproved)


@pytest.mark.parametrize("attack", ["negative_counts", "pushed_label"])
def test_legal_vectors_of_one_in_twenty_take_few_names(attack: str) -> None:
    run = simulate(replace(VECTORS, adversary=Adversary(**{attack: 0.05}), summation=UNPROVED))
    assert run.interrupted is None
    assert run.found.label_accuracy is not None
    assert run.found.label_accuracy > 0.95


def test_an_attack_of_one_s_own_exceeds_the_bound_by_what_it_says() -> None:
    """Without noise, the total has its entry and all that the others heard."""

    class Loud(Attack):
        def phones(self, count: int, seed: int) -> range:
            return range(1)

        def added(self, phone: int, values: np.ndarray, parameters: object) -> np.ndarray:
            vector = np.zeros_like(values)
            vector[0, 0] = -50 * GRID
            return vector

    quiet = replace(VECTORS, phones=60, epsilon=NOISELESS, sums=0, summation=UNPROVED)
    run = simulate(quiet, attack=Loud())
    assert run.found.lengths[0] > 50 - 60 / math.sqrt(6)
    assert run.found.global_centroids is not None
    assert run.found.global_centroids[0, 0] < -0.9
    ideal = replace(quiet, summation=SummationChoice.IDEAL)
    with pytest.raises(OwnCodeError, match="exceeds the bound"):
        simulate(ideal, attack=Loud())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"summation": SummationChoice.REAL}, "false_vectors=0.1: .* --summation two-operators or"),
        ({"summation": SummationChoice.IDEAL}, "phones of --summation ideal stay within the bound"),
        ({"discovery": Discovery.LOCAL}, "adversary.false_vectors: .* --discovery secure-sum"),
    ],
)
def test_false_vectors_need_a_sum_of_vectors_that_phones_can_exceed(
    changes: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        replace(VECTORS, adversary=Adversary(false_vectors=0.1), **changes).check()  # type: ignore[arg-type]


def test_the_result_names_the_summation() -> None:
    configuration = result(simulate(local()))["configuration"]
    assert configuration["summation"] == "two-operators"  # type: ignore[index]


def test_shares_of_keys_cannot_be_wrong_where_there_are_none() -> None:
    with pytest.raises(InvalidParametersError, match="has no shares of keys"):
        local(adversary=Adversary(wrong_shares=0.1)).check()
