"""Listing of a command's data set, with a report of the files that are left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot_models.datasets.dataset import Dataset


def list_dataset(folder: Path, kind: str | None = None) -> Dataset:
    """List a data set by `open_dataset`, and report the files left out on standard error."""
    from earshot_models.datasets.opening import open_dataset

    dataset = open_dataset(folder, kind)
    if unheard := dataset.unheard_sentence():
        print(unheard, file=sys.stderr, flush=True)
    return dataset
