"""A kept run done again: whether it can be, and whether it came out the same."""

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
    """A folder of sound, or an encoder, that is not the one of the run."""


def repeatable(written: Written) -> tuple[Settings, dict[str, Pair]]:
    """The settings with which a run is done again, once it is known that it can be.

    Returns:
        the settings, and what of the libraries and the machine is another: (then, now) by name.
            These seldom change a figure, so they are no reason not to try.

    Raises:
        OtherVersionError: another version of Earshot wrote it.
        OtherSoundError: the sound or the encoder has changed since.
        InvalidInputError: the run was interrupted: nobody knows where; or there is no such folder.
        InvalidParametersError: settings that this version cannot run.
    """
    figures, file = written.figures, written.path
    check_version(file, figures["version"])
    ended = figures.get("interrupted")
    if ended is not None and not str(ended).startswith(PHASE_FAILED):
        raise InvalidInputError(
            f"{file}: this run was {ended}, so there is no end to come to again; run its settings "
            "anew (its report has the command)"
        )
    settings = written.settings
    settings.check()
    now = provenance(settings)
    for what, place in (("data", settings.data), ("encoder", settings.encoder)):
        if now[what] != figures["provenance"].get(what):
            raise OtherSoundError(
                f"{file}: {what} {place} is not what the run had (its SHA-256 is another); bring "
                "back the files of then, or run the settings anew"
            )
    return settings, differing(figures["provenance"].get("versions"), versions())


def outcome(written: Written, repeated: Mapping[str, Any]) -> dict[str, Pair]:
    """What differs between a kept run and its repetition, (then, now) by place; empty if nothing.

    Args:
        written: the kept run.
        repeated: `learning.run.result` of the repetition.
    """
    now = {name: value for name, value in repeated.items() if name != DIGEST}
    return results_differing(written.figures, now)
