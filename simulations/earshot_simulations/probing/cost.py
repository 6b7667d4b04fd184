"""Cost of an encoder file to a phone: bytes, CPU and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_protocol.errors import WrongStateError
from earshot_protocol.spectrum import Spectrum

_SECONDS = 200
_PASSES = 5

# A minimal client: it embeds a second of sound, prints a line, and waits.
_CLIENT = """
import sys
import numpy as np
from earshot_client import Phone
from earshot_client.lite_rt_encoder import LiteRtEncoder
encoder = LiteRtEncoder.open(sys.argv[1])
encoder.embed(np.random.default_rng(0).normal(0, 0.1, (1, encoder.rate)))
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class EncoderCost:
    """The cost of one encoder file.

    Attributes:
        bytes: Size of the file in bytes.
        cpu_ms: Milliseconds of CPU, on one thread, from a second of sound to its embedding; the
            median of several passes, one second at a time.
        spectrum_ms: Part of `cpu_ms` before the network starts.
        resident_mb: Memory of a client process that has embedded one second, in 2**20 bytes.
    """

    bytes: int
    cpu_ms: float
    spectrum_ms: float
    resident_mb: float


def cost(path: Path) -> EncoderCost:
    """Measure the cost of an encoder file on this machine.

    Raises:
        DamagedEncoderError: The file is not an encoder file.
        MissingRuntimeError: LiteRT is not installed.
    """
    from earshot_client.lite_rt_encoder import spectrum

    encoder = LiteRtEncoder.open(path)
    heard = Spectrum(encoder.rate)
    noise = np.random.default_rng(0).normal(0, 0.1, (_SECONDS, 1, encoder.rate))
    sound = noise.astype(np.float32)
    encoder.embed(sound[0])
    whole, front = [], []
    for _ in range(_PASSES):
        start = time.process_time()
        for second in sound:
            encoder.embed(second)
        between = time.process_time()
        for second in sound:
            spectrum(second, heard)
        whole.append(between - start)
        front.append(time.process_time() - between)
    return EncoderCost(
        path.stat().st_size,
        float(np.median(whole)) / _SECONDS * 1000,
        float(np.median(front)) / _SECONDS * 1000,
        _resident(path),
    )


def _resident(path: Path) -> float:
    import psutil

    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", _CLIENT, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    ) as client:
        # It waits until its input ends, which happens on leaving this block.
        ready = client.stdout.readline() if client.stdout else ""
        if not ready:
            raise WrongStateError("the client process ended before it was ready")
        return float(psutil.Process(client.pid).memory_info().rss / 2**20)
