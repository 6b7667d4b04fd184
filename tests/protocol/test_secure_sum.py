from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from unittest import mock

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.driven_sum import COMPLETE, ROUNDS, Sum, make_sum
from support.examples import examples

from earshot_protocol.errors import (
    InvalidInputError,
    InvalidParametersError,
    RefusedError,
    RemoteError,
    TooManyDropoutsError,
    WrongStateError,
)
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError
from earshot_protocol.secure_sum.graph import Graph
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.neighbourhoods import Phones
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.participant import _NONCE_BYTES, Participant
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.secure_sum.unmasking import Unmasking

# A ring of degree 20 among 30 phones of which 3 may drop: every phone keeps 17 neighbours, more
# than the threshold, whatever the pattern, so recovery is certain and not only likely.
SPARSE = choose(30, (4,), 50, 0.1, 0.0, neighbours=20, statistical_security=10, correctness=10)

SUMS = settings(max_examples=examples(40))


Pattern = list[list[int]]
"""Per round, the phones that vanish before they answer it."""


def patterns(parameters: SumParameters, least: int, most: int) -> st.SearchStrategy[Pattern]:
    """Phones that vanish per round, between `least` and `most` of them in all."""
    phones = st.lists(
        st.integers(0, parameters.phones - 1), min_size=least, max_size=most, unique=True
    )

    def spread(gone: list[int]) -> st.SearchStrategy[Pattern]:
        return st.lists(
            st.integers(0, len(ROUNDS) - 1), min_size=len(gone), max_size=len(gone)
        ).map(
            lambda rounds: [
                [phone for phone, when in zip(gone, rounds, strict=True) if when == current]
                for current in range(len(ROUNDS))
            ]
        )

    return phones.flatmap(spread)


def test_the_two_settings_are_a_complete_and_a_sparse_graph() -> None:
    assert COMPLETE.degree == COMPLETE.phones - 1
    assert COMPLETE.largest_dropout_count == 3
    assert SPARSE.degree < SPARSE.phones - 1
    assert SPARSE.degree - SPARSE.largest_dropout_count >= SPARSE.threshold


@pytest.mark.parametrize(
    "parameters",
    [COMPLETE, pytest.param(SPARSE, marks=pytest.mark.slow)],
    ids=["complete", "sparse"],
)
@SUMS
@given(data=st.data(), restart=st.booleans())
def test_any_dropouts_within_rho_give_the_exact_sum_of_those_who_stayed(
    parameters: SumParameters, data: st.DataObject, restart: bool
) -> None:
    gone = data.draw(patterns(parameters, 0, parameters.largest_dropout_count))
    current = make_sum(parameters, restart=restart)
    arrived = current.run(gone)
    assert arrived == set(range(parameters.phones)) - {p for r in gone[:3] for p in r}
    assert current.aggregator.survivors() == arrived
    assert np.array_equal(current.aggregator.result(), current.expected(arrived))


@pytest.mark.parametrize(
    "parameters",
    [COMPLETE, pytest.param(SPARSE, marks=pytest.mark.slow)],
    ids=["complete", "sparse"],
)
@SUMS
@given(data=st.data())
def test_any_dropouts_beyond_rho_end_the_sum_and_open_nothing(
    parameters: SumParameters, data: st.DataObject
) -> None:
    beyond = parameters.largest_dropout_count + 1
    gone = data.draw(patterns(parameters, beyond, beyond + 3))
    current = make_sum(parameters)
    with (
        mock.patch.object(Unmasking, "_secrets", side_effect=AssertionError("a secret was opened")),
        pytest.raises(TooManyDropoutsError, match="at least"),
    ):
        current.run(gone)
    aggregator = current.aggregator
    assert aggregator.round is Round.FAILED
    with pytest.raises(WrongStateError):
        aggregator.result()
    with pytest.raises(WrongStateError):
        aggregator.advance()
    saved = msgspec.msgpack.decode(aggregator.save())
    assert not any(saved["total"])
    assert saved["sealed"] == {}
    assert saved["revealed"] == {}
    assert all(aggregator.task_for(phone) is None for phone in range(parameters.phones))


