"""A page to listen to sounds on, with a picture of each: generated samples, or a tagged folder.

It states the origin and the likely worth of its sounds before it plays any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_models.generators.spectrogram import SpectrogramSettings, strip
from earshot_protocol import checks, distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_simulations.generation import wav
from earshot_simulations.reporting import drawing
from earshot_simulations.reporting.drawing import PALETTE, Picture, data_uri, short
from earshot_simulations.reporting.pages import page

LONGEST = 10.0
"""Longest part of a sound on the page, in seconds; the rest is in its file."""
MOST_BYTES = 12 * 2**20
"""Most bytes of sound on one page."""

RATE = 16_000
"""Samples per second of sound that is read from files for a page."""

_HEIGHT = 1.9
_RANGE = 60
"""Range of the colours in decibels, from none to full."""
_HERTZ = (250, 500, 1000, 2000, 4000, 8000)
_NAME = 60
"""Most characters of a title."""


@dataclass(frozen=True)
class PlayedSound:
    """One player.

    Attributes:
        name: Title of the sound, unique on its page.
        samples: Samples, float32 (samples,) with full scale at ±1, at least one.
        rate: Samples per second, a multiple of 1,000.
        words: Text below the title, such as the sound's labels.
    """

    name: str
    samples: NDArray[np.float32]
    rate: int
    words: str = ""


@dataclass(frozen=True)
class Listening:
    """The content of a page.

    Attributes:
        kicker: Kind of the page.
        headline: Outcome in one plain sentence.
        warnings: Warnings that nobody may miss: lack of privacy, or possible noise.
        origin: Sentence that says who learned from what.
        sounds: Sounds in the order of the page.
        facts: Other facts, in two columns.
        unseen: Number of further sounds that are not in `sounds`.
    """

    kicker: str
    headline: str
    warnings: Sequence[str]
    origin: str
    sounds: Sequence[PlayedSound]
    facts: Sequence[tuple[str, str]] = ()
    unseen: int = 0


def sound_of(path: Path, name: str, words: str = "") -> PlayedSound:
    """Read the beginning of a sound file, at `RATE`.

    Raises:
        UnreadableFileError: The file does not decode.
    """
    from earshot_models import audio

    # One second longer than is played, so that the page says that there is more.
    samples = audio.read_mono(path, RATE)[: int((LONGEST + 1) * RATE)]
    return PlayedSound(name, samples, RATE, words)


def write(listening: Listening, path: Path) -> None:
    """Write the page, as a whole or not at all."""
    replace_file(path, render(listening))


def render(listening: Listening) -> str:
    """Render the page as one HTML document that loads nothing from elsewhere.

    Raises:
        InvalidInputError: Two sounds have the same name, or one is empty or not finite.
        InvalidParametersError: No picture can be made at a sound's rate.
    """
    names = [sound.name for sound in listening.sounds]
    if len(set(names)) < len(names):
        raise InvalidInputError("sounds: names must differ, or players cannot be told apart")
    players, left = _players(listening.sounds)
    return page(
        "generation/page.html",
        title=listening.kicker,
        kicker=f"Earshot · {listening.kicker}",
        headline=listening.headline,
        version=distribution.version(),
        warnings=listening.warnings,
        origin=listening.origin,
        facts=listening.facts,
        players=players,
        decibels=_RANGE,
        more=left + listening.unseen,
    )


class _PlayerElement(NamedTuple):
    """A sound as its page shows it."""

    name: str
    words: str
    picture: Picture
    source: Markup


def _players(sounds: Sequence[PlayedSound]) -> tuple[list[_PlayerElement], int]:
    """Return as many first sounds as fit, and the number of the others."""
    players: list[_PlayerElement] = []
    room = MOST_BYTES
    for number, sound in enumerate(sounds):
        heard = sound.samples[: int(LONGEST * sound.rate)]
        content = wav.encoded(heard, sound.rate)
        room -= len(content)
        if room < 0:
            return players, len(sounds) - number
        players.append(_player(sound, heard, content))
    return players, 0


def _player(sound: PlayedSound, heard: NDArray[np.float32], content: bytes) -> _PlayerElement:
    name = short(sound.name, _NAME)
    cut = f" The first {LONGEST:g} seconds." if len(heard) < len(sound.samples) else ""
    picture = _picture(name, heard, sound.rate)
    return _PlayerElement(
        name, f"{sound.words}{cut}".strip(), picture, data_uri("audio/wav", content)
    )


def _picture(name: str, samples: NDArray[np.float32], rate: int) -> Picture:
    settings = _settings(rate)
    seen = strip(samples, settings)
    share = _colour(seen, settings).T
    middles = settings.band_hertz()
    seconds = len(samples) / rate
    extent = (0.0, len(seen) * settings.hop / rate, 0.0, float(settings.bands))

    def draw(axes: Axes) -> None:
        from matplotlib.colors import to_rgb

        # Opacity instead of a colour scale: the same picture works on white and on black.
        solid = np.broadcast_to(to_rgb(PALETTE[0]), (*share.shape, 3))
        pixels = np.dstack([solid, share])
        axes.imshow(pixels, origin="lower", aspect="auto", extent=extent, interpolation="none")
        marks = [hertz for hertz in _HERTZ if hertz <= middles[-1]]
        axes.set_yticks(np.interp(marks, middles, np.arange(settings.bands) + 0.5))
        axes.set_yticklabels([f"{hertz / 1000:g}" for hertz in marks])
        axes.set_ylabel("kHz")
        axes.set_xlabel("seconds")
        axes.set_xlim(0, seconds)
        axes.set_ylim(0, settings.bands)

    return drawing.picture(draw, _HEIGHT, _described(name, seen, seconds, settings))


def _colour(seen: NDArray[np.float32], settings: SpectrogramSettings) -> NDArray[np.float64]:
    """Return colours from 0 to 1: full at the loudest, none `_RANGE` below or at the floor."""
    span = settings.ceiling - settings.floor
    above = (seen.astype(np.float64) + 1) / 2 * span
    most = above.max()
    least = max(0.0, most - _RANGE)
    colour: NDArray[np.float64] = np.clip((above - least) / max(most - least, 1e-9), 0, 1)
    return colour


def _described(
    name: str, seen: NDArray[np.float32], seconds: float, settings: SpectrogramSettings
) -> str:
    """Describe a picture in words."""
    about = f"Mel spectrogram of {name}, {seconds:.2g} s:"
    if seen.max() <= -1:
        return f"{about} silent."
    frame, band = np.unravel_index(seen.argmax(), seen.shape)
    decibels = settings.floor + (seen.max() + 1) / 2 * (settings.ceiling - settings.floor)
    at = (frame + 0.5) * settings.hop / settings.rate
    return (
        f"{about} loudest at {at:.2g} s, near {settings.band_hertz()[band]:.0f} Hz, "
        f"{-decibels:.0f} dB below full scale; {np.mean(seen > -0.5):.0%} of it is louder than "
        "60 dB below."
    )


def _settings(rate: int) -> SpectrogramSettings:
    """Return settings fine enough for eyes: frames of 50 ms, every 20 ms."""
    checks.whole("rate", rate)
    return SpectrogramSettings(rate=rate, frames=50, bands=64, window=2 * (rate // 40))
