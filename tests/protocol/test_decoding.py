from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.textbook_shamir import SECRETS, lagrange, shares_of

from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError, recover_checked
from earshot_protocol.secure_sum.shamir import PRIME


def decoded(shares: dict[int, int], threshold: int, count: int) -> bytes:
    """What the decoder proposes once plain interpolation was found wrong."""
    proposed: list[bytes] = []

    def is_right(secret: bytes) -> bool:
        proposed.append(secret)
        return len(proposed) == 2

    assert recover_checked(shares, threshold, count, is_right).secret == proposed[1]
    return proposed[1]


def nearest_constant(shares: dict[int, int], threshold: int) -> int:
    """By trying every subset: f(0) of the f that half the surplus of shares cannot refute, or 0."""
    radius = (len(shares) - threshold) // 2
    for chosen in itertools.combinations(shares.items(), threshold):
        subset = dict(chosen)
        wrong = sum(lagrange(subset, x) != y % PRIME for x, y in shares.items())
        if wrong <= radius:
            return lagrange(subset, 0)
    return 0


@settings(max_examples=80)
@given(secret=SECRETS, data=st.data())
def test_the_decoder_finds_what_trying_every_subset_finds(
    secret: bytes, data: st.DataObject
) -> None:
    """Within the radius and beyond it, where mostly there is nothing to find."""
    count = data.draw(st.integers(1, 8))
    threshold = data.draw(st.integers(1, count))
    points = data.draw(st.permutations(range(1, count + 1)))
    size = data.draw(st.integers(threshold, count))
    true = shares_of(secret, threshold, count)
    shares = {point: true[point] for point in points[:size]}
    for point in points[: data.draw(st.integers(0, size))]:
        shares[point] = data.draw(st.integers(0, 2**256 - 1))
    expected = nearest_constant(shares, threshold)
    assert int.from_bytes(decoded(shares, threshold, count)) == expected


def test_agreeing_liars_beyond_half_the_surplus_win_the_decoding_and_fail_the_check() -> None:
    """Seven of nine shares lie on another polynomial: only the check against a commitment saves."""
    secret, other = bytes(range(32)), bytes(range(1, 33))
    honest, forged = shares_of(secret, 3, 9), shares_of(other, 3, 9)
    shares = {point: (honest if point in (2, 6) else forged)[point] for point in honest}
    assert decoded(shares, 3, 9) == other
    with pytest.raises(UnrecoverableSecretError, match="more than 3 shares are wrong"):
        recover_checked(shares, 3, 9, lambda found: found == secret)


@settings(max_examples=60)
@given(secret=SECRETS, data=st.data())
def test_as_many_wrong_shares_as_half_the_surplus_are_corrected(
    secret: bytes, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 40))
    threshold = data.draw(st.integers(1, count))
    points = data.draw(st.permutations(range(1, count + 1)))
    size = data.draw(st.integers(threshold, count))
    true = shares_of(secret, threshold, count)
    shares = {point: true[point] for point in points[:size]}
    wrong = points[: (size - threshold) // 2]
    for point in wrong:
        shares[point] = (shares[point] + data.draw(st.integers(1, PRIME - 1))) % PRIME
    found = recover_checked(shares, threshold, count, lambda found: found == secret)
    # Errors may cancel in plain interpolation; then nobody is found to have been wrong.
    assert found in ((secret, frozenset(wrong)), (secret, frozenset()))


@pytest.mark.parametrize(("threshold", "count"), [(128, 254), (127, 254), (1, 254), (254, 254)])
@pytest.mark.parametrize("secret", [0, PRIME - 1])
def test_the_largest_neighbourhood(threshold: int, count: int, secret: int) -> None:
    chance = random.Random(threshold)
    shares = shares_of(secret.to_bytes(32), threshold, count)
    for point in chance.sample(sorted(shares), (count - threshold) // 2):
        shares[point] = chance.randrange(2**256)
    found = recover_checked(shares, threshold, count, lambda s: s == secret.to_bytes(32))
    assert int.from_bytes(found.secret) == secret
    assert len(found.wrong) == (count - threshold) // 2


@pytest.mark.parametrize("wrong", [3, 4, 5, 8, 9])
def test_more_wrong_shares_are_an_error_and_never_a_wrong_secret(wrong: int) -> None:
    secret = bytes(range(32))
    shares = shares_of(secret, 5, 9)
    for point in range(1, wrong + 1):
        # Not all by ±1: Lagrange's coefficients are small here, and such errors may cancel.
        shares[point] = (shares[point] + 1000**point) % PRIME
    with pytest.raises(UnrecoverableSecretError, match="more than 2 shares are wrong"):
        recover_checked(shares, 5, 9, lambda found: found == secret)


@pytest.mark.parametrize("value", [0, 1, PRIME - 1, PRIME, 2**256 - 1])
def test_shares_that_are_all_the_same_number_do_not_crash_the_decoder(value: int) -> None:
    shares = dict.fromkeys(range(1, 10), value)
    assert int.from_bytes(decoded(shares, 4, 9)) == value % PRIME
    with pytest.raises(UnrecoverableSecretError):
        recover_checked(shares, 4, 9, lambda found: False)


def test_too_few_shares_are_an_error_before_any_work() -> None:
    shares = shares_of(bytes(32), 5, 9)
    for point in range(1, 6):
        del shares[point]
    with pytest.raises(UnrecoverableSecretError, match="4 shares; 5 are needed"):
        recover_checked(shares, 5, 9, lambda found: True)