def test_no_two_ciphertexts_of_any_phone_or_sum_share_a_nonce() -> None:
    nonces = Counter[bytes]()
    for _ in range(2):
        current = make_sum(COMPLETE)
        current.run(((), (), (), ()))
        nonces += Counter(
            ciphertext[:_NONCE_BYTES]
            for answer in current.answers[Round.SHARE_KEYS].values()
            for ciphertext in answer.ciphertexts
        )
    assert nonces.total() == 2 * COMPLETE.phones * (COMPLETE.phones - 1)
    assert max(nonces.values()) == 1


def test_the_server_rebuilds_one_secret_of_each_phone_that_shared_and_never_both() -> None:
    rebuilt: list[tuple[str, int]] = []
    secrets = Unmasking._secrets

    def spy(
        unmasking: Unmasking, what: str, phones: Phones, matches: Callable[[int, bytes], bool]
    ) -> Iterator[bytes]:
        def seen(phone: int, secret: bytes) -> bool:
            rebuilt.append((what, phone))
            return matches(phone, secret)

        return secrets(unmasking, what, phones, seen)

    current = make_sum(SPARSE)
    with mock.patch.object(Unmasking, "_secrets", spy):
        arrived = current.run(((3,), (), (8,), (21,)))
    assert 21 in arrived
    assert sorted(rebuilt) == [("lock", 8), *(("seed", phone) for phone in sorted(arrived))]


def test_a_server_may_die_after_any_answer() -> None:
    current = make_sum(SPARSE)
    for round_ in ROUNDS:
        for phone in range(SPARSE.phones):
            if (round_, phone) != (
                Round.MASKED_INPUT,
                4,
            ) and phone in current.aggregator.expected():
                current.collect([phone])
                current.aggregator = Aggregator.restore(current.aggregator.save())
                assert phone in current.aggregator.answered()
        current.close()
    stayed = set(range(SPARSE.phones)) - {4}
    assert current.aggregator.survivors() == stayed
    assert np.array_equal(current.aggregator.result(), current.expected(stayed))


# Eight neighbours and security of one bit: among 32 phones a few dropouts sometimes leave a phone
# with too few neighbours.
WEAK = choose(32, (3,), 9, 5 / 32, 0.0, neighbours=8, statistical_security=1, correctness=1)


def weak_run(current: Sum, gone: Pattern) -> str:
    """The outcome of a sum whose phones may give up by themselves."""
    present = set(range(WEAK.phones))
    try:
        for round_, vanished in zip(ROUNDS, gone, strict=True):
            present -= set(vanished)
            for phone in sorted(present):
                try:
                    current.collect([phone])
                except RemoteError:
                    present.remove(phone)
            if round_ is Round.MASKED_INPUT:
                arrived = set(present)
            current.close()
    except RemoteError as error:
        with pytest.raises(WrongStateError):
            current.aggregator.result()
        return type(error).__name__
    assert current.aggregator.survivors() == arrived
    assert np.array_equal(current.aggregator.result(), current.expected(arrived))
    return "exact"


@pytest.mark.slow
def test_a_sum_that_cannot_be_recovered_fails_by_name_and_is_never_wrong() -> None:
    chance = random.Random(6)
    outcomes: Counter[str] = Counter()
    for seed in range(150):
        gone: Pattern = [[], [], [], []]
        for phone in chance.sample(range(WEAK.phones), WEAK.largest_dropout_count):
            chance.choice(gone).append(phone)
        current = make_sum(WEAK, seed=seed)
        current.aggregator = Aggregator(chance.randbytes(16), WEAK, chance.randbytes)
        outcomes[weak_run(current, gone)] += 1
    assert outcomes["exact"] > 10
    assert outcomes["TooManyDropoutsError"] > 3
    assert outcomes["UnrecoverableSecretError"] > 3
    assert set(outcomes) == {"exact", "TooManyDropoutsError", "UnrecoverableSecretError"}


