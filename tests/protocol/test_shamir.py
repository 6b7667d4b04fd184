from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sslib import shamir as sslib
from support.examples import examples
from support.refusals import refused
from support.textbook_shamir import SECRETS, lagrange, shares_of

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.secure_sum import shamir
from earshot_protocol.secure_sum.shamir import PRIME

MARK = b"*"
"""sslib puts this byte before every secret."""


def coefficients(points: dict[int, int]) -> list[int]:
    """Of the polynomial through these points, constant first."""
    total = [0] * len(points)
    for i, y in points.items():
        basis = [y]
        for j in points.keys() - {i}:
            scale = pow(i - j, -1, PRIME)
            shifted = zip([0, *basis], [*basis, 0], strict=True)
            basis = [(up - j * down) * scale % PRIME for up, down in shifted]
        total = [(a + b) % PRIME for a, b in zip(total, basis, strict=True)]
    return total


@st.composite
def sharings(draw: st.DrawFn) -> tuple[bytes, int, int, list[int]]:
    count = draw(st.integers(1, 40))
    threshold = draw(st.integers(1, count))
    size = draw(st.integers(threshold, count))
    points = draw(st.permutations(range(1, count + 1)))[:size]
    return draw(SECRETS), threshold, count, points


def test_the_prime_is_the_largest_below_2_to_the_256() -> None:
    def is_prime(number: int) -> bool:
        chance = random.Random(1)
        odd, twos = number - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        for _ in range(40):
            x = pow(chance.randrange(2, number - 1), odd, number)
            if x in (1, number - 1):
                continue
            if not any((x := x * x % number) == number - 1 for _ in range(twos - 1)):
                return False
        return True

    assert is_prime(PRIME)
    assert not any(is_prime(number) for number in range(PRIME + 2, 2**256, 2))


@settings(max_examples=examples(60))
@given(sharing=sharings())
def test_any_threshold_of_shares_gives_the_secret_to_us_to_sslib_and_to_the_textbook(
    sharing: tuple[bytes, int, int, list[int]],
) -> None:
    secret, threshold, count, points = sharing
    shares = shares_of(secret, threshold, count)
    chosen = {point: shares[point] for point in points}
    number = int.from_bytes(secret)
    assert shamir.recover(chosen, count) == number
    assert lagrange(chosen, 0) == number
    assert sslib.shamir.lagrange_interpolation(0, list(chosen.items()), PRIME) == number
    # All shares lie on one polynomial of the right degree.
    few = dict(itertools.islice(shares.items(), threshold))
    assert all(lagrange(few, x) == y for x, y in shares.items())


@settings(max_examples=examples(30))
@given(secret=st.binary(min_size=1, max_size=30), data=st.data())
def test_we_recover_what_sslib_shared(secret: bytes, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 25))
    threshold = data.draw(st.integers(1, count))
    theirs = sslib.split_secret(secret, threshold, count, prime_mod=PRIME)
    chosen = data.draw(st.permutations(theirs["shares"]))[:threshold]
    shares = {x: int.from_bytes(y) for x, y in chosen}
    assert shamir.recover(shares, count) == int.from_bytes(MARK + secret)


@settings(max_examples=examples(40))
@given(secret=SECRETS, other=SECRETS, threshold=st.integers(2, 12), data=st.data())
def test_one_share_fewer_fits_every_secret(
    secret: bytes, other: bytes, threshold: int, data: st.DataObject
) -> None:
    """For any other secret there is one draw of the coefficients that gives the same shares.

    So, the draw being uniform, t − 1 shares are as likely under one secret as under another.
    """
    shares = shares_of(secret, threshold, threshold + 3)
    points = data.draw(st.permutations(sorted(shares)))[: threshold - 1]
    few = {point: shares[point] for point in points}
    constant, *drawn = coefficients(few | {0: int.from_bytes(other)})
    assert constant == int.from_bytes(other)
    random = b"".join(number.to_bytes(32, "little") for number in drawn)

    def draw(size: int) -> bytes:
        assert size == len(random)
        return random

    with mock.patch.object(shamir, "os", SimpleNamespace(urandom=draw)):
        forged = shares_of(other, threshold, threshold + 3)
    assert {point: forged[point] for point in points} == few
    assert (forged == shares) == (secret == other)


def test_coefficients_are_fresh_and_spread_over_the_whole_field() -> None:
    secret = bytes(32)
    shares = [shares_of(secret, 2, 3)[1] for _ in range(400)]
    assert len(set(shares)) == 400
    # f(1) = c is uniform: its top byte takes many values, and both halves of the field are hit.
    assert len({share >> 248 for share in shares}) > 150
    assert 120 < sum(share > PRIME // 2 for share in shares) < 280


@pytest.mark.parametrize("secret", [0, 1, PRIME - 1, 2**255])
@pytest.mark.parametrize(("threshold", "count"), [(1, 1), (1, 254), (254, 254), (128, 254)])
def test_extremes(secret: int, threshold: int, count: int) -> None:
    shares = shares_of(secret.to_bytes(32), threshold, count)
    assert shamir.recover(shares, count) == secret
    if threshold == 1:
        assert set(shares.values()) == {secret}


def test_several_secrets_are_shared_independently() -> None:
    secrets = [bytes([i]) * 32 for i in range(5)]
    shares = shamir.split(secrets, 3, 7)
    assert shares.shape == (5, 7, 32)
    for secret, own in zip(secrets, shares, strict=True):
        points = {x: int.from_bytes(own[x - 1].tobytes()) for x in (2, 5, 7)}
        assert shamir.recover(points, 7) == int.from_bytes(secret)


test_what_cannot_be_shared_or_recovered_is_refused = refused(
    InvalidInputError,
    *[
        (None, shamir.split, [secret], 2, 3)
        for secret in (bytes(31), bytes(33), PRIME.to_bytes(32), b"\xff" * 32)
    ],
    (None, shamir.split, [bytes(32)], 0, 3),
    (None, shamir.split, [bytes(32)], 4, 3),
    (None, shamir.split, [bytes(32)], 2, 255),
    *[("between 1 and 5", shamir.recover, {1: 1, point: 1}, 5) for point in (0, -1, 6)],
)


@settings(max_examples=examples(60))
@given(data=st.data(), count=st.integers(1, shamir.LARGEST_COUNT))
def test_many_secrets_are_rebuilt_at_once_as_one_by_one(data: st.DataObject, count: int) -> None:
    """Whatever is left out, and whatever the shares: also of no sharing, and beyond the prime."""
    most_absent = data.draw(st.sampled_from([0, 1, 3, count - 1]).filter(lambda a: a < count))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shares = random.integers(0, 256, (5, count, 32), dtype=np.uint8)
    shares[0], shares[1, : count // 2] = 255, 0
    present = np.ones((5, count), dtype=np.bool_)
    for row in present:
        row[random.permutation(count)[: random.integers(0, most_absent + 1)]] = False
    given = [
        {at + 1: int.from_bytes(own[at].tobytes()) for at in np.flatnonzero(there).tolist()}
        for own, there in zip(shares, present, strict=True)
    ]
    rebuilt = [int.from_bytes(secret) for secret in shamir.recover_many(shares, present)]
    assert rebuilt == [shamir.recover(each, count) for each in given]
    if count <= 12:
        assert rebuilt == [lagrange(each, 0) for each in given]


def test_of_no_sharings_nothing_is_rebuilt() -> None:
    assert (
        list(shamir.recover_many(np.zeros((0, 9, 32), np.uint8), np.ones((0, 9), np.bool_))) == []
    )
