"""The rows of "what can go wrong": each fault, and what both sides make of it."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from unittest import mock

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from support.driven_sum import EVERYONE, LOW_ORDER_KEYS, PARAMETERS, PHONES, ROUNDS, Sum, make_sum

from earshot_protocol.errors import (
    MalformedMessageError,
    RefusedError,
    RemoteError,
    RepeatedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.secure_sum import decoding, participant, shamir
from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError
from earshot_protocol.secure_sum.messages import (
    REVEALED_SHARE_BYTES,
    AdvertisedKeys,
    MaskInput,
    ShareKeys,
    Unmask,
    Unmasked,
)
from earshot_protocol.secure_sum.parameters import choose
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.wire import encode

replace = msgspec.structs.replace


def ending(message: bytes, value: int = 1) -> bytes:
    """The same bytes with the last one changed."""
    return message[:-1] + bytes([message[-1] ^ value])


# -------------------------------------------------------------------- ten thousand messages


OPAQUE = {
    "AdvertisedKeys": {"public_key"},
    "SharedKeys": {"ciphertexts", "masks", "commitment"},
    "MaskedInput": {"vector"},
    "Unmasked": {"shares", "traces"},
    "ShareKeys": {"public_keys"},
    "MaskInput": {"ciphertexts"},
    "Unmask": set(),
}
"""Fields in which one string of the right length is as good as another to who receives it."""


def changed(message: msgspec.Struct, honest: msgspec.Struct) -> set[str]:
    """The fields in which a message that was taken differs from the honest one."""
    assert type(message) is type(honest)
    return {
        name
        for name in message.__struct_fields__
        if getattr(message, name) != getattr(honest, name)
    }


def forged(honest: msgspec.Struct, chance: random.Random) -> msgspec.Struct:
    """The message with one field made wrong, but well-formed: id, sender, a size, an order."""
    name = chance.choice([n for n in honest.__struct_fields__ if n != "parameters"])
    value = getattr(honest, name)
    if name == "sum_id":
        value = chance.randbytes(16)
    elif isinstance(value, int):
        value = chance.choice([value ^ 1, value + PHONES, 2**32 - 1])
    elif isinstance(value, bytes):
        value = chance.choice([value[:-1], value + b"\0", value + value, b""])
    elif len(value):
        at = chance.randrange(len(value))
        value = chance.choice([value[:at] + value[at + 1 :], (*value, value[at]), (), value[::-1]])
    return replace(honest, **{name: value})


def mutations(
    honest: msgspec.Struct, others: list[bytes], chance: random.Random
) -> Iterator[bytes]:
    """Endless corruptions of one message as it travels."""
    encoded = msgspec.msgpack.encode(honest)
    while True:
        kind = chance.randrange(7)
        raw = bytearray(encoded)
        at = chance.randrange(len(raw))
        if kind == 0:
            raw[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            raw = raw[:at]
        elif kind == 2:
            raw[at:at] = chance.randbytes(chance.randrange(1, 40))
        elif kind == 3:
            length = chance.randrange(1, 32)
            raw[at : at + length] = chance.randbytes(length)
        elif kind == 4:
            raw = bytearray(chance.choice(others))
        elif kind == 5:
            raw = bytearray(msgspec.msgpack.encode(forged(honest, chance)))
        else:
            end = min(len(raw), at + chance.randrange(1, 64))
            del raw[at:end]
        if bytes(raw) != encoded:
            yield bytes(raw)


def test_ten_thousand_corrupted_answers_change_no_state() -> None:
    """Each is refused by name and leaves the aggregator as it was, to the byte.

    What no server can tell from an honest answer (a flipped bit in a key, a ciphertext, a masked
    vector or a share has the form of a right one) is not given to this sum, but to a copy of it,
    and counted by the fields that it changed.
    """
    current = make_sum(PARAMETERS)
    chance = random.Random(20201109)
    seen: Counter[str] = Counter()
    earlier: list[bytes] = []
    tried, arrived = 0, EVERYONE[:-1]
    for current_round in ROUNDS:
        present = EVERYONE if current_round in ROUNDS[:2] else arrived
        tried += len(present) * 200
        honest = {phone: encode(current.answer(phone)) for phone in present}
        others = earlier + list(honest.values())
        before = current.aggregator.save()
        for phone in present:
            original = decode_answer(honest[phone])
            corrupted = mutations(original, others, chance)
            for _ in range(200):
                message = next(corrupted)
                try:
                    answer = decode_answer(message)
                except MalformedMessageError:
                    seen["undecodable"] += 1
                    continue
                copy = type(current.aggregator).restore(before)
                try:
                    copy.accept(phone, answer)
                except RemoteError as error:
                    assert copy.save() == before
                    with pytest.raises(type(error)):
                        current.aggregator.accept(phone, answer)
                    seen[type(error).__name__] += 1
                else:
                    kind, fields = type(answer).__name__, changed(answer, original)
                    assert fields <= OPAQUE[kind]
                    seen["taken"] += 1
                    seen.update(f"{kind}.{field}" for field in fields)
        assert current.aggregator.save() == before
        for phone in present:
            current.aggregator.accept(phone, decode_answer(honest[phone]))
        before = current.aggregator.save()
        for phone in present:
            with pytest.raises(RepeatedMessageError):
                current.aggregator.accept(phone, decode_answer(honest[phone]))
        assert current.aggregator.save() == before
        earlier += list(honest.values())
        current.close()
    refused = seen["undecodable"] + sum(n for name, n in seen.items() if name.endswith("Error"))
    assert refused + seen["taken"] == tried
    assert refused > 10_000
    assert min(seen["undecodable"], seen["UnexpectedMessageError"], seen["taken"]) > 500
    assert seen["MalformedMessageError"] > 100
    answers = ("AdvertisedKeys", "SharedKeys", "MaskedInput", "Unmasked")
    assert all(seen[f"{kind}.{field}"] for kind in answers for field in OPAQUE[kind])
    assert np.array_equal(current.aggregator.result(), current.expected(arrived))


def test_corrupted_tasks_change_no_phone() -> None:
    """A task that a phone refuses leaves it as it was; the honest one is answered after that.

    Ten thousand of them. Keys and ciphertexts that a lying server made up are beyond a phone's
    knowledge; lists of neighbours are not.
    """
    current = make_sum(PARAMETERS)
    chance = random.Random(7)
    current.until(Round.SHARE_KEYS)
    seen: Counter[str] = Counter()
    earlier: list[bytes] = []
    for _ in ROUNDS[1:]:
        tasks = {phone: encode(current.aggregator.task_for(phone)) for phone in EVERYONE}
        for phone in EVERYONE:
            participant = current.participants[phone]
            before = participant.save()
            original = decode_task(tasks[phone])
            corrupted = mutations(original, earlier + list(tasks.values()), chance)
            for _ in range(220):
                copy = type(participant).restore(before)
                try:
                    task = decode_task(next(corrupted))
                    copy.answer(task)
                except RemoteError as error:
                    assert copy.save() == before
                    seen[type(error).__name__] += 1
                else:
                    kind, fields = type(task).__name__, changed(task, original)
                    foreign = task in map(decode_task, tasks.values())
                    assert fields <= OPAQUE[kind] or foreign, (kind, fields)
                    seen["taken"] += 1
        earlier += list(tasks.values())
        current.go_on(EVERYONE)
    assert seen.total() == 3 * PHONES * 220 > 10_000
    assert seen["RefusedError"] > 500
    assert seen["MalformedMessageError"] > 500
    assert seen["UnexpectedMessageError"] > 500
    assert np.array_equal(current.aggregator.result(), current.expected(EVERYONE))


# ------------------------------------------------------------------------------- wrong keys


def test_unusable_and_repeated_keys_are_refused_by_the_server() -> None:
    current = make_sum(PARAMETERS)
    first, second = current.answer(0), current.answer(1)
    assert isinstance(first, AdvertisedKeys)
    before = current.aggregator.save()
    for key in LOW_ORDER_KEYS:
        with pytest.raises(MalformedMessageError, match="X25519"):
            current.aggregator.accept(0, replace(first, public_key=key))
    assert current.aggregator.save() == before
    current.aggregator.accept(0, first)
    current.aggregator = type(current.aggregator).restore(current.aggregator.save())
    flipped = first.public_key[:31] + bytes([first.public_key[31] ^ 128])
    for key in (first.public_key, flipped):
        with pytest.raises(MalformedMessageError, match="another phone"):
            current.aggregator.accept(1, replace(second, public_key=key))
    current.aggregator.accept(1, second)


def test_a_phone_refuses_unusable_keys_and_its_own() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.SHARE_KEYS)
    task = current.aggregator.task_for(0)
    assert isinstance(task, ShareKeys)
    own = current.answers[Round.ADVERTISE_KEYS][0]
    before = current.participants[0].save()
    cases = [
        *(
            (replace(task, public_keys=key + task.public_keys[32:]), "low order")
            for key in LOW_ORDER_KEYS
        ),
        (replace(task, public_keys=own.public_key + task.public_keys[32:]), "own key"),
        (replace(task, public_keys=task.public_keys[:-32]), "keys"),
        (replace(task, public_keys=task.public_keys[:32] + task.public_keys[:-32]), "distinct"),
        (replace(task, neighbours=task.neighbours[:-1]), "keys"),
        (replace(task, neighbours=task.neighbours[::-1]), "ascending"),
        (replace(task, neighbours=(0, *task.neighbours[1:])), "own neighbour"),
    ]
    for wrong, words in cases:
        with pytest.raises(RefusedError, match=words):
            current.participants[0].answer(wrong)
        assert current.participants[0].save() == before


# ----------------------------------------------------------------------- wrong ciphertexts


def test_a_ciphertext_that_does_not_open_spoils_nothing() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.SHARE_KEYS)
    for phone in EVERYONE:
        answer = current.answer(phone)
        if phone in (2, 9):
            damaged = list(answer.ciphertexts)
            damaged[0], damaged[5] = ending(damaged[0]), ending(damaged[5])
            answer = replace(answer, ciphertexts=tuple(damaged))
        current.aggregator.accept(phone, answer)
    current.close()
    current.go_on(EVERYONE)
    current.go_on(phone for phone in EVERYONE if phone != 4)
    assert np.array_equal(current.aggregator.result(), current.expected(EVERYONE))


def test_a_phone_stops_when_too_few_ciphertexts_open() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.MASKED_INPUT)
    task = current.aggregator.task_for(3)
    assert isinstance(task, MaskInput)
    before = current.participants[3].save()
    spare = len(task.senders) - PARAMETERS.threshold

    def damaged(count: int) -> MaskInput:
        sealed = task.ciphertexts
        return replace(task, ciphertexts=(*map(ending, sealed[:count]), *sealed[count:]))

    with pytest.raises(TooManyDropoutsError, match="shares of"):
        current.participants[3].answer(damaged(spare + 1))
    assert current.participants[3].save() == before
    assert current.participants[3].answer(damaged(spare)).sender == 3


@pytest.mark.parametrize(
    ("shares", "opens"),
    [
        (b"\1" + bytes(64), True),
        (bytes(65), False),
        (b"\1" + bytes(63), False),
        (b"\1" + bytes(65), False),
        (b"", False),
    ],
)
def test_what_opens_is_an_index_and_two_shares(shares: bytes, opens: bool) -> None:
    """A neighbour may seal whatever it likes."""
    key, nonce, sum_id = bytes(32), bytes(12), bytes(16)
    sealed = AESGCM(key).encrypt(nonce, shares, sum_id + struct.pack(">BII", 1, 7, 3))
    found = participant._open(key, nonce + sealed, sum_id, sender=7, us=3)
    assert found == (shares if opens else None)


def test_a_ciphertext_opens_for_its_own_sum_sender_and_recipient_only() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.MASKED_INPUT)
    task = current.aggregator.task_for(0)
    assert isinstance(task, MaskInput)
    other_recipient = current.aggregator.task_for(1)
    swapped = (task.ciphertexts[1], task.ciphertexts[0], *task.ciphertexts[2:])
    moved = (*other_recipient.ciphertexts[:-1], task.ciphertexts[-1])

    def opened(ciphertexts: tuple[bytes, ...]) -> set[int]:
        copy = type(current.participants[0]).restore(current.participants[0].save())
        copy.answer(replace(task, ciphertexts=ciphertexts))
        return set(msgspec.msgpack.decode(copy.save(), strict=False)["shares"])

    assert opened(task.ciphertexts) == set(task.senders)
    assert opened(swapped) == set(task.senders[2:])
    with pytest.raises(TooManyDropoutsError):
        opened(moved)
    foreign = make_sum(PARAMETERS)
    foreign.until(Round.MASKED_INPUT)
    with pytest.raises(TooManyDropoutsError):
        opened(foreign.aggregator.task_for(0).ciphertexts)


# ----------------------------------------------------------------------------- wrong shares


def shares_in(answer: Unmasked) -> list[bytes]:
    size = REVEALED_SHARE_BYTES
    return [answer.shares[at : at + size] for at in range(0, len(answer.shares), size)]


def spoilt(answer: Unmasked, change: Callable[[bytes], bytes]) -> Unmasked:
    return replace(answer, shares=b"".join(map(change, shares_in(answer))))


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "wrong value": ending,
    "beyond the prime": lambda share: share[:1] + b"\xff" * 32,
    "wrong index": lambda share: bytes([share[0] % 15 + 1]) + share[1:],
    "no share": lambda share: bytes(33),
    "index out of range": lambda share: b"\xff" + share[1:],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("liars", [1, 2])
def test_wrong_shares_are_corrected(change: Callable[[bytes], bytes], liars: int) -> None:
    current = make_sum(PARAMETERS)
    assert (PHONES - 2 - PARAMETERS.threshold) // 2 >= liars
    current.until(Round.MASKED_INPUT)
    present = [phone for phone in EVERYONE if phone != 7]  # whose lock must be rebuilt too
    current.go_on(present)
    current.unmask(lambda phone, a: spoilt(a, change) if phone < liars else a)
    assert np.array_equal(current.aggregator.result(), current.expected(present))


def test_wrong_shares_are_corrected_in_a_sparse_graph() -> None:
    parameters = choose(40, (4,), 50, 0.1, 0.0, neighbours=20, statistical_security=10)
    assert parameters.degree < 39
    current = make_sum(parameters)
    current.until(Round.MASKED_INPUT)
    present = [phone for phone in range(40) if phone != 7]
    current.go_on(present)
    liar = current.aggregator.task_for(0).survivors[3]
    current.unmask(lambda phone, a: spoilt(a, ending) if phone == liar else a)
    assert np.array_equal(current.aggregator.result(), current.expected(present))


def decodings(current: Sum, spoil: Callable[[int, Unmasked], Unmasked]) -> int:
    """How often the server decodes while it closes the last round."""
    with mock.patch.object(decoding, "_nearest", wraps=decoding._nearest) as nearest:
        current.unmask(spoil)
    return nearest.call_count


def test_a_liar_costs_one_decoding_and_not_one_for_every_neighbour() -> None:
    liars = (0, 9)
    current = make_sum(PARAMETERS)
    current.until(Round.UNMASK)
    run = decodings(current, lambda phone, a: spoilt(a, ending) if phone in liars else a)
    assert run <= 3  # of fifteen neighbours each; 0 is an owner that 9 lies about, too
    assert np.array_equal(current.aggregator.result(), current.expected(EVERYONE))


def test_an_owner_that_dealt_wrong_shares_cannot_silence_honest_holders() -> None:
    """What it dealt is not its seed's: it looks as if those who hold it had lied."""
    current = make_sum(PARAMETERS)
    current.until(Round.SHARE_KEYS)
    dealers, split = EVERYONE[:4], shamir.split

    def unfair(secrets: list[bytes], threshold: int, count: int) -> np.ndarray:
        shares = split(secrets, threshold, count).copy()
        shares[:, phone + 3, -1] ^= 1  # the share of phone + 4
        return shares

    for phone in EVERYONE:
        with mock.patch.object(shamir, "split", unfair if phone in dealers else split):
            current.collect([phone])
    current.close()
    current.go_on(EVERYONE)
    # Without the four that were framed, too few shares of the others' secrets are left.
    present = EVERYONE[:-4]
    assert len(present) - 1 - len(dealers) < PARAMETERS.threshold
    current.go_on(present)
    assert np.array_equal(current.aggregator.result(), current.expected(EVERYONE))


