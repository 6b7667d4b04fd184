"""The embedding guide's code does what the guide says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earshot_client.store.encrypted import EncryptedStore
from earshot_client.transport.enrolment import NotEnrolledError
from earshot_client.visits.participation import Event

GUIDE = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text(encoding="utf-8")
KEY = bytes(range(32))
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def app() -> dict[str, Any]:
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    names: dict[str, Any] = {}
    # S102: the program is the one that the guide shows.
    exec(compile(example, "embedding.md", "exec"), names)  # noqa: S102
    return names


def test_an_app_hears_labels_and_shows_its_ledger(app: dict[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path / "phone.db")
    samples = np.random.default_rng(3).normal(0, 3000, 16_000).astype(np.int16)
    recording = app["hear"](path, KEY, samples, 16_000)
    app["label"](path, KEY, recording, "train")
    assert app["ledger"](path, KEY) == []
    store = EncryptedStore(path, KEY)
    assert store.recordings()[1] == ("train",)
    store.close()


def test_a_visit_asks_the_conditions_before_the_network(
    app: dict[str, Any], tmp_path: Path
) -> None:
    path = str(tmp_path / "phone.db")
    with pytest.raises(NotEnrolledError):
        app["visit"](path, KEY, NOWHERE, None, bool, bool)
    store = EncryptedStore(path, KEY)
    store.put("enrolled as", b"7")
    store.close()
    visit = app["visit"](path, KEY, NOWHERE, None, lambda: True, lambda: False)
    assert visit.event is Event.POSTPONED
    assert visit.detail == "not on Wi-Fi"
    assert visit.seconds > 0


def test_every_file_and_name_that_the_guide_mentions_is_there() -> None:
    import earshot_client.store.interface as store
    import earshot_client.transport.http as transport

    for name in re.findall(r"\]\(([^)#:]+)\)", GUIDE):
        assert (Path(__file__).parents[2] / "docs" / name).exists(), name
    for name in re.findall(r"`(\w+Error)`", GUIDE):
        assert name in {"NotEnrolledError", "UnusableRecordingError"} or any(
            hasattr(module, name) for module in (store, transport)
        ), name
    for name in re.findall(r"`([A-Z]{4,})`", GUIDE.split("## When it says no")[1]):
        assert name in Event.__members__, name
