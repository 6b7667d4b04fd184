"""A machine's microphone, second by second (needs the extra `microphone`)."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from earshot_client.hearing import Second
from earshot_protocol import distribution
from earshot_protocol.errors import LocalError
from earshot_protocol.spectrum import WIDE


class MicrophoneError(LocalError):
    """There is no microphone, or it does not work."""


class Microphone:
    """So many seconds from the default microphone.

    Args:
        count: how many there are to hear.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def seconds(self) -> tuple[Second, ...]:
        """Seconds that no phone has heard before."""
        return tuple(Second(f"microphone {secrets.token_hex(8)}") for _ in range(self._count))

    def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
        """Record one second, now.

        Returns:
            float32 (16000, 1), and 16000 samples per second: whatever any encoder hears.

        Raises:
            MicrophoneError: says what is wrong with it.
        """
        try:
            import sounddevice
        except ImportError as error:
            raise MicrophoneError(
                f"no microphone ({error}): {distribution.installation('microphone')}"
            ) from error
        except OSError as error:  # the Python package is there, and PortAudio is not
            raise MicrophoneError(
                f"no microphone: {error}; PortAudio comes with your system, such as by "
                "`apt install libportaudio2`"
            ) from error
        try:
            samples = sounddevice.rec(
                WIDE.rate, samplerate=WIDE.rate, channels=1, dtype="float32", blocking=True
            )
        except sounddevice.PortAudioError as error:
            raise MicrophoneError(f"the microphone does not work: {error}") from error
        return np.asarray(samples, dtype=np.float32), WIDE.rate
