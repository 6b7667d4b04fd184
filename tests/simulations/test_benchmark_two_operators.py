"""The benchmark of sums by two operators: sizes by hand, and what its rows say."""

from __future__ import annotations

import json

import pytest
from support.command import earshot

from earshot_simulations.benchmarks import two_operators
from earshot_simulations.benchmarks.two_operators import benchmark

ENTRY_BYTES = 16 + 32 + 32 + 16
"""Bytes of a report in a list: identifier, encapsulated key, seed, tag."""


def test_a_row_a_length_beside_bells_sum_and_the_floor() -> None:
    short, long = benchmark(40, None, (16, 800), 0.1, 0.05)
    assert [short["length"], long["length"]] == [16, 800]
    for row in (short, long):
        assert row["phones"] == 40
        assert row["reports"] == 36
        assert row["within_noise"] is True
        assert row["phone_over_floor"] == pytest.approx(row["phone_ms"] / row["floor_ms"])
        assert min(row[name] for name in row if name.endswith("_ms")) > 0
        # Once to the helper, and some hundred bytes of its two tasks for all.
        assert 96 < row["helper_bytes"] < 96 + 1000 / 36 + 1
    # Two shares differ in their entries alone, and in a header's byte or two.
    bits = long["modulus_bits"]
    grown = (800 * bits - 16 * bits) / 8
    assert grown <= long["phone_bytes"] - short["phone_bytes"] <= grown + 4
    assert long["bell_phone_bytes"] > long["phone_bytes"]


@pytest.mark.slow
def test_of_a_thousand_phones_words_have_21_bits() -> None:
    (row,) = benchmark(1000, 4, (1,), 0.0, 0.0)
    assert row["modulus_bits"] == 21


def test_proved_ballots_have_the_sizes_of_the_draft() -> None:
    """A share of n elements has 16 · n bytes, and 32 of the blind; so have verifier shares."""
    short, long = benchmark(20, None, (16, 100), 0.1, 0.05, proved=True)
    for row, chunk, points in ((short, 3, 8), (long, 7, 16)):
        encoded = row["length"] + 3  # the weight of five ones has three bits
        assert (row["ones"], row["reports"], row["within_noise"]) == (5, 18, True)
        assert "modulus_bits" not in row
        assert row["phone_over_floor"] == pytest.approx(row["phone_ms"] / row["floor_ms"])
        share = 16 * (encoded + 2 * chunk + 2 * points - 1) + 32
        # What is sealed has a blind as well, and beside it there is a public share.
        sealed = ENTRY_BYTES + 32 + 64
        assert share + sealed < row["phone_bytes"] < share + sealed + 100
        listed = sealed + 16 * (2 * chunk + 2) + 32
        assert listed < row["helper_bytes"] < listed + 1000 / 18 + 1


def test_the_command_measures_proved_ballots(monkeypatch: pytest.MonkeyPatch) -> None:
    measure: list[tuple[object, ...]] = []

    def noted(*given: object, proved: bool) -> list[dict[str, object]]:
        measure.append((given[2], proved))
        return [{"phone_ms": 1.0}]

    monkeypatch.setattr(two_operators, "benchmark", noted)
    command = ("bench", "secure-sum", "--json", "--summation")
    for summation, options, asked in (
        ("two-operators", (), ((100, 640, 2000), True)),
        ("two-operators", ("--length", "7"), ((7,), True)),
        ("two-operators-unproved", (), (two_operators.LENGTHS, False)),
    ):
        run = earshot(*command, summation, *options)
        assert (run.returncode, json.loads(run.stdout)) == (0, {"sums": [{"phone_ms": 1.0}]})
        assert measure.pop() == asked


def test_a_total_that_is_not_the_reported_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    run_sum = two_operators.run_sum

    def beside(*given: object) -> object:
        found = run_sum(*given)  # type: ignore[arg-type]
        return found._replace(total=found.total + 100_000)

    monkeypatch.setattr(two_operators, "run_sum", beside)
    (row,) = benchmark(20, None, (3,), 0.0, 0.05)
    assert row["within_noise"] is False