def test_known_liars_shares_are_left_out_where_just_enough_others_are_there() -> None:
    """Found out by lies about two seeds, they may then lie about all of them together."""
    current = make_sum(PARAMETERS)
    current.until(Round.UNMASK)
    spare = PHONES - 1 - PARAMETERS.threshold
    liars = EVERYONE[-spare:]
    half = spare // 2
    assert spare % 2 == 0
    lies = {0: liars[:half], 1: liars[half:], 2: liars}

    def spoil(phone: int, answer: Unmasked) -> Unmasked:
        owners = current.aggregator.task_for(phone).survivors
        shares = zip(owners, shares_in(answer), strict=True)
        told = (ending(share) if phone in lies.get(of, ()) else share for of, share in shares)
        return replace(answer, shares=b"".join(told))

    current.unmask(spoil)
    assert np.array_equal(current.aggregator.result(), current.expected(EVERYONE))


def test_too_many_wrong_shares_open_nothing() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.UNMASK)
    wrong = (PHONES - 1 - PARAMETERS.threshold) // 2 + 2
    with pytest.raises(UnrecoverableSecretError):
        current.unmask(lambda phone, a: spoilt(a, CHANGES["wrong value"]) if phone < wrong else a)
    assert current.aggregator.round is Round.FAILED
    with pytest.raises(WrongStateError):
        current.aggregator.result()
    assert not any(msgspec.msgpack.decode(current.aggregator.save())["total"])


