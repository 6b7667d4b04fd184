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


def test_a_row_a_sum_beside_bells_and_the_floor() -> None:
    rows = benchmark(40, None, (16, 800), 0.1, 0.05, inputs=[Input.UNPROVED])
    assert [(row["sum"], row["length"]) for row in rows] == [
        *(("Bell et al.", 16), ("vectors, unproved", 16)),
        *(("Bell et al.", 800), ("vectors, unproved", 800)),
    ]
    for row in rows:
        assert list(row) == list(rows[0])
        assert (row["phones"], row["reports"], row["within_noise"]) == (40, 36, True)
        assert row["phone_compiled_ms"] is None
        assert row["phone_over_floor"] == pytest.approx(row["phone_ms"] / row["floor_ms"])
        assert min(row[name] for name in ("phone_ms", "floor_ms", "leader_ms")) > 0
    for bell, ours in (rows[:2], rows[2:]):
        assert bell["helper_ms"] is bell["share_bytes"] is bell["entry_bytes"] is None
        assert bell["phone_bytes"] > ours["phone_bytes"]
        assert ours["helper_ms"] > 0
        assert ours["entry_bytes"] == ENTRY_BYTES
        assert ours["share_bytes"] == ours["length"] * _WORD / 8
    # Two reports differ in their shares alone, and in a header's byte or two.
    (_, short, _, long) = rows
    grown = (800 - 16) * _WORD / 8
    assert grown <= long["phone_bytes"] - short["phone_bytes"] <= grown + 4


def test_the_floor_of_bells_row_is_as_many_exchanges_as_that_of_the_others() -> None:
    """One exchange takes tens of microseconds, and a phone of Bell et al.'s sum makes fewer."""
    figures = {"neighbours": 8, "floor_ms": 0.4, "phone_cpu_ms": 5.0, "length": 3, "phones": 9}
    figures |= {"survivors": 9, "server_cpu_ms_per_survivor": 1.0, "bytes_up": 7, "exact": True}
    row = two_operators._of_bell(figures)
    assert (row["floor_ms"], row["phone_over_floor"]) == pytest.approx((10.0, 0.5))


def test_what_vectors_are_meant_to_cost_stands_below_what_they_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(two_operators, "REACH", {4: {"phone_ms": 9.0, "helper_ms": 0.5}})
    rows = benchmark(12, None, (3, 4), 0.1, 0.05, inputs=[Input.VECTORS])
    assert [(row["sum"], row["length"]) for row in rows] == [
        *(("Bell et al.", 3), ("vectors", 3)),
        *(("Bell et al.", 4), ("vectors", 4), ("vectors: at most", 4)),
    ]
    assert {name: entry for name, entry in rows[-1].items() if entry is not None} == {
        "sum": "vectors: at most",
        "length": 4,
        "phone_ms": 9.0,
        "helper_ms": 0.5,
    }
    assert list(rows[-1]) == list(rows[0])


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
    _, row = benchmark(12, None, (length,), 0.1, 0.05, inputs=[kind])
    assert (row["sum"], row["reports"], row["within_noise"]) == (kind, 11, True)
    assert row["phone_over_floor"] == pytest.approx(row["phone_ms"] / row["floor_ms"])
    assert row["phone_compiled_ms"] > 0
    share = 16 * (encoded + 2 * chunk + 2 * points - 1) + 32
    assert row["share_bytes"] == share
    assert share + SEALED + public < row["phone_bytes"] < share + SEALED + public + 100
    assert row["entry_bytes"] == SEALED + public + 16 * (2 * chunk + 2) + 32


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
    _, row = benchmark(20, None, (3,), 0.0, 0.05, inputs=[Input.UNPROVED])
    assert row["within_noise"] is False