def test_a_phone_whose_neighbours_all_left_takes_the_sum_with_it() -> None:
    """Its lock is lost, and the secrets of its neighbours are a few shares short."""
    parameters = choose(
        200, (3,), 9, 0.08, 0.0, neighbours=8, statistical_security=1, correctness=1
    )
    current = make_sum(parameters)
    current.until(Round.MASKED_INPUT)
    alone = 5
    task = current.aggregator.task_for(alone)
    current.go_on(set(range(parameters.phones)) - {alone, *task.senders})
    for phone in current.aggregator.expected():
        # Those beside the gap see half of their neighbours gone, and stop by themselves.
        with contextlib.suppress(TooManyDropoutsError):
            current.collect([phone])
    with pytest.raises(UnrecoverableSecretError, match=r"of phone \d+: [1-4] shares; 5"):
        current.close()


def test_a_failed_sum_is_started_afresh_with_new_keys() -> None:
    first = make_sum(COMPLETE)
    with pytest.raises(TooManyDropoutsError):
        first.run(((), range(6), (), ()))
    second = make_sum(COMPLETE, inputs=first.inputs)
    arrived = second.run(((1,), (), (2,), ()))
    assert np.array_equal(second.aggregator.result(), second.expected(arrived))
    old, new = (s.answers[Round.ADVERTISE_KEYS] for s in (first, second))
    keys = [answer.public_key for answer in (*old.values(), *new.values())]
    assert len(set(keys)) == len(keys)


def test_sums_in_immediate_succession_of_any_shape_and_precision() -> None:
    for shape in ((), (1,), (3, 4), (2, 3, 5)):
        parameters = choose(8, shape, 10**6, 0.1, 0.1)
        current = make_sum(parameters)
        current.run()
        assert current.aggregator.result().shape == shape
        assert np.array_equal(current.aggregator.result(), current.expected(range(8)))
    parameters = choose(8, (2, 2), 10**6, 0.1, 0.1, precision=3)
    decimals = np.random.default_rng(5).uniform(-900, 900, (8, 2, 2)).round(3)
    current = make_sum(parameters, inputs=decimals)
    current.run()
    np.testing.assert_allclose(current.aggregator.result(), decimals.sum(axis=0), atol=1e-9)


def test_the_largest_entries_do_not_wrap() -> None:
    for bound in (1, 2**7, 2**31, 2**58):
        parameters = choose(10, (3,), bound, 0.1, 0.1)
        for sign in (1, -1):
            inputs = np.full((10, 3), sign * bound, dtype=np.int64)
            current = make_sum(parameters, inputs=inputs)
            current.run()
            assert current.aggregator.result().tolist() == [sign * 10 * bound] * 3


def test_masked_inputs_of_equal_phones_look_uniform() -> None:
    parameters = choose(10, (4000,), 1, 0.1, 0.1)
    current = make_sum(parameters, inputs=np.zeros((10, 4000), dtype=np.int64))
    current.until(Round.MASKED_INPUT)
    current.collect(range(10))
    vectors = [current.answers[Round.MASKED_INPUT][phone].vector for phone in range(10)]
    assert len(set(vectors)) == 10
    counts = np.bincount(np.frombuffer(b"".join(vectors), np.uint8), minlength=256)
    expected = counts.sum() / 256
    statistic = ((counts - expected) ** 2 / expected).sum()
    # 255 degrees of freedom: mean 255, deviation 22.6; ten deviations either way.
    assert 30 < statistic < 481


def test_the_total_before_unmasking_is_not_the_sum() -> None:
    parameters = choose(10, (64,), 1, 0.1, 0.1)
    current = make_sum(parameters)
    current.until(Round.UNMASK)
    saved = msgspec.msgpack.decode(current.aggregator.save())
    words = np.frombuffer(saved["total"], "<u2") % 2**parameters.modulus_bits
    true = current.expected(range(10)) % 2**parameters.modulus_bits
    assert (words != true).mean() > 0.5


