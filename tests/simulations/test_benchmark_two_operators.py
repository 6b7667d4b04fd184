"""The benchmark of sums by two operators: sizes by hand, and what its rows say."""

from __future__ import annotations

import json

import pytest
from support.command import earshot

from earshot_simulations.benchmarks import two_operators
from earshot_simulations.benchmarks.two_operators import Input, benchmark

ENTRY_BYTES = 16 + 32 + 32 + 16
"""Bytes of a report in a list: identifier, encapsulated key, seed, tag."""


SEALED = ENTRY_BYTES + 32
"""The same with the blind of a proof."""
_WORD = 20
"""Bits of a word of the sums of unproved vectors by 40 phones."""


def test_a_row_a_length_beside_bells_sum_and_the_floor() -> None:
    short, long = benchmark(40, None, (16, 800), 0.1, 0.05, inputs=[Input.UNPROVED])
    assert [short["length"], long["length"]] == [16, 800]
    for row in (short, long):
        assert (row["inputs"], row["phones"], row["reports"]) == ("vectors, unproved", 40, 36)
        assert row["within_noise"] is True
        assert row["phone_compiled_ms"] is None
        assert row["phone_over_floor"] == pytest.approx(row["phone_ms"] / row["floor_ms"])
        assert min(row[name] for name in row if name.endswith("_ms") and row[name]) > 0
        # Once to the helper, and some hundred bytes of its two tasks for all.
        assert 96 < row["helper_bytes"] < 96 + 1000 / 36 + 1
    # Two shares differ in their entries alone, and in a header's byte or two.
    grown = (800 - 16) * _WORD / 8
    assert grown <= long["phone_bytes"] - short["phone_bytes"] <= grown + 4
    assert long["bell_phone_bytes"] > long["phone_bytes"]


@pytest.mark.parametrize(
    ("kind", "length", "encoded", "chunk", "points", "public"),
    [
        (Input.BALLOTS, 16, 16 + 3, 3, 8, 64),  # the total of five ones has three bits
        (Input.BALLOTS, 100, 100 + 3, 7, 16, 64),
        (Input.VECTORS, 16, 16 + 24 + 1700, 58, 32, 128),  # bits fill 30 calls, squares one
    ],
)
def test_proved_inputs_have_the_sizes_of_the_draft(
    kind: Input, length: int, encoded: int, chunk: int, points: int, public: int
) -> None:
    """A share of n elements has 16 · n bytes, and 32 of the blind; so have verifier shares."""
    (row,) = benchmark(12, None, (length,), 0.1, 0.05, inputs=[kind])
    assert (row["inputs"], row["reports"], row["within_noise"]) == (kind, 11, True)
    assert row["phone_over_floor"] == pytest.approx(row["phone_ms"] / row["floor_ms"])
    assert row["phone_compiled_ms"] > 0
    share = 16 * (encoded + 2 * chunk + 2 * points - 1) + 32
    assert share + SEALED + public < row["phone_bytes"] < share + SEALED + public + 100
    listed = SEALED + public + 16 * (2 * chunk + 2) + 32
    assert listed < row["helper_bytes"] < listed + 1100 / 11 + 1


def test_the_command_measures_each_kind_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[object, ...]] = []

    def noted(*given: object) -> list[dict[str, object]]:
        measured.append((given[2], given[6]))
        return [{"phone_ms": 1.0}]

    monkeypatch.setattr(two_operators, "benchmark", noted)
    command = ("bench", "secure-sum", "--json", "--summation")
    for summation, options, asked in (
        ("two-operators", (), ((640, 2560), tuple(Input))),
        ("two-operators", ("--length", "7"), ((7,), tuple(Input))),
        ("two-operators-unproved", (), ((640, 2560), (Input.UNPROVED,))),
    ):
        run = earshot(*command, summation, *options)
        assert (run.returncode, json.loads(run.stdout)) == (0, {"sums": [{"phone_ms": 1.0}]})
        assert measured.pop() == asked


def test_a_total_that_is_not_the_reported_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    run_sum = two_operators.run_sum

    def beside(*given: object) -> object:
        found = run_sum(*given)  # type: ignore[arg-type]
        return found._replace(total=found.total + 10_000_000)

    monkeypatch.setattr(two_operators, "run_sum", beside)
    (row,) = benchmark(20, None, (3,), 0.0, 0.05, inputs=[Input.UNPROVED])
    assert row["within_noise"] is False
