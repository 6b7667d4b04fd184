"""The microphone of a machine, second by second (needs the extra `microphone`)."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from earshot_client.hearing import Second
from earshot_protocol import distribution
from earshot_protocol.errors import LocalError
from earshot_protocol.spectrum import WIDE


class MicrophoneError(LocalError):
    """A microphone that is missing or does not work."""


class Microphone:
    """Some seconds from the default microphone.

    Args:
        count: Number of seconds to hear.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def seconds(self) -> tuple[Second, ...]:
        """Return new seconds, with random names."""
        return tuple(Second(f"microphone {secrets.token_hex(8)}") for _ in range(self._count))

    def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
        """Record one second, now.

        Returns:
            float32 (16000, 1), and 16000 samples per second: the highest rate of any encoder.

        Raises:
            MicrophoneError: The microphone does not work; the message says why.
        """
        try:
            import sounddevice
        except ImportError as error:
            raise MicrophoneError(
                distribution.unusable(
                    "microphones", "sounddevice", "sounddevice", "microphone", error
                )
            ) from error
        except OSError as error:  # the Python package is installed, but PortAudio is not
            raise MicrophoneError(
                f"no microphone: {error}; install PortAudio with your system's packages, for "
                "example by `apt install libportaudio2`"
            ) from error
        try:
            samples = sounddevice.rec(
                WIDE.rate, samplerate=WIDE.rate, channels=1, dtype="float32", blocking=True
            )
        except sounddevice.PortAudioError as error:
            raise MicrophoneError(f"the microphone does not work: {error}") from error
        return np.asarray(samples, dtype=np.float32), WIDE.rate
