"""A phone that seals other masks than it has in common with its neighbours, and vanishes."""

from __future__ import annotations

from collections.abc import Collection
from unittest import mock

import msgspec
import numpy as np
import pytest
from support.driven_sum import EVERYONE, PARAMETERS, Sum, make_sum

from earshot_protocol.secure_sum import masks
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.secure_sum.unmasking import FalseMasksError

replace = msgspec.structs.replace


def sealed_falsely(current: Sum, sealer: int, false: Collection[int]) -> None:
    """Share keys; one phone seals other masks than it has in common with some of its neighbours.

    It vanishes after that, and phone 6 with it.
    """
    current.until(Round.SHARE_KEYS)
    neighbours, seal = current.aggregator.task_for(sealer).neighbours, masks.seal_list

    def falsely(lock: bytes, common: tuple[bytes, ...], *bound: object) -> bytes:
        pairs = zip(neighbours, common, strict=True)
        changed = tuple(bytes(32) if them in false else mask for them, mask in pairs)
        return seal(lock, changed, *bound)

    phones = range(current.parameters.phones)
    for phone in phones:
        with mock.patch.object(masks, "seal_list", falsely if phone == sealer else seal):
            current.collect([phone])
    current.close()
    current.go_on(phone for phone in phones if phone not in (sealer, 6))


@pytest.mark.parametrize(
    "parameters",
    [PARAMETERS, choose(40, (4,), 50, 0.1, 0.0, neighbours=20, statistical_security=10)],
    ids=["complete", "sparse"],
)
def test_a_false_list_of_masks_ends_the_sum_and_names_who_sealed_it(
    parameters: SumParameters,
) -> None:
    current = make_sum(parameters)
    sealed_falsely(current, 5, range(parameters.phones))
    neighbours = current.aggregator._graph.table()[5].tolist()
    answered = len(neighbours) - (6 in neighbours)
    with pytest.raises(FalseMasksError, match=rf"phone 5 sealed a false list.* {answered} of its"):
        current.unmask(lambda phone, answer: answer)
    assert current.aggregator.round is Round.FAILED
    assert not any(msgspec.msgpack.decode(current.aggregator.save())["total"])


def test_of_few_false_masks_both_sides_are_named() -> None:
    """Whether a sealer or its neighbour lies, the sum is the same, and so is what is said."""
    current = make_sum(PARAMETERS)
    sealed_falsely(current, 5, (0, 9))
    with pytest.raises(FalseMasksError, match=r"phone 5 .* neighbours 0, 9 say .* one side lies"):
        current.unmask(lambda phone, answer: answer)

    slandered = make_sum(PARAMETERS)
    sealed_falsely(slandered, 5, ())
    with pytest.raises(FalseMasksError, match=r"phone 5 .* neighbours 0 say .* one side lies"):
        slandered.unmask(
            lambda phone, a: replace(a, traces=bytes(8) + a.traces[8:]) if phone == 0 else a,
        )


@pytest.mark.parametrize("false", [0, PARAMETERS.threshold - 1, PARAMETERS.threshold, 14])
def test_as_many_neighbours_as_the_threshold_cannot_all_lie(false: int) -> None:
    current = make_sum(PARAMETERS)
    others = [phone for phone in EVERYONE if phone not in (5, 6)]
    sealed_falsely(current, 5, others[:false])
    if not false:
        current.unmask(lambda phone, answer: answer)
        assert np.array_equal(current.aggregator.result(), current.expected(others))
        return
    sealer_alone = "false list" if false >= PARAMETERS.threshold else "one side lies"
    with pytest.raises(FalseMasksError, match=sealer_alone):
        current.unmask(lambda phone, answer: answer)


def test_a_false_mask_that_is_not_in_the_total_harms_nobody() -> None:
    current = make_sum(PARAMETERS)
    sealed_falsely(current, 5, (6,))
    current.unmask(lambda phone, answer: answer)
    others = (phone for phone in EVERYONE if phone not in (5, 6))
    assert np.array_equal(current.aggregator.result(), current.expected(others))


def test_nothing_of_a_mask_is_kept_or_told_but_its_trace() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.MASKED_INPUT)
    common = msgspec.msgpack.decode(current.participants[0].save(), strict=False)["masks"]
    current.go_on(phone for phone in EVERYONE if phone not in (6, 11))
    between = current.participants[0].save()
    answer = current.answer(0)
    assert answer.traces == masks.trace(common[5]) + masks.trace(common[10])
    for saved in (between, current.participants[0].save(), answer.traces):
        assert not any(mask in saved for mask in common)
    assert not any(
        masks.trace(mask) in current.participants[0].save() for mask in common
    )  # forgotten with the shares
