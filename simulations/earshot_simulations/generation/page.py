"""A page to listen to sounds on, with a picture of each: generated samples, or a tagged folder.

It says where its sounds come from and what they may be worth before it plays any.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_models.generators.spectrogram import SpectrogramSettings, strip
from earshot_protocol import checks, distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_server.dashboard.wording import counted
from earshot_simulations.generation import wav
from earshot_simulations.learning import drawing
from earshot_simulations.learning.drawing import PALETTE, Picture, short
from earshot_simulations.learning.markup import (
    alert,
    document,
    escaped,
    figure,
    grid,
    lead,
    player,
    section,
    table,
)

LONGEST = 10.0
"""Seconds of a sound that are on the page; the rest is in its file."""
MOST_BYTES = 12 * 2**20
"""Of sound on one page."""

RATE = 16_000
"""Samples per second of sound that is read from files for a page."""

_HEIGHT = 1.9
_RANGE = 60.0
"""Decibels, from no colour to all of it."""
_HERTZ = (250, 500, 1000, 2000, 4000, 8000)
_NAME = 60
"""Characters of a title."""
_NOTHING = "There is nothing to listen to."


@dataclass(frozen=True)
class Sound:
    """One player.

    Attributes:
        name: its title; different for each sound of a page.
        samples: float32 (samples,) with full scale at ±1, at least one.
        rate: samples per second, a multiple of 1,000.
        words: below the title, such as the labels that it was given.
    """

    name: str
    samples: NDArray[np.float32]
    rate: int
    words: str = ""


@dataclass(frozen=True)
class Listening:
    """What a page is about.

    Attributes:
        kicker: what kind of page it is.
        headline: the outcome in one plain sentence.
        warnings: what nobody shall miss: what is not private, what may be noise.
        origin: who learned from what, in a sentence.
        sounds: in the order of the page.
        facts: what else is known, in two columns.
        unseen: sounds that there are besides.
    """

    kicker: str
    headline: str
    warnings: Sequence[str]
    origin: str
    sounds: Sequence[Sound]
    facts: Sequence[tuple[str, str]] = ()
    unseen: int = 0


def sound_of(path: Path, name: str, words: str = "") -> Sound:
    """The beginning of a sound in a file, at `RATE`.

    Raises:
        UnreadableFileError: it does not decode.
    """
    from earshot_models import audio

    # One second more than is played, so that the page says that there is more.
    samples = audio.read_mono(path, RATE)[: int((LONGEST + 1) * RATE)]
    return Sound(name, samples, RATE, words)


def write(listening: Listening, path: Path) -> None:
    """Write the page, whole or not at all."""
    replace_file(path, render(listening))


def render(listening: Listening) -> str:
    """The whole page as one HTML document that loads nothing from elsewhere.

    Raises:
        InvalidInputError: two sounds of one name, or one that is empty or not finite.
        InvalidParametersError: a rate that no picture can be made of.
    """
    names = [sound.name for sound in listening.sounds]
    if len(set(names)) < len(names):
        raise InvalidInputError("sounds: each needs a name of its own, or players cannot be told")
    cards, left = _cards(listening.sounds)
    more = left + listening.unseen
    words = f"Nothing plays by itself. {_ABOUT}" if cards else _NOTHING
    rest = lead(f"{counted(more, 'more sound')} not on this page.") if more else ""
    facts = table("What is known.", ("What", "Is"), listening.facts) if listening.facts else ""
    return document(
        title=listening.kicker,
        kicker=f"Earshot · {listening.kicker}",
        headline=listening.headline,
        notes="".join(map(alert, listening.warnings)),
        sections=(
            section("Where the sounds come from", lead(listening.origin) + facts),
            section("Listen", lead(words) + grid(*cards) + rest),
        ),
        version=distribution.version(),
        sound=True,
    )


_ABOUT = (
    "A picture shows time from left to right and pitch from low to high. Its loudest place has "
    f"most colour, what is {_RANGE:g} dB softer or hardly there has none; colours of two pictures "
    "do not compare."
)


def _cards(sounds: Sequence[Sound]) -> tuple[list[str], int]:
    """Figures of the first sounds, as many as there is room for, and how many are left out."""
    cards: list[str] = []
    room = MOST_BYTES
    for number, sound in enumerate(sounds):
        heard = sound.samples[: int(LONGEST * sound.rate)]
        content = wav.encoded(heard, sound.rate)
        room -= len(content)
        if room < 0:
            return cards, len(sounds) - number
        cards.append(_card(sound, heard, content))
    return cards, 0


def _card(sound: Sound, heard: NDArray[np.float32], content: bytes) -> str:
    name = short(sound.name, _NAME)
    cut = f" The first {LONGEST:g} seconds." if len(heard) < len(sound.samples) else ""
    uri = "data:audio/wav;base64," + base64.b64encode(content).decode()
    picture = _picture(name, heard, sound.rate)
    return figure(escaped(name), f"{sound.words}{cut}".strip(), picture, player(name, uri))


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
    """From 0 to 1: all for a picture's own loudest, none for what is `_RANGE` softer, or hardly."""
    span = settings.ceiling - settings.floor
    above = (seen.astype(np.float64) + 1) / 2 * span
    most = above.max()
    least = max(0.0, most - _RANGE)
    colour: NDArray[np.float64] = np.clip((above - least) / max(most - least, 1e-9), 0, 1)
    return colour


def _described(
    name: str, seen: NDArray[np.float32], seconds: float, settings: SpectrogramSettings
) -> str:
    """In words what a picture shows."""
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
    """Fine enough for eyes: frames of 50 ms, every 20 ms."""
    checks.whole("rate", rate)
    return SpectrogramSettings(rate=rate, frames=50, bands=64, window=2 * (rate // 40))
