"""The repetition of a kept run: whether it is possible, and whether the result is the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earshot_protocol.errors import InvalidInputError
from earshot_simulations.learning.differences import Pair, differing, results_differing
from earshot_simulations.learning.provenance import check_version, provenance, versions
from earshot_simulations.learning.run import DIGEST, PHASE_FAILED
from earshot_simulations.learning.settings import Settings
from earshot_simulations.learning.written import Written


class OtherSoundError(InvalidInputError):
    """A folder of sound, or an encoder, is not that of the run."""


def repeatable(written: Written) -> tuple[Settings, dict[str, Pair]]:
    """Check that a run can be repeated, and return the settings for it.

    Returns:
        Settings, and the libraries and machine that differ: (then, now) by name. These seldom
        change a figure, so a repetition is possible all the same.

    Raises:
        OtherVersionError: if another version of Earshot wrote the run.
        OtherSoundError: if the sound or the encoder has changed since.
        InvalidInputError: if the run was interrupted, at an unknown point, or there is no such
            folder.
        InvalidParametersError: if this version cannot run the settings.
    """
    figures, file = written.figures, written.path
    check_version(file, figures["version"])
    ended = figures.get("interrupted")
    if ended is not None and not str(ended).startswith(PHASE_FAILED):
        raise InvalidInputError(
            f"{file}: this run was {ended}, so it has no result to repeat; run its settings again "
            "(its report has the command)"
        )
    settings = written.settings
    settings.check()
    now = provenance(settings)
    for what, place in (("data", settings.data), ("encoder", settings.encoder)):
        if now[what] != figures["provenance"].get(what):
            raise OtherSoundError(
                f"{file}: {what} {place} is not that of the run (its SHA-256 differs); restore the "
                "original files, or run the settings again"
            )
    return settings, differing(figures["provenance"].get("versions"), versions())


def outcome(written: Written, repeated: Mapping[str, Any]) -> dict[str, Pair]:
    """Return the differences between a kept run and its repetition, (then, now) by place.

    Args:
        written: Kept run.
        repeated: Result of the repetition, from `learning.run.result`.
    """
    now = {name: value for name, value in repeated.items() if name != DIGEST}
    return results_differing(written.figures, now)
