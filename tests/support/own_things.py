"""A population, an attack and an encoder of one's own, for tests to spoil."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN

from earshot_protocol.geometry import Geometry
from earshot_simulations import (
    Attack,
    Discovery,
    FoundCentroids,
    PolicyChoice,
    Recordings,
    Settings,
    SummationChoice,
)

SMALL = Settings(
    recordings=20,
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    epsilon=8.0,
)
LOCAL = Settings(**{**vars(SMALL), "discovery": Discovery.LOCAL, "epsilon": None})


class Crowd:
    """Three clusters in four dimensions."""

    labels: Any = ("low", "middle", "high")
    phones: Any = 30
    dimensions: Any = 4
    key: Any = "three clusters"

    def recordings(self, phone: int) -> Recordings:
        return self.heard(np.random.default_rng([1, phone]), 20, 0.5)

    def held_out(self) -> Recordings:
        return self.heard(np.random.default_rng(2), 60, 1.0)

    def heard(self, random: np.random.Generator, count: int, labelled: float) -> Recordings:
        scenes = random.integers(0, 3, count)
        points = np.eye(3, 4)[scenes] + random.normal(0, 0.05, (count, 4))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        labels = np.where(random.random(count) < labelled, scenes, -1)
        return Recordings(points, labels, scenes)


class Plane(Crowd):
    """The same scenes in a square."""

    dimensions = 2
    geometry: Any = "euclidean"

    def heard(self, random: np.random.Generator, count: int, labelled: float) -> Recordings:
        found = super().heard(random, count, labelled)
        return found._replace(points=found.points[:, :2] - 0.5)


class Hashed(Crowd):
    """Another crowd in every process, as Python's hashes of texts are."""

    def recordings(self, phone: int) -> Recordings:
        return self.heard(np.random.default_rng(hash(f"phone {phone}") % 2**32), 20, 0.5)


class Density:
    """A clustering by HDBSCAN."""

    key = "HDBSCAN, 5"

    def discover(self, points: Any, geometry: Geometry) -> FoundCentroids:
        clusters = HDBSCAN(min_cluster_size=5, copy=True).fit_predict(points)
        middles = [points[clusters == one].mean(axis=0) for one in range(clusters.max() + 1)]
        return FoundCentroids(np.array(middles), clusters)


class Liars(Attack):
    """Three phones that label everything with the last label."""

    key = "last label, 3"

    def phones(self, count: int, seed: int) -> Any:
        return range(3)

    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        return recordings._replace(labels=np.full(len(recordings.labels), 2))


class Bands:
    """An encoder of levels in twelve bands."""

    name: Any = "bands"
    dimensions: Any = 12
    rate: Any = 11_025
    key: Any = "bands, 1"

    def embed(self, samples: Any) -> Any:
        power = np.abs(np.fft.rfft(samples, axis=1)) ** 2
        edges = np.geomspace(60, 5_000, 13).astype(int)
        levels = np.log(np.add.reduceat(power, edges[:-1], axis=1) + 1e-6)
        shape = levels - levels.mean(axis=1, keepdims=True)
        return shape / np.linalg.norm(shape, axis=1, keepdims=True)


def raising(*given: Any) -> Any:
    """A method of anything, which raises."""
    raise ZeroDivisionError("half of nothing")


def piped(program: str, folder: Path) -> str:
    """The output of a program piped to Python, whose classes are those of `__main__`."""
    run = subprocess.run(
        [sys.executable, "-"],
        input=program,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "TMPDIR": str(folder)},
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout
