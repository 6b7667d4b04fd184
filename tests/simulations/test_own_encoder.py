"""An encoder of one's own: synthesized sound and folders of sound, heard by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.esc_folder import write_esc_folder
from support.own_things import LOCAL, SMALL, Bands, Crowd
from support.simulated import decided

from earshot_client.encoder import default_encoder
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations import OwnCodeError, Settings, result, simulate
from earshot_simulations.populations import hearing
from earshot_simulations.populations.hearing import hearing_once

SOUND = replace(SMALL, phones=12, recordings=4, data="soundscapes", pool=6, scenes=2)


def test_phones_hear_by_it_at_its_rate() -> None:
    rates = set()

    class Noted(Bands):
        def embed(self, samples: Any) -> Any:
            rates.add(samples.shape[1])
            assert samples.dtype == np.float32
            return super().embed(samples)

    run = simulate(SOUND, encoder=Noted())
    assert run.interrupted is None
    assert rates == {11_025}
    assert run.found.points.shape[1] == 12
    figures = result(run)
    assert figures["configuration"]["dimensions"] == 12
    assert figures["provenance"]["encoder"] is None
    assert figures["provenance"]["own"]["encoder"]["key"] == "bands, 1"
    assert any("the encoder 'bands'" in note for note in run.notes)
    assert not any("shipped encoder was trained" in note for note in run.notes)


@pytest.mark.slow
def test_it_projects_where_it_can() -> None:
    class Projected(Bands):
        def project(self, embeddings: Any, dimensions: int) -> Any:
            rows = embeddings[:, :dimensions] + 1e-3
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        def start_centroids(self, dimensions: int, count: int) -> Any:
            return np.eye(dimensions)[np.arange(count) % dimensions] + 0.01

    run = simulate(replace(SOUND, dimensions=5), encoder=Projected())
    assert run.found.points.shape[1] == 5
    assert run.found.start_centroids[0].argmax() == 0
    assert simulate(replace(SOUND, dimensions=5, discovery=LOCAL.discovery), encoder=Projected())
    with pytest.raises(InvalidParametersError, match="dimensions=13: must be 1 to 12"):
        simulate(replace(SOUND, dimensions=13), encoder=Projected())
    with pytest.raises(InvalidParametersError, match=r"=5: must be 12, .* has no project"):
        simulate(replace(SOUND, dimensions=5), encoder=Bands())


@pytest.mark.slow
def test_a_shipped_one_is_an_encoder_as_any() -> None:
    """Wrapped under another name, it hears what it hears by its file."""

    class Wrapped:
        name = "wrapped"
        dimensions = default_encoder().dimensions
        rate = 16_000

        def embed(self, samples: Any) -> Any:
            return default_encoder().embed(samples)

        def project(self, embeddings: Any, dimensions: int) -> Any:
            return default_encoder().project(embeddings, dimensions)

    Wrapped.rate = getattr(default_encoder(), "rate")  # noqa: B009 - not of the protocol
    own, usual = simulate(SOUND, encoder=Wrapped()), simulate(SOUND)
    assert own.found.points.tolist() == usual.found.points.tolist()


@pytest.mark.slow
def test_processes_change_nothing_and_it_is_not_copied() -> None:
    class Held(Bands):
        def __init__(self) -> None:
            self.session = (n for n in range(3))

    alone, spread = (simulate(replace(SOUND, jobs=jobs), encoder=Held()) for jobs in (1, 2))
    assert decided(alone) == decided(spread)


@pytest.mark.slow
def test_what_it_heard_is_kept_by_its_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    class Counted(Bands):
        def embed(self, samples: Any) -> Any:
            heard.append(len(samples))
            return super().embed(samples)

    class Keyless(Counted):
        key = None

    with hearing_once(5):
        simulate(SOUND, encoder=Counted())
        first = len(heard)
        simulate(replace(SOUND, seed=1), encoder=Counted())
        assert len(heard) == first
        simulate(SOUND, encoder=type("Other", (Counted,), {"key": "bands, 2"})())
        assert len(heard) == 2 * first
        simulate(SOUND, encoder=Keyless())
        simulate(SOUND, encoder=Keyless())
        assert len(heard) == 4 * first
    assert hearing.ROOM


@pytest.mark.slow
def test_a_folder_is_heard_and_lower_rates_are_refused(tmp_path: Path) -> None:
    write_esc_folder(tmp_path, ("rain", "siren"), clips=4, seconds=2)
    settings = replace(SMALL, phones=12, recordings=4, data=str(tmp_path))
    run = simulate(settings, encoder=Bands())
    assert run.interrupted is None
    assert run.found.points.shape[1] == 12
    fine = type("Fine", (Bands,), {"rate": 44_100})
    with pytest.raises(InvalidInputError, match="hears 44,100 samples per second, but 8 of 8"):
        simulate(settings, encoder=fine())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (replace(SMALL, phones=12), "encoder bands: blobs are points already"),
        (replace(SOUND, encoder="contrast-3"), "encoder=contrast-3: not beside the encoder bands"),
    ],
)
def test_settings_that_it_does_not_fit_are_refused(settings: Settings, says: str) -> None:
    with pytest.raises(InvalidParametersError, match=says):
        simulate(settings, encoder=Bands())


def test_beside_a_population_it_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="encoder: not beside a population"):
        simulate(SMALL, population=Crowd(), encoder=Bands())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": ""}, "name='': must be a short text"),
        ({"name": "contrast-3"}, "name='contrast-3': is that of a shipped encoder"),
        ({"dimensions": 0}, "dimensions=0: must be a whole number"),
        ({"dimensions": "12"}, "dimensions='12'"),
        ({"rate": 100}, "rate=100: must be a whole number, from 1000 to 192000"),
        ({"rate": 16e3}, r"rate=16000\.0: must be a whole number"),
        ({"embed": None}, "must have `name`, `dimensions` and embed"),
        ({"key": b"1"}, "key=b'1': must be a text"),
    ],
)
def test_an_attribute_that_cannot_be_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParametersError, match=says):
        simulate(SOUND, encoder=type("Mine", (Bands,), changes)())


@pytest.mark.parametrize(
    ("embed", "says"),
    [
        (lambda self, samples: np.ones((len(samples), 3)), r"shape \(\d+, 3\): must be"),
        (lambda self, samples: np.ones((len(samples), 12)), "row 0 has length 3.46"),
        (lambda self, samples: np.full((len(samples), 12), np.nan), "row 0 is not finite"),
        (lambda self, samples: np.eye(1, 12, dtype=int), "is of type int64"),
        (lambda self, samples: np.eye(1, 12), "has 1 rows: must be"),
        (lambda self, samples: samples.sound, "raised AttributeError"),
    ],
)
def test_embeddings_that_cannot_be_used_are_named(embed: Any, says: str) -> None:
    with pytest.raises(OwnCodeError, match=f"encoder Mine: embed.*{says}"):
        simulate(SOUND, encoder=type("Mine", (Bands,), {"embed": embed})())
