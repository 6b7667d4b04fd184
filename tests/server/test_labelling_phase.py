"""The whole labelling phase between coordinator and phones: whatever happens to it in between."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.labelling_phase import ANSWERS, CLASSES, PHONES, outcome, parameters, phone, play
from support.played_phase import liar

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.labelling import CheckLabels, LabelSamples
from earshot_protocol.privacy.laws import SkellamNoise
from earshot_protocol.wire import encode

STEPS = tuple(step.name for step in parameters().plan().steps)
VOTERS = 8
"""Of twelve phones, a third has heard nothing."""


def test_it_is_two_sums_and_answers_what_enough_phones_agree_with() -> None:
    undisturbed = outcome(play(parameters()))
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


def test_what_one_phone_that_lies_can_do_within_bounds() -> None:
    """The limit of what totals can tell, which the threat model states: ballots are not proven."""
    game = play(parameters())
    liar(game, STEPS[6], np.array([0, 0, 8, 0]))
    assert outcome(game).labels[2] >= 0, "of a sample that nobody knows, it makes an answer"
    game = play(parameters())
    liar(game, STEPS[2], np.array([0, 3, 0, 0, 0, 0, 0, 0]))
    assert outcome(game).labels == ANSWERS, "three votes of one phone do not outvote seven phones"


# ----------------------------------------------------------------------------- what cannot begin


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
