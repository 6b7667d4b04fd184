"""The data set of a command: listed, and what of it will not be heard said at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot_models.datasets.dataset import Dataset


def list_dataset(folder: Path, kind: str | None = None) -> Dataset:
    """List a data set as `open_dataset`, and say on standard error which files are left out."""
    from earshot_models.datasets.opening import open_dataset

    dataset = open_dataset(folder, kind)
    if unheard := dataset.unheard_sentence():
        print(unheard, file=sys.stderr, flush=True)
    return dataset
