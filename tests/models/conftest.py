"""Short clips and few synthesized scenes, from which recipes train encoders."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.esc_folder import write_esc_folder

from earshot_models import origins
from earshot_models.soundscapes import SCENES


@pytest.fixture
def few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "_SYNTHESIZED", 25)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two-second clips of every scene, named as ESC-50's: of two folds."""
    return write_esc_folder(tmp_path_factory.mktemp("esc"), SCENES, clips=10, seconds=2)