def test_a_seed_that_breaks_its_commitment_opens_nothing() -> None:
    current = make_sum(PARAMETERS)
    current.until(Round.SHARE_KEYS)
    for phone in EVERYONE:
        answer = current.answer(phone)
        if phone == 5:
            answer = replace(answer, commitment=ending(answer.commitment))
        current.aggregator.accept(phone, answer)
    current.close()
    current.go_on(EVERYONE)
    current.collect(EVERYONE)
    with pytest.raises(UnrecoverableSecretError, match="seed of phone 5"):
        current.close()
    assert current.aggregator.round is Round.FAILED
    with pytest.raises(WrongStateError):
        current.aggregator.result()


# ------------------------------------------------------------------------ a server that lies


@pytest.fixture
def masked() -> tuple[Sum, Unmask]:
    current = make_sum(PARAMETERS)
    current.until(Round.MASKED_INPUT)
    current.go_on(phone for phone in EVERYONE if phone not in (6, 11))
    task = current.aggregator.task_for(0)
    assert isinstance(task, Unmask)
    assert task.dropped == (6, 11)
    return current, task


def test_a_phone_refuses_lists_that_contradict_what_it_knows(masked: tuple[Sum, Unmask]) -> None:
    current, task = masked
    participant = current.participants[0]
    before = participant.save()
    survivors, dropped = task.survivors, task.dropped
    few = survivors[: PARAMETERS.threshold - 1]
    rest = tuple(sorted({*dropped, *survivors} - {*few}))
    cases: list[tuple[Unmask, type[RemoteError], str]] = [
        (replace(task, survivors=tuple(sorted((*survivors, 6)))), RefusedError, "both"),
        (replace(task, survivors=survivors[:-1]), RefusedError, "neither"),
        (replace(task, dropped=()), RefusedError, "neither"),
        (replace(task, survivors=(*survivors, 4000)), RefusedError, "stranger"),
        (replace(task, survivors=(0, *survivors)), RefusedError, "stranger"),
        (replace(task, survivors=survivors[::-1]), RefusedError, "ascending"),
        (replace(task, dropped=(6, 4000)), RefusedError, "stranger"),
        (replace(task, dropped=(6, 6)), RefusedError, "ascending"),
        (replace(task, dropped=(11, 6)), RefusedError, "ascending"),
        (replace(task, survivors=(survivors[0], *survivors)), RefusedError, "ascending"),
        (replace(task, survivors=few, dropped=rest), TooManyDropoutsError, "needed"),
        (replace(task, sum_id=bytes(16)), UnexpectedMessageError, "another sum"),
    ]
    for wrong, error, words in cases:
        with pytest.raises(error, match=words):
            participant.answer(wrong)
        assert participant.save() == before
    participant.answer(task)


