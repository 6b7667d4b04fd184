from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.only import forget
from support.textbook_proof import PRIME

from earshot_protocol.distribution import MissingExtraError
from earshot_protocol.prio3 import field, xof

VECTOR = json.loads(Path(__file__).with_name("prio3_vectors.json").read_text("utf-8"))["xof"]
SEED, TAG, BINDER = (bytes.fromhex(VECTOR[name]) for name in ("seed", "dst", "binder"))


def test_the_draft_s_vector_is_met() -> None:
    assert xof.derive_seed(SEED, TAG, BINDER).hex() == VECTOR["derived_seed"]
    values = xof.expand([(SEED, BINDER)], TAG, VECTOR["length"])
    assert field.encode(values).hex() == VECTOR["expanded_vec_field128"]


def test_many_are_expanded_as_each_alone() -> None:
    inputs = [(bytes([number]) * 32, bytes([number])) for number in range(5)]
    together = xof.expand(inputs, TAG, 9)
    assert together.shape == (5, 9, 2)
    for pair, row in zip(inputs, together, strict=True):
        assert np.array_equal(xof.expand([pair], TAG, 9)[0], row)
    assert xof.expand([], TAG, 9).shape == (0, 9, 2)


def test_seed_tag_and_binder_do_not_run_into_one_another() -> None:
    pieces = [(b"a", b"b", b"c"), (b"ab", b"", b"c"), (b"a", b"", b"bc"), (b"", b"ab", b"c")]
    assert len({xof.derive_seed(*piece) for piece in pieces}) == 4


class Written:
    """A stream of numbers that somebody wrote down."""

    def __init__(self, numbers: list[int]) -> None:
        self.left = b"".join(number.to_bytes(16, "little") for number in numbers)

    def read(self, length: int) -> bytes:
        found, self.left = self.left[:length], self.left[length:]
        assert len(found) == length
        return found


def test_numbers_that_are_not_below_the_prime_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = {
        b"0": [1, 2, 3],
        b"1": [PRIME, 5, 2**128 - 1, PRIME + 1, 6, PRIME - 1, 8],
        b"2": [7, 8, PRIME, 9],
    }
    monkeypatch.setattr(xof, "_stream", lambda seed, tag, binder: Written(streams[seed]))
    values = xof.expand([(seed, b"") for seed in streams], b"", 3)
    expected = [[1, 2, 3], [5, 6, PRIME - 1], [7, 8, 9]]
    assert np.array_equal(values, np.stack([field.elements(row) for row in expected]))


def test_without_pycryptodomex_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    forget("Cryptodome", monkeypatch)
    with pytest.raises(MissingExtraError, match=r"pip install 'earshot-sensing\[proofs\]'"):
        xof.derive_seed(SEED, TAG, BINDER)
    with pytest.raises(MissingExtraError, match="pycryptodomex"):
        xof.expand([(SEED, BINDER)], TAG, 1)
