"""Secrets of secure sums, audited in two real sums with recorded randomness.

A sum hides its inputs only if its masks cannot be guessed. Every secret must come from the
operating system in full, and reach the cipher in full: the masks of a 32-bit seed look like any
others. No sum may repeat a secret of an earlier one: two totals under the same masks reveal inputs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import masks, participant
from earshot_protocol.secure_sum.parameters import choose
from earshot_protocol.sum_in_process import run_sum
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.watching import replaced

KEY_BYTES = 32
PHONES, _SUMS = 12, 2
_ALL = PHONES * _SUMS
_COMMON = 0.2
"""Share of keys with the same value of a byte above which that byte is not random."""


@dataclass
class SumRandomness:
    """Randomness of sums: requests to the operating system, and the seeds of masks.

    Attributes:
        answers: Answers of the operating system, one for each request.
        private_keys: Generated private keys of X25519.
        seeds: Seeds from which phones expanded masks: alternately those that a phone added, its
            self-mask first, and those that it removed.
        locks: Keys under which phones sealed lists of seeds.
    """

    answers: list[bytes] = field(default_factory=list)
    private_keys: list[bytes] = field(default_factory=list)
    seeds: list[list[bytes]] = field(default_factory=list)
    locks: list[bytes] = field(default_factory=list)

    def add(self, other: SumRandomness) -> None:
        """Add the randomness of another sum."""
        for name, found in vars(other).items():
            getattr(self, name).extend(found)


@dataclass(frozen=True)
class Weakness:
    """Planted fault of the secrets of sums; without arguments there is none.

    Attributes:
        source: Makes the source of all random bytes, from that of the operating system.
        key: Changes keys of pairs of phones.
    """

    source: Callable[[RandomBytes], RandomBytes] = lambda system: system
    key: Callable[[bytes], bytes] = lambda key: key


SOUND = Weakness()


def audit_secrets(weakness: Weakness = SOUND) -> Iterator[Check]:
    """Run two sums of the same phones and check all of their secrets."""
    randomness, sharing_bytes = _watched_sums(weakness)
    added, removed = randomness.seeds[0::2], randomness.seeds[1::2]
    own, locks = [seeds[0] for seeds in added], randomness.locks
    pairwise = [seed for seeds in added for seed in seeds[1:]]
    pairwise += [seed for seeds in removed for seed in seeds]
    whole = {answer for answer in randomness.answers if len(answer) == KEY_BYTES}
    words = f"{_SUMS} real sums of {PHONES} phones, their randomness watched"
    for what, secrets in (("self-mask seeds", own), ("locks of lists of masks", locks)):
        asked = sum(secret in whole for secret in secrets)
        yield Check(
            what,
            f"{_ALL} times {KEY_BYTES} bytes of the operating system, all different",
            f"{asked}",
            asked == len(set(secrets)) == len(secrets) == _ALL,
            words,
            power.EXACTLY,
        )
    yield _full_keys("keys that self-masks are expanded from", own, words)
    yield _full_keys("keys that pairwise masks are expanded from", pairwise, words)
    keys = randomness.private_keys
    yield Check(
        "X25519 keys",
        f"one of each phone in each sum, {KEY_BYTES} bytes, all different",
        f"{len(set(keys))}",
        len(set(keys)) == len(keys) == _ALL and all(len(key) == KEY_BYTES for key in keys),
        words,
        power.EXACTLY,
    )
    drawn = sum(len(answer) == sharing_bytes for answer in randomness.answers)
    yield Check(
        "coefficients of secret sharing",
        f"each phone asks for {sharing_bytes} random bytes, {KEY_BYTES} a coefficient",
        f"{drawn} times",
        drawn == _ALL,
        words,
        power.EXACTLY,
    )


def _watched_sums(weakness: Weakness) -> tuple[SumRandomness, int]:
    """Return the randomness of real sums, and the number of bytes for a phone's two sharings."""
    parameters = choose(PHONES, (3,), 100, 0.0, 0.05)
    together = SumRandomness()
    for _ in range(_SUMS):
        with _watched(weakness) as randomness:
            run_sum(parameters, lambda phone: np.ones(3, dtype=np.int64))
        together.add(randomness)
    return together, 2 * KEY_BYTES * (parameters.threshold - 1)


def _full_keys(what: str, keys: list[bytes], words: str) -> Check:
    """Check that keys have their full length, and that each of their bytes varies."""
    table = np.frombuffer(b"".join(key.ljust(KEY_BYTES, b"\0")[:KEY_BYTES] for key in keys), "u1")
    distinct = np.array(sorted(set(map(bytes, table.reshape(-1, KEY_BYTES)))))
    columns = np.frombuffer(distinct.tobytes(), "u1").reshape(len(distinct), -1).T
    random = sum(bool(np.bincount(column).max() <= _COMMON * len(column)) for column in columns)
    full = all(len(key) == KEY_BYTES for key in keys)
    return Check(
        what,
        f"{KEY_BYTES} bytes, of which each takes many values",
        f"{random} such bytes in {len(distinct)} keys",
        full and random == KEY_BYTES,
        words,
        power.of_repeats(len(distinct), int(_COMMON * len(distinct))),
    )


@contextlib.contextmanager
def _watched(weakness: Weakness) -> Iterator[SumRandomness]:
    """Record the random bytes that participants request within the block."""
    randomness = SumRandomness()
    urandom, expand, seal, agree = os.urandom, masks.expand_sum, masks.seal_list, masks.agree

    def asked(size: int) -> bytes:
        randomness.answers.append(urandom(size))
        return randomness.answers[-1]

    def agreed(*given: Any) -> masks.PairKeys:
        return masks.PairKeys(*map(weakness.key, agree(*given)))

    def expanded(seeds: Any, *given: Any) -> Any:
        seeds = list(seeds)
        if len(randomness.seeds) < 2 * PHONES:  # later ones are the server's
            randomness.seeds.append(seeds)
        return expand(seeds, *given)

    def sealed(lock: bytes, *given: Any) -> bytes:
        randomness.locks.append(lock)
        return seal(lock, *given)

    class Watched(X25519PrivateKey):
        """A recorded private key."""

        @classmethod
        def generate(cls) -> X25519PrivateKey:
            """Return a new key."""
            key = X25519PrivateKey.generate()
            randomness.private_keys.append(key.private_bytes_raw())
            return key

    with (
        replaced(os, urandom=weakness.source(asked)),
        replaced(masks, expand_sum=expanded, seal_list=sealed, agree=agreed),
        replaced(participant, X25519PrivateKey=Watched),
    ):
        yield randomness
