"""The encoders to probe, all opened before any work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot_client.encoder import Encoder, encoder_path
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_protocol.encoder_file import DamagedEncoderError
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.probing.baseline import LogMelStatistics

HELD = "{held}"
"""Placeholder in an encoder's path for the held-out fold or speaker."""

RAW = "--raw"

_MOST_NAMED = 5


@dataclass(frozen=True)
class Contender:
    """An encoder, or one for each held-out side.

    Attributes:
        label: Name in tables and pictures, unique among contenders.
        given: Encoder as given on the command line.
        encoders: Encoders by held-out side.
        paths: Encoder files by held-out side; empty for log-mel statistics.
    """

    label: str
    given: str
    encoders: dict[str, Encoder]
    paths: dict[str, Path]


def open_contenders(given: Sequence[str], raw: bool, sides: Sequence[str]) -> list[Contender]:
    """Open every encoder file that a probe needs.

    Args:
        given: Paths, which may contain `HELD`, or names of shipped encoders.
        raw: Whether log-mel statistics are another contender.
        sides: Sides to hold out in turn.

    Raises:
        InvalidInputError: An encoder is given twice.
        DamagedEncoderError: Some files are not encoder files; the message names the first of
            them.
        MissingRuntimeError: LiteRT is not installed.
    """
    twice = [each for each, count in Counter(given).items() if count > 1]
    if twice:
        raise InvalidInputError(f"--encoder {twice[0]} is given twice; give each encoder once")
    opened: dict[Path, Encoder] = {}
    wrong: list[str] = []
    found = []
    for each in given:
        paths = {side: encoder_path(each.replace(HELD, side)) for side in sides}
        for path in dict.fromkeys(paths.values()):
            try:
                opened[path] = opened.get(path) or LiteRtEncoder.open(path)
            except DamagedEncoderError as error:
                wrong.append(str(error))
        if not wrong:
            found.append((each, {side: opened[path] for side, path in paths.items()}, paths))
    if wrong:
        more = len(wrong) - _MOST_NAMED
        raise DamagedEncoderError(
            "; ".join(wrong[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
        )
    if raw:
        statistics = LogMelStatistics()
        found.append((RAW, dict.fromkeys(sides, statistics), {}))
    labels: Counter[str] = Counter()
    contenders = []
    for each, encoders, paths in found:
        names = list(dict.fromkeys(encoder.name for encoder in encoders.values()))
        label = names[0] if len(names) == 1 else f"{names[0]} …"
        labels[label] += 1
        if labels[label] > 1:
            label = f"{label} ({labels[label]})"
        contenders.append(Contender(label, each, encoders, paths))
    return contenders
