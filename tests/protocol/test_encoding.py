from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.driven_sum import unchecked
from support.refusals import refused

from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.masks import word_type
from earshot_protocol.secure_sum.parameters import SumParameters


def parameters(bits: int, shape: tuple[int, ...] = (7,), precision: int = 0) -> SumParameters:
    """A sum of one phone-equivalent whose modulus has just so many bits."""
    made = unchecked(
        phones=1,
        length=math.prod(shape),
        bound=2 ** (bits - 1) - 1,
        shape=shape,
        precision=precision,
    )
    assert made.modulus_bits == bits
    return made


@settings(max_examples=120)
@given(bits=st.integers(2, 64), length=st.integers(1, 70), seed=st.integers(0, 2**32 - 1))
def test_packing_keeps_the_low_bits_of_every_word_and_nothing_else(
    bits: int, length: int, seed: int
) -> None:
    of_this_sum = parameters(bits, (length,))
    word = word_type(bits)
    words = np.frombuffer(np.random.default_rng(seed).bytes(length * word.itemsize), word)
    packed = encoding.pack(words, bits)
    assert len(packed) == encoding.packed_bytes(of_this_sum) == -(-length * bits // 8)
    # One long number, low entry in the low bits.
    number = sum((int(w) % 2**bits) << (i * bits) for i, w in enumerate(words))
    assert packed == number.to_bytes(len(packed), "little")
    assert encoding.unpack(packed, of_this_sum).tolist() == [int(w) % 2**bits for w in words]


@pytest.mark.parametrize("bits", [5, 20, 33])
def test_long_vectors_pack_across_blocks(bits: int) -> None:
    of_this_sum = parameters(bits, (2 * 2**16 + 3,))
    generator = np.random.default_rng(1)
    words = generator.integers(0, 2**bits, of_this_sum.length, dtype=np.uint64)
    packed = encoding.pack(words.astype(word_type(bits)), bits)
    assert np.array_equal(encoding.unpack(packed, of_this_sum), words)


@settings(max_examples=120)
@given(bits=st.integers(2, 64), data=st.data())
def test_signed_integers_survive(bits: int, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(), (5,), (2, 3), (2, 1, 2)]))
    of_this_sum = parameters(bits, shape)
    most = of_this_sum.bound
    entries = data.draw(
        st.lists(st.integers(-most, most), min_size=math.prod(shape), max_size=math.prod(shape))
    )
    values = np.array(entries, dtype=np.int64).reshape(shape)
    words = encoding.encode(values, of_this_sum)
    decoded = encoding.decode(words, of_this_sum)
    assert decoded.dtype == np.int64
    assert decoded.shape == shape
    assert np.array_equal(decoded, values)


@settings(max_examples=80)
@given(
    precision=st.integers(1, 6),
    decimals=st.lists(st.floats(-1000, 1000), min_size=3, max_size=3),
)
def test_decimals_survive_to_the_precision(precision: int, decimals: list[float]) -> None:
    of_this_sum = parameters(40, (3,), precision)
    words = encoding.encode(np.array(decimals), of_this_sum)
    decoded = encoding.decode(words, of_this_sum)
    np.testing.assert_allclose(decoded, decimals, rtol=0, atol=0.51 * 10.0**-precision)


WHOLE = parameters(8)
TENTHS = parameters(8, (1,), precision=1)

test_what_does_not_fit_is_refused = refused(
    InvalidInputError,
    ("shape", encoding.encode, np.zeros((2, 3), np.int64), WHOLE),
    ("bound", encoding.encode, np.full(7, np.iinfo(np.int64).min), WHOLE),
    ("without precision takes integers", encoding.encode, np.zeros(7), WHOLE),
    ("bound", encoding.encode, np.array([0, 0, 0, 0, 0, 0, 128]), WHOLE),
    ("bound", encoding.encode, np.array([0, 0, 0, 0, 0, 0, -128]), WHOLE),
    ("bound", encoding.encode, np.full(7, 2**63, dtype=np.uint64), WHOLE),
    ("without precision takes integers", encoding.encode, np.full(7, True), WHOLE),
    ("without precision takes integers", encoding.encode, np.full(7, 2**70, dtype=object), WHOLE),
    ("not an array", encoding.encode, [[1], [2, 3]], WHOLE),
    *[
        ("finite or exceeds", encoding.encode, np.array([bad]), TENTHS)
        for bad in (np.nan, np.inf, -np.inf, 12.8, -12.8, 1e17, 2.0**63, 1e18, 1e308)
    ],
    *[("takes real numbers", encoding.encode, np.array([bad]), TENTHS) for bad in (1j, "1", None)],
)


@pytest.mark.parametrize("bits", [54, 55, 61, 62, 63])
def test_bounds_that_no_float_holds_are_compared_exactly(bits: int) -> None:
    whole, tenths = parameters(bits, (1,)), parameters(bits, (1,), precision=1)
    for sign in (1, -1):
        assert encoding.encode([sign * whole.bound], whole).size == 1
        with pytest.raises(InvalidInputError, match="bound"):
            encoding.encode([sign * (whole.bound + 1)], whole)
        # The float next to the bound is 2^(bits − 1), one more than it.
        with pytest.raises(InvalidInputError, match="bound"):
            encoding.encode([sign * 2.0 ** (bits - 1) / 10], tenths)


def test_the_sum_of_single_numbers_is_an_array_of_no_dimensions() -> None:
    for precision in (0, 2):
        of_this_sum = parameters(20, (), precision)
        decoded = encoding.decode(encoding.encode(-7, of_this_sum), of_this_sum)
        assert isinstance(decoded, np.ndarray)
        assert decoded == -7


@settings(max_examples=60)
@given(bits=st.integers(2, 63), length=st.integers(1, 20))
def test_bits_behind_the_last_entry_must_be_zero(bits: int, length: int) -> None:
    of_this_sum = parameters(bits, (length,))
    full = bytearray(encoding.pack(np.full(length, 2**bits - 1, word_type(bits)), bits))
    encoding.unpack(bytes(full), of_this_sum)
    for spare in range(length * bits, 8 * len(full)):
        wrong = full.copy()
        wrong[-1] |= 1 << spare % 8
        with pytest.raises(MalformedMessageError, match="behind its last entry"):
            encoding.unpack(bytes(wrong), of_this_sum)


test_a_vector_of_the_wrong_size_is_malformed = refused(
    MalformedMessageError,
    *[("18", encoding.unpack, bytes(size), parameters(20)) for size in (0, 1, 17, 19, 10_000)],
)
