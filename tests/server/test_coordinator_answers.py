from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.played_phase import PHONES, Play, outcome, play, stored, undisturbed
from support.steps import STEPS, Step

from earshot_protocol.errors import (
    MalformedMessageError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import Wait, decode_answer
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.secure_sum.messages import AdvertisedKeys, MaskedInput, SharedKeys, Unmasked
from earshot_protocol.wire import Answer, Matrix, encode

# -------------------------------------------------------------------------------- bad answers

NOT_A_NUMBER = np.array([np.nan] * 4, dtype="<f4").tobytes()
ONES = np.ones(4, dtype="<f4").tobytes()


def malformed(answer: Answer) -> list[Answer]:
    """The same answer with fields of the wrong size or value."""
    replace = msgspec.structs.replace
    match answer:
        case LocalCentroids():
            matrices = (
                Matrix(2, 2, NOT_A_NUMBER),
                Matrix(2, 2, ONES[:-4]),
                Matrix(2, 2, b""),
                Matrix(4, 1, ONES),
                Matrix(1, 2, ONES[:8]),
                Matrix(0, 2, b""),
            )
            return [replace(answer, centroids=matrix) for matrix in matrices]
        case AdvertisedKeys():
            return [replace(answer, public_key=bytes(32))]
        case SharedKeys():
            return [
                replace(answer, ciphertexts=answer.ciphertexts[1:]),
                replace(answer, masks=answer.masks[1:]),
                replace(answer, masks=answer.masks + bytes(32)),
            ]
        case MaskedInput():
            return [
                replace(answer, vector=answer.vector + b"\0"),
                replace(answer, vector=answer.vector[1:]),
                replace(answer, vector=b""),
            ]
        case Unmasked():
            return [
                replace(answer, shares=answer.shares + b"\0"),
                replace(answer, shares=answer.shares[:-33]),
                replace(answer, traces=answer.traces + bytes(8)),
            ]


def foreign(answer: Answer) -> Answer:
    """The same answer to another phase or sum."""
    if isinstance(answer, LocalCentroids):
        return msgspec.structs.replace(answer, phase=b"another phase!!!")
    return msgspec.structs.replace(answer, sum_id=b"another sum!!!!!")


def premature(answer: Answer) -> Answer:
    """An answer that belongs to a later round of the sum that is under way."""
    sum_id = bytes(16) if isinstance(answer, LocalCentroids) else answer.sum_id
    if isinstance(answer, Unmasked):
        return LocalCentroids(phase=bytes(16), sender=answer.sender, centroids=Matrix(2, 2, ONES))
    return Unmasked(sum_id=sum_id, sender=answer.sender, shares=b"", traces=b"")


def another(answer: Answer) -> list[Answer]:
    """Well-formed answers that say something else."""
    replace = msgspec.structs.replace
    match answer:
        case LocalCentroids():
            return [replace(answer, centroids=Matrix(2, 2, ONES))]
        case AdvertisedKeys():
            return [replace(answer, public_key=bytes([9]) + bytes(31))]
        case SharedKeys():
            return [replace(answer, commitment=bytes(31) + b"\x01")]
        case MaskedInput():
            return [replace(answer, vector=answer.vector[:1] + bytes(len(answer.vector) - 1))]
        case Unmasked():
            return [replace(answer, shares=bytes(len(answer.shares)))] if answer.shares else []


class Attacked:
    """Sends bad answers at a coordinator, each of which must be refused and change nothing."""

    def __init__(self, game: Play) -> None:
        self.game = game
        self.coordinator = game.coordinator
        self.past: list[Answer] = []
        self.refused = 0

    def refuses(self, phone: int, answer: Answer, error: type[RemoteError]) -> None:
        coordinator = self.coordinator
        before = self.seen()
        with pytest.raises(error) as raised:
            coordinator.accept(phone, answer)
        assert raised.type is error
        assert str(raised.value)
        assert self.seen() == before
        self.refused += 1

    def seen(self) -> tuple[object, ...]:
        coordinator, store = self.coordinator, stored(self.coordinator)
        return (
            store.snapshot(coordinator.phase),
            tuple(store.answers(coordinator.phase)),
            coordinator.missing(),
            msgspec.msgpack.encode(coordinator.state),
        )

    def attack(self, phone: int, other: int) -> None:
        """Before and after the phone's good answer of this step."""
        good, others = self.game.answer(phone), self.game.answer(other)
        for bad in malformed(good):
            if bad != good:  # an ideal sum has no ciphertexts and shares to leave out
                self.refuses(phone, bad, MalformedMessageError)
        stolen = msgspec.structs.replace(good, sender=other)
        for bad in (foreign(good), premature(good), stolen, others):
            self.refuses(phone, bad, UnexpectedMessageError)
        for late in self.past:
            self.refuses(phone, late, UnexpectedMessageError)
        for stranger in (PHONES, -1):
            theirs = msgspec.structs.replace(good, sender=stranger)
            self.refuses(stranger, theirs, UnexpectedMessageError)
        self.coordinator.accept(phone, decode_answer(encode(good)))
        before = self.seen()
        self.coordinator.accept(phone, good)  # its acknowledgement was lost
        assert self.seen() == before
        for second in another(good):
            self.refuses(phone, second, RepeatedMessageError)
        self.past.append(good)


@pytest.mark.parametrize("ideal", [False, True])
def test_bad_answers_are_refused_by_name_and_change_nothing(ideal: bool) -> None:
    game = play(ideal)
    attacked = Attacked(game)
    everybody = set(range(PHONES))
    for step in STEPS:
        assert game.coordinator.step == step
        attacked.attack(phone=4, other=7)
        game.present = everybody - {4}
        game.step()
    assert attacked.refused > 5 * len(STEPS)
    assert outcome(game.coordinator) == undisturbed()


def test_of_two_phones_with_one_key_the_first_stays_and_the_phase_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    game = play()
    game.until(Step.CENTROID_VOTE_ADVERTISE)
    copied = game.answer(2)
    game.coordinator.accept(2, copied)
    # What a phone alone cannot be refused for: its keys are fine, but another phone has them.
    game.coordinator.accept(5, msgspec.structs.replace(copied, sender=5))
    game.present -= {2, 5}
    game.step()
    assert game.coordinator.missing() == set(range(PHONES)) - {5}
    assert "phone 5: another phone has advertised this key" in caplog.text
    game.present |= {2}
    game.until(Step.PUBLISHED)


def test_who_missed_a_round_is_out_of_this_sum_and_back_in_the_next() -> None:
    game = play()
    game.until(Step.CENTROID_VOTE_SHARE)
    game.present.remove(3)
    late = game.answer(3)
    game.step()
    attacked = Attacked(game)
    attacked.refuses(3, late, UnexpectedMessageError)
    assert isinstance(late, SharedKeys)
    sneaked = MaskedInput(sum_id=late.sum_id, sender=3, vector=b"")
    attacked.refuses(3, sneaked, UnexpectedMessageError)
    game.until(Step.LABEL_VOTE_ADVERTISE)
    assert 3 in game.coordinator.missing()
    assert not isinstance(game.coordinator.task_for(3), Wait)


@pytest.mark.parametrize("phone", [-1, PHONES, 10**9])
def test_a_phone_that_is_not_enrolled_has_no_task(phone: int) -> None:
    game = play(ideal=True)
    for _ in range(2):
        with pytest.raises(UnexpectedMessageError, match="not enrolled"):
            game.coordinator.task_for(phone)
        game.step()
