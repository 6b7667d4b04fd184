"""The whole labelling phase between coordinator and phones: whatever happens to it in between."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.labelling_phase import ANSWERS, CLASSES, PHONES, outcome, parameters, phone, play
from support.played_phase import Play, again

from earshot_protocol.errors import InvalidParametersError, MalformedMessageError
from earshot_protocol.messages import Failed, decode_task
from earshot_protocol.phases.labelling import CheckLabels, Labelled, LabelSamples
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.laws import SkellamNoise
from earshot_protocol.secure_sum import encoding, masks
from earshot_protocol.secure_sum.messages import MaskedInput
from earshot_protocol.wire import encode
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.kinds import decode_snapshot
from earshot_server.phases.labelling import LabellingPhase

STEPS = tuple(step.name for step in parameters().plan().steps)
VOTERS = 8
"""Of twelve phones, a third has heard nothing."""


@pytest.fixture(scope="module")
def undisturbed() -> Labelled:
    return outcome(play(parameters(), ideal=False))


def test_it_is_two_sums_and_answers_what_enough_phones_agree_with(undisturbed: Labelled) -> None:
    assert len(STEPS) == 8
    assert undisturbed.labels == ANSWERS
    assert undisturbed.names == ("bus", "park", None, "bus")
    assert undisturbed.answered == 3
    assert undisturbed.centroids == parameters().samples
    assert undisturbed.privacy == parameters().plan().releases()
    votes, agreement = np.array(undisturbed.label_votes), np.array(undisturbed.agreement)
    truth = np.zeros((4, 2))
    truth[[0, 1, 3], [0, 1, 0]] = VOTERS
    assert np.abs(votes - truth).max() <= 4
    assert np.abs(agreement - [VOTERS, VOTERS, 0, VOTERS]).max() <= 4


def test_real_and_ideal_sums_publish_the_same(undisturbed: Labelled) -> None:
    assert outcome(play(parameters())) == undisturbed


def test_killed_after_every_half_and_every_step_it_publishes_the_same(
    undisturbed: Labelled,
) -> None:
    game = play(parameters(), ideal=False)
    kills = 0

    def kill(coordinator: Coordinator) -> Coordinator:
        nonlocal kills
        kills += 1
        saved = msgspec.msgpack.encode(coordinator.state)
        restored, _ = decode_snapshot(saved)
        assert isinstance(restored, LabellingPhase)
        assert msgspec.msgpack.encode(restored) == saved
        return again(coordinator)

    game.disturb = kill
    assert outcome(game) == undisturbed
    assert kills == 3 * len(STEPS)


def test_phones_are_told_parameters_once_and_then_what_is_proposed() -> None:
    game = play(parameters())
    told = {}
    while game.coordinator.step != "published":
        task = game.coordinator.task_for(5)
        if isinstance(task, LabelSamples | CheckLabels):
            told[game.coordinator.step] = task
        game.step()
    first, second = told.values()
    assert isinstance(first, LabelSamples)
    assert first.parameters == parameters()
    assert isinstance(second, CheckLabels)
    votes = np.array(outcome(game).label_votes)
    assert second.proposed == tuple(votes.argmax(axis=1))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("ideal", [True, False])
def test_phones_that_vanish_in_any_step_are_done_without(step: str, ideal: bool) -> None:
    game = play(parameters(threshold=3.0), ideal)
    game.until(step)
    game.present -= {1, 5, 9}
    result = outcome(game)
    assert [result.labels[place] for place in (0, 1, 3)] == [0, 1, 0]
    place = STEPS.index(step)
    # The third round is the one in which inputs travel.
    expected = [PHONES - 3 if place <= 4 * number + 2 else PHONES for number in range(2)]
    assert list(game.coordinator.state.inputs.values()) == expected


@pytest.mark.parametrize("step", STEPS)
def test_too_few_phones_fail_the_phase_by_name(step: str) -> None:
    game = play(parameters())
    game.until(step)
    game.present -= {1, 5, 8, 9}
    game.step()
    told = game.coordinator.task_for(0)
    assert isinstance(told, Failed)
    assert "8 of 12" in told.reason


def test_without_labels_nothing_is_answered() -> None:
    result = outcome(play(parameters(), labelled=False))
    assert result.labels == (-1, -1, -1, -1)
    assert result.names == (None,) * 4
    assert np.abs(result.label_votes).max() <= 4


def test_an_answer_that_noise_may_have_given_is_an_answer_without_a_name() -> None:
    """The threshold says what is answered; the p-values, what may be noise of it."""
    agreed = parameters(votes_noise=60.0, check_noise=60.0, threshold=1e-3)
    result = outcome(play(agreed))
    assert result.answered > 0
    assert result.names == (None,) * 4
    assert min(result.name_p_values) > 0.05


def test_p_values_are_those_of_the_margin_of_the_check_over_the_runner_up() -> None:
    agreed = parameters(votes_noise=3.0, check_noise=2.0)
    result = outcome(play(agreed))
    counted_on = agreed.noise_survivors
    both = SkellamNoise((9.0 + 4.0) * PHONES / counted_on)
    alone = SkellamNoise(4.0 * PHONES / counted_on)
    for votes, agreement, p_value in zip(
        result.label_votes, result.agreement, result.name_p_values, strict=True
    ):
        margin = agreement - sorted(votes)[-2]
        chance = max(2 * float(both.at_least([margin])[0]), float(alone.at_least([agreement])[0]))
        assert p_value == pytest.approx(min(1.0, 4 * chance), rel=1e-9)


# ------------------------------------------------------------------------------- phones that lie


def lied(game: Play, values: np.ndarray) -> MaskedInput:
    """In the place of a phone's input: in an ideal sum inputs travel as they are."""
    answer, state = game.answer(4), game.coordinator.state
    assert isinstance(answer, MaskedInput)
    part = state.parameters.plan().part(game.coordinator.step.partition(":")[0])
    assert isinstance(part, SecureSum)
    agreed = state.parameters.sum_parameters(part, state.shape(part.name))
    whole = np.asarray(values, dtype=np.int64).ravel() % 2**agreed.modulus_bits
    words = whole.astype(masks.word_type(agreed.modulus_bits))
    packed = encoding.pack(words, agreed.modulus_bits)
    return msgspec.structs.replace(answer, vector=packed)


