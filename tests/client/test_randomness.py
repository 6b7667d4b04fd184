"""Without being told otherwise, whatever draws randomness draws the operating system's."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from support.parameters import learning_parameters
from support.policies import without_budget

import earshot_client
import earshot_protocol
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.phases.learning import Budget, Cluster, LocalCentroids
from earshot_simulations.engine.interface import HeardPoints


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Everything that can be called in what a phone carries."""
    for package in (earshot_client, earshot_protocol):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if getattr(value, "__module__", None) != module.__name__:
                    continue
                members = vars(value).items() if inspect.isclass(value) else ((name, value),)
                for member, held in members:
                    function = getattr(held, "__func__", getattr(held, "func", held))
                    if inspect.isfunction(inspect.unwrap(function)):
                        yield f"{module.__name__}.{name}.{member}", inspect.unwrap(function)


def test_every_default_source_of_randomness_is_that_of_the_system() -> None:
    sources = {
        where: parameter.default
        for where, function in functions()
        for parameter in inspect.signature(function).parameters.values()
        if "RandomBytes" in str(parameter.annotation)
        and parameter.default is not inspect.Parameter.empty
    }
    assert "earshot_client.phone.Phone.__init__" in sources
    assert len(sources) >= 8, sources
    assert {where for where, source in sources.items() if source is not os.urandom} == set()


def test_no_two_phones_cluster_with_the_same_noise() -> None:
    """All centroids are published, so that which are chosen makes no difference."""
    budget = Budget(clustering=40.0, selection=0.25, centroid_vote=0.5, label_vote=0.5)
    parameters = learning_parameters(local_centroids=3, top_local_centroids=3, budget=budget)
    points = np.linspace(-0.5, 0.5, 10, dtype=np.float32).reshape(5, 2)
    published = []
    for _ in range(2):
        store = MemoryStore(points, (None,) * len(points))
        phone = Phone(store, HeardPoints("points", 2), without_budget())
        answer = phone.answer(Cluster(phase=bytes(16), index=0, parameters=parameters))
        assert isinstance(answer, LocalCentroids)
        published.append({tuple(row) for row in answer.centroids.array().tolist()})
    assert published[0] != published[1]
