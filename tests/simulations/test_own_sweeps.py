"""Things of one's own in sweeps: kept by their keys, and refused without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.own_things import LOCAL, SMALL, Bands, Crowd, Density, Liars, piped

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_simulations import FoundCentroids, OwnCodeError, Recordings, sweep
from earshot_simulations.sweeps.table import SweepTable

GRID = {"recordings": [10, 20]}


class Other(Crowd):
    key = "three clusters, wider"

    def heard(self, random: np.random.Generator, count: int, labelled: float) -> Recordings:
        return super().heard(np.random.default_rng(random.integers(9)), count, labelled)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "phases.jsonl").read_text().splitlines()]


def test_a_sweep_takes_all_of_them_and_continues(tmp_path: Path) -> None:
    own = {"population": Crowd(), "clustering": Density(), "attack": Liars()}
    found = sweep(LOCAL, GRID, tmp_path, seeds=1, **own)  # type: ignore[arg-type]
    assert [row["failure"] for row in found.rows()] == [None, None]
    first = rows(tmp_path)
    assert first[0]["configuration"]["own"] == {
        "population": {"class": "support.own_things.Crowd", "key": "three clusters"},
        "clustering": {"class": "support.own_things.Density", "key": "HDBSCAN, 5"},
        "attack": {"class": "support.own_things.Liars", "key": "last label, 3"},
    }
    assert first[0]["configuration"]["settings"]["phones"] == 30
    sweep(LOCAL, {"recordings": [10, 20, 30]}, tmp_path, seeds=1, **own)  # type: ignore[arg-type]
    assert rows(tmp_path)[:2] == first
    assert len(rows(tmp_path)) == 3


def test_rows_without_own_things_are_keyed_as_ever(tmp_path: Path) -> None:
    sweep(replace(SMALL, phones=12, scenes=2), GRID, tmp_path, seeds=1)
    assert rows(tmp_path)[0]["configuration"].keys() == {"version", "measure", "settings"}


def test_the_cost_is_that_of_the_population_s_geometry(tmp_path: Path) -> None:
    found = sweep(LOCAL, GRID, tmp_path, seeds=1, population=Crowd())
    # The budget on the sphere, though settings of no data are of the plane.
    assert found.rows()[0]["epsilon_recording"] == pytest.approx(3.0, abs=0.25)


def test_another_key_is_another_run(tmp_path: Path) -> None:
    sweep(SMALL, GRID, tmp_path, seeds=1, population=Crowd())
    with pytest.raises(InvalidInputError, match="holds 2 runs that are not in this sweep"):
        sweep(SMALL, GRID, tmp_path, seeds=1, population=Other())


@pytest.mark.parametrize(
    ("name", "own"),
    [("population", Crowd), ("clustering", Density), ("attack", Liars), ("encoder", Bands)],
)
def test_without_a_key_nothing_is_begun(name: str, own: type[Any], tmp_path: Path) -> None:
    keyless = type("Mine", (own,), {"key": None})()
    base = replace(LOCAL, data="soundscapes") if name == "encoder" else LOCAL
    with pytest.raises(InvalidParametersError, match=f"{name} Mine: has no key; a sweep keeps"):
        sweep(base, GRID, tmp_path / "out", seeds=1, **{name: keyless})
    assert not (tmp_path / "out").exists()


def test_a_setting_that_it_replaces_does_not_vary(tmp_path: Path) -> None:
    with pytest.raises(InvalidParametersError, match=r"point labelled=0\.1: labelled: not"):
        sweep(SMALL, {"labelled": [0.1, 0.9]}, tmp_path, seeds=1, population=Crowd())


def test_what_cannot_be_copied_is_refused_before_any_work(tmp_path: Path) -> None:
    class Open(Crowd):
        def __init__(self) -> None:
            self.file = (n for n in range(3))

    with pytest.raises(InvalidParametersError, match="population Open: cannot be copied"):
        sweep(SMALL, GRID, tmp_path / "out", seeds=1, processes=2, population=Open())
    assert not (tmp_path / "out").exists()
    found = sweep(SMALL, GRID, tmp_path / "out", seeds=1, population=Open())
    assert len(found.rows()) == 2


class Few(Crowd):
    phones = 12
    key = "three clusters, 12 phones"


class Wrong(Density):
    """A clustering that fails with many centroids, until it is mended."""

    mended = False

    def discover(self, points: Any, geometry: Geometry) -> FoundCentroids:
        if len(points) > 20 and not self.mended:
            raise ValueError("too many")
        return super().discover(points, geometry)


@pytest.mark.parametrize(("centroids", "finished"), [([1, 3], 1), ([3, 1], 0)])
def test_a_sweep_continues_where_its_own_code_failed(
    centroids: list[int], finished: int, tmp_path: Path
) -> None:
    mine = Wrong()

    def swept(folder: Path) -> SweepTable:
        grid = {"top_local_centroids": centroids}
        return sweep(LOCAL, grid, folder, seeds=1, population=Few(), clustering=mine)

    with pytest.raises(
        OwnCodeError, match=r"clustering Wrong: discover raised .* too many"
    ) as sent:
        swept(tmp_path / "out")
    assert "keeps the runs that had finished" in sent.value.__notes__[0]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["phases.jsonl"]
    first = rows(tmp_path / "out")
    assert len(first) == finished
    mine.mended = True
    assert swept(tmp_path / "out").rows() == swept(tmp_path / "whole").rows()
    assert rows(tmp_path / "out")[: len(first)] == first


NOTEBOOK = """
from support.own_things import LOCAL, Crowd, Density, Liars
from earshot_simulations import sweep

class Mine(Crowd):
    key = "mine"

found = sweep(LOCAL, {"recordings": [10, 20]}, "out", seeds=2, processes=2,
              population=Mine(), clustering=Density(), attack=Liars())
print([row["failure"] for row in found.rows()])
"""


@pytest.mark.slow
def test_classes_of_a_notebook_are_swept_in_other_processes(tmp_path: Path) -> None:
    assert piped(NOTEBOOK, tmp_path) == "[None, None, None, None]\n"
