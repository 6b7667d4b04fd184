"""A kept `result.json`, read again: complete, written by Earshot, and not edited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot_protocol.errors import InvalidInputError
from earshot_simulations.learning.configuration import settings_of
from earshot_simulations.learning.files import RESULT
from earshot_simulations.learning.provenance import digest
from earshot_simulations.learning.routes import Routes
from earshot_simulations.learning.run import DIGEST
from earshot_simulations.learning.settings import Discovery, Settings

_NEEDED = ("configuration", "provenance", "version", DIGEST)


class EditedResultError(InvalidInputError):
    """The `result.json` is not as a run wrote it."""


@dataclass(frozen=True)
class Written:
    """A run as described by its file.

    Attributes:
        path: Path of the file.
        figures: Content of the file; see `learning.run.result`.
    """

    path: Path
    figures: Mapping[str, Any]

    @property
    def settings(self) -> Settings:
        """Settings of the run.

        Raises:
            InvalidParametersError: if this version does not know these settings.
        """
        return settings_of(self.figures["configuration"])


def read_each(path: Path) -> dict[Discovery, Written]:
    """Read the runs of a folder, by route: one, or those of both routes on one crowd.

    Args:
        path: Path of `result.json`, or of a folder that `earshot simulate --out` wrote.

    Raises:
        InvalidInputError: as `read`.
    """
    return {
        written.settings.discovery: written for written in map(read, _of_routes(path) or [path])
    }


def _of_routes(folder: Path) -> list[Path]:
    """Return the folders of single routes in a folder that has no result of its own."""
    if (folder / RESULT).exists():
        return []
    return [folder / route for route in Routes.BOTH.each if (folder / route / RESULT).exists()]


def read(path: Path) -> Written:
    """Read a run that was written by `earshot simulate --out`.

    The digest in the file detects an accident or an afterthought, such as a figure that was rounded
    by hand. It is not a signature: whoever wants to deceive can compute it again.

    Args:
        path: Path of `result.json`, or of the folder that holds it.

    Raises:
        InvalidInputError: if there is no such file, or it is not the result of a simulated phase.
        EditedResultError: if something in it was changed after it was written.
    """
    file = path / RESULT if path.is_dir() else path
    try:
        figures = json.loads(file.read_bytes())
    except FileNotFoundError:
        if inner := _of_routes(path):
            raise InvalidInputError(
                f"{path}: holds a run of each route; name one of them: "
                f"{' or '.join(map(str, inner))}"
            ) from None
        raise InvalidInputError(
            f"{file}: there is no such file; name the {RESULT} of a run, or its folder"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise InvalidInputError(
            f"{file}: is not JSON; name the {RESULT} that `earshot simulate --out` wrote"
        ) from None
    lacking = [name for name in _NEEDED if not isinstance(figures, dict) or name not in figures]
    if lacking:
        raise InvalidInputError(
            f"{file}: has no {' and no '.join(lacking)}; name the {RESULT} of a simulated phase "
            "that `earshot simulate --out` wrote, in a version that keeps them"
        )
    kept = figures.pop(DIGEST)
    if kept != digest(figures):
        raise EditedResultError(
            f"{file}: was edited after the run wrote it (its digest differs); restore the file, "
            "or run its settings again"
        )
    return Written(file, figures | {"configuration": _as_now(figures["configuration"])})


def _as_now(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop the ε that former versions recorded beside a budget without using it."""
    local = configuration.get("discovery") == Discovery.LOCAL
    unread = local and configuration.get("budget") is not None
    return {**configuration, "epsilon": None} if unread else configuration