def test_secrets_are_forgotten_when_they_are_done() -> None:
    current = make_sum(COMPLETE)
    kept = {
        Round.SHARE_KEYS: {"words", "private"},
        Round.MASKED_INPUT: {"words", "seed", "seals", "masks"},
        Round.UNMASK: {"shares"},
        Round.DONE: set(),
    }
    secret = {"words", "private", "seed", "seals", "masks", "shares"}
    for current_round in ROUNDS:
        current.go_on(range(12))
        state = msgspec.msgpack.decode(current.participants[3].save(), strict=False)
        held = {name for name in secret if state[name]}
        assert held == kept[state["round"]] & secret, current_round


def test_who_has_answered_has_nothing_to_do_until_the_round_closes() -> None:
    current = make_sum(COMPLETE)
    for _ in ROUNDS:
        assert current.aggregator.task_for(3) is not None
        current.collect([3])
        assert current.aggregator.task_for(3) is None
        current.go_on(phone for phone in range(COMPLETE.phones) if phone != 3)
    assert current.aggregator.done
    assert current.aggregator.task_for(3) is None


def test_ciphertexts_are_forgotten_once_inputs_are_in() -> None:
    current = make_sum(COMPLETE)
    current.until(Round.MASKED_INPUT)
    assert current.aggregator._mail is not None
    current.go_on(range(COMPLETE.phones))
    assert current.aggregator.round is Round.UNMASK
    assert current.aggregator._mail is None
    assert Aggregator.restore(bytes(current.aggregator.save()))._mail is None


def test_what_was_not_saved_by_either_side_is_not_restored() -> None:
    for restore in (Participant.restore, Aggregator.restore):
        for junk in (b"", b"\x00", b"\x80", b"junk"):
            with pytest.raises(InvalidInputError, match="not a saved"):
                restore(junk)


def test_what_phones_compare_of_an_opening_has_the_number_of_none() -> None:
    """Phones of any language must hash the same (docs/protocol.md, section 6)."""
    current = make_sum(COMPLETE)
    for task in (current.aggregator.task_for(0), current.aggregator.task_for(3)):
        assert isinstance(task, AdvertiseKeys)
        assert task.told_alike == msgspec.structs.replace(task, index=0)


def test_neither_side_begins_a_sum_that_should_not_run() -> None:
    weak = msgspec.structs.replace(COMPLETE, threshold=COMPLETE.threshold - 1)
    task = make_sum(COMPLETE).aggregator.task_for(3)
    assert isinstance(task, AdvertiseKeys)
    values = np.zeros(COMPLETE.shape, dtype=np.int64)
    with pytest.raises(InvalidParametersError, match="threshold"):
        Aggregator(bytes(16), weak)
    with pytest.raises(InvalidParametersError, match="threshold"):
        Participant(msgspec.structs.replace(task, parameters=weak), values)
    with pytest.raises(RefusedError, match=f"phone {COMPLETE.phones} in a sum"):
        Participant(msgspec.structs.replace(task, index=COMPLETE.phones), values)
    participant = Participant(task, values)
    for changes in ({"index": 4}, {"parameters": weak}):
        with pytest.raises(RefusedError, match="differ from those agreed to"):
            participant.answer(msgspec.structs.replace(task, **changes))


def test_the_servers_source_decides_the_graph_and_no_two_of_the_systems_are_alike() -> None:
    sources = (random.Random(1).randbytes, random.Random(1).randbytes, random.Random(2).randbytes)
    drawn = [Aggregator(bytes(16), SPARSE, source)._state.graph for source in sources]
    assert drawn[0] == drawn[1] == Graph.draw(SPARSE, random.Random(1).randbytes).to_bytes()
    assert drawn[2] != drawn[0]
    assert len({Aggregator(bytes(16), SPARSE)._state.graph for _ in range(3)}) == 3
