"""A phone's side of one secure sum: four tasks in, four answers out, no I/O.

`_ROUNDS` states which task is answered in which round, and how; each answer moves one round on. A
task that does not fit the round, the sum or the neighbourhood raises a `RemoteError` and changes
nothing. Between tasks the state can be saved to bytes, which hold secrets, and restored.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from earshot_protocol.errors import (
    InvalidInputError,
    RefusedError,
    TooManyDropoutsError,
    UnexpectedMessageError,
)
from earshot_protocol.secure_sum import encoding, masks, shamir
from earshot_protocol.secure_sum.graph import check_neighbourhood
from earshot_protocol.secure_sum.messages import (
    REVEALED_SHARE_BYTES,
    AdvertisedKeys,
    AdvertiseKeys,
    MaskedInput,
    MaskInput,
    SharedKeys,
    ShareKeys,
    SumAnswer,
    SumTask,
    Unmask,
    Unmasked,
)
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.rounds import NEXT, Round

_NONCE_BYTES = 12
_SHARES_BYTES = 1 + 2 * shamir.SECRET_BYTES
_ROUTE = struct.Struct(">BII")  # round, sender, recipient


class _State(msgspec.Struct):
    """Everything that a participant remembers between tasks."""

    round: Round
    """Round whose task is answered next."""
    index: int
    sum_id: bytes
    parameters: SumParameters
    words: bytes
    salt: bytes
    public_key: bytes = b""
    private: bytes = b""
    seed: bytes = b""
    neighbours: tuple[int, ...] = ()
    seals: tuple[bytes, ...] = ()
    """Key under which shares travel, for each neighbour."""
    masks: tuple[bytes, ...] = ()
    """Seed of the shared mask, for each neighbour."""
    alive: tuple[int, ...] = ()
    """A1 ∩ neighbours, as sent in round 2."""
    traces: tuple[bytes, ...] = ()
    """Trace of the mask shared with each phone in `alive`: all that is kept of the mask."""
    shares: dict[int, bytes] = msgspec.field(default_factory=dict)
    """Neighbour → share index, share of its seed, share of its lock."""


class Participant:
    """One phone in one secure sum (Bell et al. 2020, Algorithm 2, semi-honest server).

    Args:
        task: Opening task of the sum, which the phone has agreed to.
        values: Private input, an array of the sum's shape.
        told: Description of the sum, the same bytes for every phone. All keys are bound to it, so
            that phones with different descriptions cannot open each other's messages.

    Raises:
        InvalidParametersError: No sum should run under the parameters.
        RefusedError: The index lies outside the sum.
        InvalidInputError: The values have the wrong shape, type or range.
    """

    def __init__(self, task: AdvertiseKeys, values: npt.ArrayLike, told: bytes = b"") -> None:
        parameters = task.parameters
        parameters.check()
        if task.index >= parameters.phones:
            raise RefusedError(f"phone {task.index} in a sum of {parameters.phones} phones")
        words = encoding.encode(values, parameters)
        self._state = _State(
            round=Round.ADVERTISE_KEYS,
            index=task.index,
            sum_id=task.sum_id,
            parameters=parameters,
            words=words.tobytes(),
            salt=masks.salt(task, told),
        )

    @property
    def round(self) -> Round:
        """Round whose task this phone answers next."""
        return self._state.round

    @property
    def done(self) -> bool:
        """Whether the participant has answered its last task."""
        return self.round is Round.DONE

    def save(self) -> bytes:
        """Return the state, secrets included: seal it before it touches a disk."""
        return msgspec.msgpack.encode(self._state)

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """Return the participant that `save` wrote.

        Raises:
            InvalidInputError: The bytes are not a saved participant.
        """
        participant = cls.__new__(cls)
        try:
            participant._state = msgspec.msgpack.decode(saved, type=_State)
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"not a saved participant: {error}") from error
        return participant

    def answer(self, task: SumTask) -> SumAnswer:
        """Do what the task asks.

        Raises:
            UnexpectedMessageError: The task belongs to another sum or round.
            RefusedError: The task contradicts what this phone knows, or asks too much.
            TooManyDropoutsError: Fewer neighbours remain than the threshold.
        """
        state = self._state
        if task.sum_id != state.sum_id:
            raise UnexpectedMessageError("a task of another sum")
        current, act = _ROUNDS[type(task)]
        if self.round is not current:
            raise UnexpectedMessageError(
                f"{type(task).__name__} is answered once, in the round '{current}'; this phone is "
                f"at '{self.round}'"
            )
        answer = act(state, task)
        state.round = NEXT[current]
        return answer


def _advertise_keys(state: _State, task: AdvertiseKeys) -> AdvertisedKeys:
    if (task.index, task.parameters) != (state.index, state.parameters):
        raise RefusedError("the sum's index or parameters differ from those agreed to")
    private = X25519PrivateKey.generate()
    state.private = private.private_bytes_raw()
    state.public_key = private.public_key().public_bytes_raw()
    return AdvertisedKeys(sum_id=state.sum_id, sender=state.index, public_key=state.public_key)


def _share_keys(state: _State, task: ShareKeys) -> SharedKeys:
    us, sum_id, neighbours = state.index, state.sum_id, task.neighbours
    public_keys = _split_keys(task.public_keys)
    check_neighbourhood(us, state.public_key, neighbours, public_keys, state.parameters)
    private = X25519PrivateKey.from_private_bytes(state.private)
    agreed = [
        masks.agree(private, key, state.salt, us, them)
        for them, key in zip(neighbours, public_keys, strict=True)
    ]
    seed, lock = _fresh_secret(), _fresh_secret()
    count = len(neighbours)
    shares = shamir.split((seed, lock), state.parameters.threshold, count)
    plain = np.empty((count, _SHARES_BYTES), dtype=np.uint8)
    plain[:, 0] = np.arange(1, count + 1)
    plain[:, 1:] = shares.transpose(1, 0, 2).reshape(count, -1)
    plaintexts, nonces = plain.tobytes(), os.urandom(_NONCE_BYTES * count)
    ciphertexts = []
    for i, (them, keys) in enumerate(zip(neighbours, agreed, strict=True)):
        nonce = nonces[_NONCE_BYTES * i : _NONCE_BYTES * (i + 1)]
        plaintext = plaintexts[_SHARES_BYTES * i : _SHARES_BYTES * (i + 1)]
        bound = sum_id + _ROUTE.pack(1, us, them)
        ciphertexts.append(nonce + AESGCM(keys.seal).encrypt(nonce, plaintext, bound))
    state.seed, state.neighbours, state.private = seed, neighbours, b""
    state.seals = tuple(keys.seal for keys in agreed)
    state.masks = tuple(keys.mask for keys in agreed)
    return SharedKeys(
        sum_id=sum_id,
        sender=us,
        ciphertexts=tuple(ciphertexts),
        masks=masks.seal_list(lock, state.masks, state.salt, us),
        commitment=masks.commitment(seed, state.salt, us),
    )


def _mask_input(state: _State, task: MaskInput) -> MaskedInput:
    us, sum_id, parameters = state.index, state.sum_id, state.parameters
    _check_listed(task.senders, state.neighbours)
    if len(task.ciphertexts) != len(task.senders):
        raise RefusedError(f"{len(task.ciphertexts)} ciphertexts from {len(task.senders)} phones")
    places = {them: i for i, them in enumerate(state.neighbours)}
    shares = {}
    for them, ciphertext in zip(task.senders, task.ciphertexts, strict=True):
        plaintext = _open(state.seals[places[them]], ciphertext, sum_id, them, us)
        # If a ciphertext does not open, its sender's shares count as gone. The mask is still added:
        # the neighbour adds the other half, and the sum would be spoilt without ours.
        if plaintext is not None:
            shares[them] = plaintext
    if len(shares) < parameters.threshold:
        raise TooManyDropoutsError(
            f"shares of {len(shares)} neighbours arrived; {parameters.threshold} are needed"
        )
    added: list[bytes] = [state.seed]
    removed: list[bytes] = []
    for them in task.senders:
        (added if them > us else removed).append(state.masks[places[them]])
    word = masks.word_type(parameters.modulus_bits)
    masked = np.frombuffer(state.words, dtype=word) + masks.expand_sum(
        added, parameters.length, word
    )
    masked -= masks.expand_sum(removed, parameters.length, word)
    state.shares, state.alive = shares, task.senders
    state.traces = tuple(masks.trace(state.masks[places[them]]) for them in task.senders)
    state.words = state.seed = b""
    state.seals = state.masks = ()
    vector = encoding.pack(masked, parameters.modulus_bits)
    return MaskedInput(sum_id=sum_id, sender=us, vector=vector)


def _unmask(state: _State, task: Unmask) -> Unmasked:
    survivors, dropped = task.survivors, task.dropped
    if not set(survivors).isdisjoint(dropped):
        raise RefusedError("a neighbour is listed both as a survivor and as dropped")
    _check_listed(survivors, state.alive)
    _check_listed(dropped, state.alive)
    if len(survivors) + len(dropped) != len(state.alive):
        raise RefusedError("a neighbour is listed neither as a survivor nor as dropped")
    if len(survivors) < state.parameters.threshold:
        raise TooManyDropoutsError(
            f"{len(survivors)} neighbours survived; {state.parameters.threshold} are needed"
        )
    size = shamir.SECRET_BYTES
    none = bytes(REVEALED_SHARE_BYTES)
    revealed = []
    for them in survivors:
        shares = state.shares.get(them)
        revealed.append(shares[: 1 + size] if shares else none)
    for them in dropped:
        shares = state.shares.get(them)
        revealed.append(shares[:1] + shares[1 + size :] if shares else none)
    traces = dict(zip(state.alive, state.traces, strict=True))
    state.shares, state.traces = {}, ()
    return Unmasked(
        sum_id=state.sum_id,
        sender=state.index,
        shares=b"".join(revealed),
        traces=b"".join(traces[them] for them in dropped),
    )


_ROUNDS: dict[type, tuple[Round, Callable[[_State, Any], SumAnswer]]] = {
    AdvertiseKeys: (Round.ADVERTISE_KEYS, _advertise_keys),
    ShareKeys: (Round.SHARE_KEYS, _share_keys),
    MaskInput: (Round.MASKED_INPUT, _mask_input),
    Unmask: (Round.UNMASK, _unmask),
}
"""Task → the round in which it is answered, and the function that answers it."""


def _split_keys(keys: bytes) -> tuple[bytes, ...]:
    return tuple(keys[at : at + 32] for at in range(0, len(keys), 32))


def _fresh_secret() -> bytes:
    """Return 32 bytes from the operating system, below the sharing's prime (all but 2^-248 are)."""
    while int.from_bytes(secret := os.urandom(shamir.SECRET_BYTES)) >= shamir.PRIME:
        pass
    return secret


def _check_listed(phones: tuple[int, ...], known: tuple[int, ...]) -> None:
    if list(phones) != sorted(set(phones)):
        raise RefusedError("neighbours must be listed once each, in ascending order")
    if not set(phones).issubset(known):
        raise RefusedError("a stranger is listed among the neighbours")


def _open(key: bytes, ciphertext: bytes, sum_id: bytes, sender: int, us: int) -> bytes | None:
    """Return share index and two shares, or None if this is not what the sender sealed."""
    nonce, sealed = ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:]
    try:
        plaintext = AESGCM(key).decrypt(nonce, sealed, sum_id + _ROUTE.pack(1, sender, us))
    except (InvalidTag, ValueError):
        return None
    return plaintext if len(plaintext) == _SHARES_BYTES and plaintext[0] else None
