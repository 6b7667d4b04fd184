"""Reading of sound files, in one place: by seconds, in bounded memory, with one kind of error.

A phone's command line, trainings and simulations all read here, so that they accept the same files.
A file's header is not trusted: only the decoded sound counts. The decoding library, soundfile,
comes with an extra and is loaded when a file is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import RATES

SUFFIXES = (".au", ".flac", ".mp3", ".ogg", ".wav")
"""Suffixes of the sound files that are read, in lower case; case is ignored."""

_KINDS = (
    "3ga 3gp aac ac3 aif aifc aiff amr ape au caf flac m4a m4b mka mkv mov mp2 mp3 mp4 mpc oga ogg "
    "opus ra rf64 snd w64 wav wave weba webm wma wv"
)
SOUND_SUFFIXES = frozenset(f".{kind}" for kind in _KINDS.split())
"""Suffixes of common sound files, whether they can be read here or not."""

MOST_FRAMES = 2**28
"""Most samples per channel of a file: 93 minutes at 48 kHz, 4.6 hours at 16 kHz; 1 GiB as mono."""
MOST_CHANNELS = 64
LOUDEST = 1000.0
"""Magnitude above which samples are not plausible sound: 60 dB above full scale, which is 1."""

_MOST_NAMED = 5


class UnreadableFileError(InvalidInputError):
    """A file that cannot be read as sound; the message names it and says why."""


class SoundFile:
    """A sound file that is open for reading; see `opened`.

    Attributes:
        rate: Samples per second.
    """

    rate: int

    def __init__(self, path: Path, file: Any) -> None:
        self.rate = int(file.samplerate)
        self._path, self._file = path, file
        # Otherwise soundfile seeks to its own position after each block, which fails at the end of
        # a FLAC file whose header does not state its length.
        file.seekable = lambda: False
        if not RATES[0] <= self.rate <= RATES[1]:
            raise UnreadableFileError(
                f"{visible(path)} has {self.rate} samples per second; {RATES[0]} to {RATES[1]} are "
                "accepted"
            )
        if not 1 <= file.channels <= MOST_CHANNELS:
            raise UnreadableFileError(
                f"{visible(path)} has {file.channels} channels; 1 to {MOST_CHANNELS} are accepted"
            )

    def seconds(self) -> Iterator[NDArray[np.float32]]:
        """Yield the whole file, second by second; the last may be shorter.

        Yields:
            float32 (rate, channels), finite, in [-1, 1] unless the file goes beyond full scale.

        Raises:
            UnreadableFileError: The file does not decode; or it has no samples, too many, or some
                that are not plausible sound; or it is an Ogg file of several streams, of which only
                the first would be read.
        """
        if self._file.format == "OGG" and _is_chained(self._path):
            raise UnreadableFileError(
                f"{visible(self._path)} holds several streams, one after the other; convert it to "
                "one"
            )
        frames = 0
        while len(second := self._read()):
            frames += len(second)
            if frames > MOST_FRAMES:
                raise UnreadableFileError(
                    f"{visible(self._path)} is longer than {MOST_FRAMES:,} samples, "
                    f"{MOST_FRAMES / self.rate / 60:.0f} minutes at its rate; cut it into shorter "
                    "files"
                )
            yield second
            if len(second) < self.rate:
                break
        if not frames:
            raise UnreadableFileError(f"{visible(self._path)} holds no samples")

    def second(self, number: int) -> NDArray[np.float32]:
        """Return one second, float32 (rate, channels), of a file that was read before.

        Raises:
            UnreadableFileError: The file does not hold this second any more.
        """
        # An MP3 frame depends on those before it: just after a seek, the first are wrong.
        early = min(number, 1)
        with _one_error(self._path):
            self._file.seek((number - early) * self.rate)
        for _ in range(early):
            self._read()
        samples = self._read()
        if len(samples) < self.rate:
            raise UnreadableFileError(f"{visible(self._path)} ends before its second {number + 1}")
        return samples

    def _read(self) -> NDArray[np.float32]:
        with _one_error(self._path):
            block = np.empty((self.rate, self._file.channels), np.float32)
            samples: NDArray[np.float32] = self._file.read(out=block)
        loudest = np.abs(samples).max(initial=0)
        if not np.isfinite(loudest):
            raise UnreadableFileError(f"{visible(self._path)} holds NaN or infinite samples")
        if loudest > LOUDEST:
            raise UnreadableFileError(
                f"{visible(self._path)} holds a sample of {loudest:.3g}, where full scale is 1"
            )
        return samples


@contextmanager
def opened(path: Path) -> Iterator[SoundFile]:
    """Open a sound file.

    Raises:
        UnreadableFileError: It is not a regular file, may not be read, or is not sound of a
            kind, a rate and a number of channels that are accepted.
    """
    import soundfile

    with _one_error(path):
        # By descriptor, since soundfile accepts only names in UTF-8, and libsndfile accepts any
        # file named .au as sound. Not blocking, since opening a pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnreadableFileError(f"{visible(path)} is not a regular file")
        with _one_error(path):
            file = soundfile.SoundFile(handle, closefd=False)
        with file:
            yield SoundFile(path, file)
    finally:
        os.close(handle)


def visible(name: Path | str) -> str:
    """Return a file's name as printable text, with escapes for all other characters."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(name)
    )


def unreadable_sentence(errors: Sequence[str]) -> str:
    """Return a line on unreadable files that were left out, which names the first of them."""
    more = len(errors) - _MOST_NAMED
    return (
        f"left out: {len(errors)} unreadable file{'s' * (len(errors) > 1)}: "
        + "; ".join(errors[:_MOST_NAMED])
        + (f"; and {more} more" if more > 0 else "")
    )


def check_listable(folder: Path) -> None:
    """Refuse a folder that this user cannot list in full: a whole class might be missing.

    Raises:
        InvalidInputError: It, or a folder in it, cannot be listed; the message names the first.
    """
    for place, folders, _ in os.walk(folder):
        shown = [name for name in sorted(folders) if not name.startswith(".")]
        for path in [folder, *(Path(place) / name for name in shown)]:
            if not os.access(path, os.R_OK | os.X_OK):
                raise InvalidInputError(
                    f"{visible(path)}: this folder may not be listed; allow it, or move it away"
                )
        folders[:] = shown


@contextmanager
def _one_error(path: Path) -> Iterator[None]:
    """Turn every error of opening and decoding into an UnreadableFileError.

    They are of four kinds by soundfile, of the system, and of numpy if memory is short.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableFileError(f"{visible(path)} cannot be read: {why}") from error
    except Exception as error:
        why = getattr(error, "error_string", "") or str(error) or type(error).__name__
        raise UnreadableFileError(f"{visible(path)} does not decode: {why.rstrip('.')}") from error


def _is_chained(path: Path) -> bool:
    """Return whether a stream begins in an Ogg file after another's data (RFC 3533, section 4)."""
    begun = False
    with _one_error(path), path.open("rb") as file:
        while len(page := file.read(27)) == 27 and page.startswith(b"OggS"):
            first = bool(page[5] & 2)
            if first and begun:
                return True
            begun = begun or not first
            file.seek(sum(file.read(page[26])), os.SEEK_CUR)
    return False