def liar(game: Play, step: str, values: np.ndarray) -> None:
    """Phone 4 sends these numbers in a part's third round; all others do what they should."""
    game.until(step)
    game.coordinator.accept(4, lied(game, values))
    game.present -= {4}
    game.step()
    game.present |= {4}


@pytest.mark.parametrize(
    ("step", "values"),
    [
        (STEPS[2], [40, 0, 0, 0, 0, 0, 0, 0]),
        (STEPS[2], [-40, 0, 0, 0, 0, 0, 0, 0]),
        (STEPS[2], [12, 12, 12, 12, 12, 12, 12, 12]),
        (STEPS[6], [40, 0, 0, 0]),
        (STEPS[6], [0, 0, -40, 0]),
    ],
)
def test_a_total_that_no_honest_crowd_has_ends_the_phase_by_name(
    step: str, values: list[int]
) -> None:
    game = play(parameters())
    liar(game, step, np.array(values))
    game.step()
    told = game.coordinator.task_for(0)
    assert isinstance(told, Failed)
    assert "at least one phone sent something that is not an input" in told.reason


def test_what_one_phone_that_lies_can_do_within_bounds() -> None:
    """The limit of what totals can tell, which the threat model states: ballots are not proven."""
    game = play(parameters())
    liar(game, STEPS[6], np.array([0, 0, 8, 0]))
    assert outcome(game).labels[2] >= 0, "of a sample that nobody knows, it makes an answer"
    game = play(parameters())
    liar(game, STEPS[2], np.array([0, 3, 0, 0, 0, 0, 0, 0]))
    assert outcome(game).labels == ANSWERS, "three votes of one phone do not outvote seven phones"


# ----------------------------------------------------------------------------- what cannot begin


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"threshold": 12.5}, "at most 12, the votes of all 12 phones"),
        ({"threshold": 0.0}, "threshold=0.0: must be above 0"),
        ({"threshold": float("nan")}, "threshold=nan"),
        ({"threshold": 25.0, "largest_weight": 2}, "at most 24"),
        ({"votes_noise": 0.0}, "votes_noise=0.0"),
        ({"check_noise": float("inf")}, "check_noise=inf"),
        ({"largest_weight": 0}, "largest_weight=0: must be a whole number, from 1 to 16"),
        ({"labels": ("bus",)}, "the number of labels=1: must be a whole number, from 2 to 256"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_parameters_that_no_phase_can_have_are_refused_by_name(
    changes: dict[str, object], match: str
) -> None:
    with pytest.raises(InvalidParametersError, match=match):
        play(parameters(**changes))


def test_a_threshold_above_the_phones_is_refused_where_fewer_join() -> None:
    agreed = parameters(threshold=11.0)
    agreed.check_feasible()
    with pytest.raises(InvalidParametersError, match="the votes of all 10 phones"):
        msgspec.structs.replace(agreed, phones=10).check_feasible()


def test_a_check_that_proposes_what_is_no_label_is_no_message() -> None:
    game = play(parameters())
    game.until(STEPS[4])
    task = game.coordinator.task_for(0)
    assert isinstance(task, CheckLabels)
    with pytest.raises(MalformedMessageError):
        decode_task(encode(msgspec.structs.replace(task, proposed=(-1, 0, 0, 0))))


def test_phones_of_every_weight_add_up_in_one_sum() -> None:
    """A light phone and a heavy one; what is told of weights is in the sum alone."""
    agreed = parameters(largest_weight=3, threshold=12.0)
    result = outcome(play(agreed))
    votes = np.array(result.label_votes)
    assert votes[0, 0] == pytest.approx(3 * VOTERS, abs=5)
    assert result.labels == ANSWERS
    assert phone(1).ledger.releases == ()
    assert CLASSES[result.labels[1]] == "park"
