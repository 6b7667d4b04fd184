"""An encoder file that hears 16 kHz: the shipped network, given the wider spectrum."""

from __future__ import annotations

from pathlib import Path

from earshot_client.encoder import encoder_path
from earshot_protocol import encoder_file
from earshot_protocol.spectrum import WIDE

WIDE_NAME = "wide"


def wide_file(folder: Path) -> Path:
    """The path, where it has been written."""
    shipped = encoder_file.read(encoder_path("contrast-1").read_bytes())
    path = folder / "wide.tflite"
    path.write_bytes(
        encoder_file.pack(
            shipped.model,
            WIDE_NAME,
            int8=True,
            mean=shipped.card.mean,
            scale=shipped.card.scale,
            trained={},
            credits_="",
            spectrum=WIDE,
        )
    )
    return path
