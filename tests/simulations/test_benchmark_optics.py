from __future__ import annotations

import json

import numpy as np
import pytest
from support.command import earshot

from earshot_protocol.errors import InvalidParametersError
from earshot_server.discovery.reachability import Reachability
from earshot_simulations.benchmarks import optics


def test_the_command_times_both_and_compares_them() -> None:
    done = earshot(
        *("bench", "optics", "--points", "60", "--points", "90", "--dimensions", "20", "--json")
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["plots"]
    assert [row["points"] for row in rows] == [60, 90]
    for row in rows:
        assert row["same"] is True
        assert row["seconds"] > 0
        assert row["speedup"] == pytest.approx(row["peer_seconds"] / row["seconds"])


def test_a_plot_of_another_order_is_not_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = optics.reachability

    def swapped(points: np.ndarray, least: int) -> Reachability:
        plot = found(points, least)
        plot.ordering[[1, 2]] = plot.ordering[[2, 1]]
        return plot

    monkeypatch.setattr(optics, "reachability", swapped)
    assert optics.benchmark([50], 3, 1, 0)[0]["same"] is False


def test_of_too_many_points_the_peer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optics, "PEER_POINTS", 40)
    row = optics.benchmark([50], 3, 1, 0)[0]
    assert row["peer_seconds"] is row["speedup"] is row["same"] is None


@pytest.mark.parametrize(
    ("sizes", "dimensions", "threads", "named"),
    [([5], 2, 1, "points"), ([50], 0, 1, "dimensions"), ([50], 2, 0, "threads")],
)
def test_numbers_out_of_range_are_named(
    sizes: list[int], dimensions: int, threads: int, named: str
) -> None:
    with pytest.raises(InvalidParametersError, match=named):
        optics.benchmark(sizes, dimensions, threads, 0)
