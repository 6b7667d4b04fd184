"""Without being told otherwise, whatever draws randomness draws the operating system's."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import os
import pkgutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.parameters import learning_parameters
from support.points import HeardPoints
from support.policies import without_budget

import earshot_client
import earshot_protocol
from earshot_client.hearing import Hearing
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.key_file import key_in
from earshot_client.store.memory import MemoryStore
from earshot_client.transport import enrolment
from earshot_protocol.phases.learning import Budget, Cluster, LocalCentroids


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


class Noted:
    """The operating system's source of bytes, whose answers are noted."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self._system = os.urandom

    def __call__(self, size: int) -> bytes:
        self.answers.append(self._system(size))
        return self.answers[-1]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    monkeypatch.setattr(os, "urandom", noted)
    return noted


def test_a_key_of_a_store_is_32_bytes_of_the_system(asked: Noted, tmp_path: Path) -> None:
    keys = [key_in(tmp_path / name, may_create=True) for name in "ab"]
    assert keys == asked.answers
    assert [len(each) for each in keys] == [32, 32]
    assert keys[0] != keys[1]


def test_a_store_seals_every_row_with_a_nonce_of_its_own(asked: Noted, tmp_path: Path) -> None:
    """Under a salt of 32 bytes: AES-GCM with the same nonce twice shows both rows."""
    path = tmp_path / "phone.db"
    with contextlib.closing(EncryptedStore(path, bytes(32))) as store:
        for name in ("one", "other", "one"):
            store.put(name, b"content")
        store.add(np.ones(128, np.float32))
    salt, *nonces = asked.answers
    assert len(salt) == 32
    assert len(nonces) >= 4
    assert {len(each) for each in nonces} == {12}
    assert len(set(nonces)) == len(nonces)
    with contextlib.closing(sqlite3.connect(path)) as database:
        sealed = [
            row
            for table in ("recordings", "named_values", "ledger_length")
            for (row,) in database.execute(f"SELECT sealed FROM {table}")  # noqa: S608 - names above
        ]
    assert len(sealed) >= 4
    assert {each[:12] for each in sealed} <= set(nonces)


def test_a_phone_signs_by_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    class Watched(Ed25519PrivateKey):
        @classmethod
        def generate(cls) -> Ed25519PrivateKey:
            key = Ed25519PrivateKey.generate()
            made.append(key.private_bytes_raw())
            return key

        from_private_bytes = Ed25519PrivateKey.from_private_bytes

    monkeypatch.setattr(enrolment, "Ed25519PrivateKey", Watched)
    stores = [MemoryStore(), MemoryStore()]
    keys = [enrolment.signing_key(store).private_bytes_raw() for store in stores * 2]
    assert keys == made * 2
    assert len(set(made)) == 2


def test_what_a_phone_hears_is_drawn_by_16_bytes_of_the_system(asked: Noted) -> None:
    phone = Phone(MemoryStore(), HeardPoints("points", 2))
    asked.answers.clear()
    for _ in range(2):
        Hearing(phone, MemoryStore())
    assert [len(each) for each in asked.answers] == [16, 16]


def test_nothing_but_the_system_draws_at_random() -> None:
    """What can be guessed, or is seeded, is not even imported by what a phone carries.

    `clustering.py` packs spheres in the same way on all phones, before it sees data, and
    `transport/http.py` spreads phones that lost the same server.
    """
    guessed = {
        f"{package.__name__}/{path.relative_to(Path(package.__path__[0])).as_posix()}"
        for package in (earshot_client, earshot_protocol)
        for path in Path(package.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Import) and "random" in {each.name for each in node.names})
        or (isinstance(node, ast.ImportFrom) and node.module in {"random", "numpy.random"})
        or (isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.random."))
    }
    assert guessed == {"earshot_client/clustering.py", "earshot_client/transport/http.py"}
