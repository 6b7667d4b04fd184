"""Sounds that several studies of tagging read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tagging_folder import write_tagging_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tagging_folder(tmp_path_factory.mktemp("data"))