def test_a_second_list_is_refused_and_no_neighbour_is_opened_twice(
    masked: tuple[Sum, Unmask],
) -> None:
    current, task = masked
    participant = current.participants[0]
    held = msgspec.msgpack.decode(participant.save(), strict=False)["shares"]
    answer = participant.answer(task)
    listed = task.survivors + task.dropped
    for them, share in zip(listed, shares_in(answer), strict=True):
        seed_share, key_share = held[them][1:33], held[them][33:]
        assert share[0] == held[them][0]
        assert share[1:] == (seed_share if them in task.survivors else key_share)
        hidden = key_share if them in task.survivors else seed_share
        assert hidden not in answer.shares
    moved = replace(task, survivors=task.survivors[1:], dropped=(task.survivors[0], *task.dropped))
    for again in (task, moved):
        with pytest.raises(UnexpectedMessageError, match="once"):
            participant.answer(again)


def test_whatever_a_server_asks_it_never_sees_both_shares_of_a_neighbour() -> None:
    """Random lists, repeated, with the phone killed and restored in between."""
    chance = random.Random(11)
    current = make_sum(PARAMETERS)
    current.until(Round.UNMASK)
    answered = 0
    for phone in EVERYONE:
        participant = current.participants[phone]
        held = msgspec.msgpack.decode(participant.save(), strict=False)["shares"]
        assert len(held) == PHONES - 1
        sent = b""
        for _ in range(30):
            marks = {them: chance.choice("ssssssdx") for them in range(PHONES)}
            lists = (tuple(t for t in EVERYONE if marks[t] == mark) for mark in "sd")
            if chance.random() < 0.5:  # at least a list that could be true
                lists = (tuple(t for t in held if (marks[t] == "s") is s) for s in (True, False))
            survivors, dropped = lists
            asked = Unmask(sum_id=current.aggregator.sum_id, survivors=survivors, dropped=dropped)
            try:
                sent += participant.answer(asked).shares
                answered += 1
            except RemoteError:
                participant = type(participant).restore(participant.save())
        for shares in held.values():
            assert not (shares[1:33] in sent and shares[33:] in sent)
    assert answered == PHONES


def test_tasks_out_of_turn_are_refused() -> None:
    current = make_sum(PARAMETERS)
    tasks = []
    for _ in ROUNDS:
        tasks.append(current.aggregator.task_for(0))
        current.go_on(EVERYONE)
    for task in tasks:
        with pytest.raises(UnexpectedMessageError):
            current.participants[0].answer(task)


def test_phones_that_are_out_stay_out() -> None:
    current = make_sum(PARAMETERS)
    current.collect(phone for phone in EVERYONE if phone != 2)
    late = current.answer(2)
    current.close()
    with pytest.raises(UnexpectedMessageError, match="belongs to the round"):
        current.aggregator.accept(2, late)
    assert current.aggregator.task_for(2) is None
    stranger = replace(current.answers[Round.ADVERTISE_KEYS][3], sender=2)
    with pytest.raises(UnexpectedMessageError):
        current.aggregator.accept(2, stranger)
    borrowed = replace(current.answer(3), sender=2)
    with pytest.raises(UnexpectedMessageError, match="no longer"):
        current.aggregator.accept(2, borrowed)
    with pytest.raises(UnexpectedMessageError, match="in the name of"):
        current.aggregator.accept(3, borrowed)
