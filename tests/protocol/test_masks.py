from __future__ import annotations

import hmac
import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st
from support.driven_sum import LOW_ORDER_KEYS

from earshot_protocol.secure_sum import masks
from earshot_protocol.secure_sum.messages import TAG_BYTES

WORDS = [np.dtype("<u2"), np.dtype("<u4"), np.dtype("<u8")]
SEEDS = st.binary(min_size=32, max_size=32)


def counter_blocks(seed: bytes, size: int) -> bytes:
    """AES-256 of the counters 0, 1, 2, …: what CTR mode is, from the block cipher alone."""
    encryptor = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor()  # noqa: S305
    return b"".join(encryptor.update(counter.to_bytes(16)) for counter in range(-(-size // 16)))[
        :size
    ]


@pytest.mark.parametrize("word", WORDS)
@given(seed=SEEDS, length=st.integers(1, 300))
def test_a_mask_is_the_aes_256_ctr_stream_of_its_whole_seed(
    word: np.dtype[np.unsignedinteger], seed: bytes, length: int
) -> None:
    mask = masks.expand_sum([seed], length, word)
    assert mask.tobytes() == counter_blocks(seed, length * word.itemsize)


@settings(max_examples=60)
@given(seed=SEEDS, bit=st.integers(0, 255))
def test_every_bit_of_the_seed_counts(seed: bytes, bit: int) -> None:
    """A seed folded into 32 bits, as a widely used peer does, would fail for most bits."""
    number = int.from_bytes(seed) ^ 1 << bit
    first, second = (masks.expand_sum([s], 64, WORDS[1]) for s in (seed, number.to_bytes(32)))
    assert (first == second).sum() <= 2


def test_seeds_that_agree_on_any_32_bits_give_unrelated_masks() -> None:
    for kept in range(0, 256, 32):
        window = (2**32 - 1) << kept
        base = int.from_bytes(os.urandom(32))
        seen = {
            masks.expand_sum(
                [(base & window | int.from_bytes(os.urandom(32)) & ~window).to_bytes(32)],
                4,
                WORDS[2],
            ).tobytes()
            for _ in range(50)
        }
        assert len(seen) == 50


def test_masks_reach_every_value_the_topmost_included() -> None:
    """A mask drawn from a range one too small never takes the top value."""
    draws = masks.expand_sum([bytes(range(32))], 2**21, WORDS[0])
    counts = np.bincount(draws, minlength=2**16)
    assert counts.min() > 0
    assert counts[-1] > 0
    # 2^16 cells of 32 expected draws each: the statistic has mean 65535 and deviation 362.
    statistic = np.square(counts - 32.0).sum() / 32
    assert abs(statistic - 65_535) < 10 * 362


@given(seeds=st.lists(SEEDS, max_size=6), length=st.integers(1, 50), word=st.sampled_from(WORDS))
def test_a_sum_of_masks_wraps_with_its_word(
    seeds: list[bytes], length: int, word: np.dtype[np.unsignedinteger]
) -> None:
    total = masks.expand_sum(seeds, length, word)
    modulus = 2 ** (8 * word.itemsize)
    streams = [counter_blocks(seed, length * word.itemsize) for seed in seeds]
    rows = [np.frombuffer(stream, word).tolist() for stream in streams]
    expected = [sum(column) % modulus for column in zip(*rows, strict=True)] or [0] * length
    assert total.tolist() == expected


def test_two_phones_agree_and_nobody_else_does() -> None:
    alice, bob, eve = (X25519PrivateKey.generate() for _ in range(3))
    to_alice, to_bob = (key.public_key().public_bytes_raw() for key in (alice, bob))
    salt = os.urandom(32)
    keys = masks.agree(alice, to_bob, salt, 3, 8)
    assert list(map(len, keys)) == [32, 32]
    assert keys == masks.agree(bob, to_alice, salt, 8, 3)
    others = [
        masks.agree(eve, to_bob, salt, 3, 8),
        masks.agree(alice, to_bob, os.urandom(32), 3, 8),
        masks.agree(alice, to_bob, salt, 3, 9),
        masks.agree(alice, to_bob, salt, 2, 8),
    ]
    assert len({key for pair in (keys, *others) for key in pair}) == 10


@given(count=st.integers(0, 9), phone=st.integers(0, 2**32 - 1))
def test_a_list_of_masks_is_opened_by_its_lock_alone(count: int, phone: int) -> None:
    lock, salt = os.urandom(32), os.urandom(32)
    seeds = tuple(os.urandom(32) for _ in range(count))
    sealed = masks.seal_list(lock, seeds, salt, phone)
    assert len(sealed) == 32 * count + TAG_BYTES
    assert masks.open_list(lock, sealed, salt, phone) == seeds
    assert not any(seed in sealed for seed in seeds)
    bound = b"earshot secure sum: list of masks" + salt + phone.to_bytes(4)
    assert AESGCM(lock).decrypt(bytes(12), sealed, bound) == b"".join(seeds)
    for other in (
        masks.open_list(os.urandom(32), sealed, salt, phone),
        masks.open_list(lock, sealed, os.urandom(32), phone),
        masks.open_list(lock, sealed, salt, phone ^ 1),
        masks.open_list(lock, sealed[:-1] + bytes([sealed[-1] ^ 1]), salt, phone),
    ):
        assert other is None


def test_keys_of_low_order_are_not_agreed_with() -> None:
    for public in LOW_ORDER_KEYS:
        with pytest.raises(ValueError, match="shared key"):
            masks.agree(X25519PrivateKey.generate(), public, bytes(32), 0, 1)


def test_the_agreed_keys_are_hkdf_sha256_as_rfc_5869_writes_it() -> None:
    alice, bob = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    salt = os.urandom(32)
    info = b"earshot secure sum: keys of a pair" + (3).to_bytes(4) + (70_000).to_bytes(4)
    extracted = hmac.digest(salt, alice.exchange(bob.public_key()), "sha256")
    first = hmac.digest(extracted, info + b"\x01", "sha256")
    second = hmac.digest(extracted, first + info + b"\x02", "sha256")
    public = bob.public_key().public_bytes_raw()
    assert masks.agree(alice, public, salt, 70_000, 3) == (first, second)


@given(seed=SEEDS, other=SEEDS)
def test_a_commitment_binds_seed_salt_and_phone(seed: bytes, other: bytes) -> None:
    shown = masks.commitment(seed, bytes(32), 5)
    assert len(shown) == 32
    assert shown != masks.commitment(seed, b"\x01" * 32, 5)
    assert shown != masks.commitment(seed, bytes(32), 6)
    assert (shown == masks.commitment(other, bytes(32), 5)) == (seed == other)


@pytest.mark.parametrize(("bits", "size"), [(2, 2), (16, 2), (17, 4), (32, 4), (33, 8), (64, 8)])
def test_the_word_is_the_smallest_that_holds_the_modulus(bits: int, size: int) -> None:
    assert masks.word_type(bits).itemsize == size
