"""Everything that a run left, as facts: a place, and what stands there."""

from __future__ import annotations

import csv
import hashlib
import html
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Facts = dict[str, str]

_TEXT = {".md", ".html", ".txt", ".log", ".toml"}


def facts(folder: Path, names: Mapping[str, str]) -> Facts:
    """Return the facts of all files below a folder, with paths written by name.

    JSON gives a fact a leaf, CSV one a cell, text one a line, arrays one a file; of pictures and
    other bytes only their presence counts.
    """
    found: Facts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            place = path.relative_to(folder).as_posix()
            for key, value in _read(path):
                text = str(value)
                for written, name in names.items():
                    text = text.replace(written, name)
                found[f"{place}{key}"] = text
    return found


def by_elements(found: Facts) -> Facts:
    """Return the facts with each page by its tags and texts: where its lines end says nothing."""
    lines: dict[str, dict[int, str]] = {}
    rest: Facts = {}
    for place, line in found.items():
        name, _, number = place.rpartition(":")
        if name.endswith(".html"):
            lines.setdefault(name, {})[int(number)] = line
        else:
            rest[place] = line
    for name, own in lines.items():
        text = "\n".join(own[number] for number in sorted(own))
        parts = [each.strip() for each in re.split(r"(?<=>)|(?=<)", text)]
        for number, part in enumerate(filter(None, parts), 1):
            rest[f"{name}:{number}"] = html.unescape(part)
    return rest


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".json" or (path.name == "printed.txt" and _is_json(path)):
        yield from _leaves(json.loads(path.read_text(encoding="utf-8")), ":")
    elif path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.reader(file)):
                for column, cell in enumerate(row):
                    yield f":{number}.{column}", cell
    elif path.suffix in _TEXT:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        yield from ((f":{number}", line) for number, line in enumerate(lines, 1))
    elif path.suffix == ".npy":
        yield "", _digest(np.load(path, allow_pickle=False))
    elif path.suffix == ".npz" and zipfile.is_zipfile(path):
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays:
                yield f":{name}", _digest(arrays[name])
    else:
        yield "", "is there"


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{place}.{key}")
    elif isinstance(value, list):
        yield f"{place}#", len(value)
        for number, each in enumerate(value):
            yield from _leaves(each, f"{place}.{number}")
    else:
        yield place, json.dumps(value)


def _digest(array: np.ndarray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return f"{array.dtype} {array.shape} {digest}"
