"""`earshot starts`."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from earshot_models.commands.listing import list_dataset
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.sound_reading import unreadable_sentence

app = App()


@app.default
def starts(
    *,
    encoder: str,
    out: Path,
    data: list[Path] | None = None,
    share: list[float] | None = None,
    synthesized: float = 0.1,
    seed: int = 0,
    cache: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Recompute the start centroids of an encoder from public sound, without training.

    Args:
        encoder: Encoder file, or the name of a shipped encoder.
        out: New encoder file, with the same network and name.
        data: Folder of public sound; give it once for each. Labels are not read.
        share: Share of each folder, in their order; equal by default.
        synthesized: Share of synthesized scenes, 0 to 1.
        seed: Seed of the choice of seconds.
        cache: Folder that keeps decoded sound between runs.
        overwrite: Replace the file of --out.
    """
    from earshot_client.encoder import encoder_path
    from earshot_models.origins import SoundSource
    from earshot_simulations.probing.starts import renewed

    folders = data or []
    if not folders and synthesized != 1:
        raise InvalidInputError(
            "--data: name a folder of sound, or take synthesized scenes alone with --synthesized 1"
        )
    if share and len(share) != len(folders):
        raise InvalidInputError(
            f"--share: give one for each of {len(folders)} --data, or none at all"
        )
    if out.exists() and not overwrite:
        raise InvalidInputError(f"--out {out}: this file exists; --overwrite replaces it")
    shares = share or [1.0] * len(folders)
    sources = [
        SoundSource(list_dataset(folder), each)
        for folder, each in zip(folders, shares, strict=True)
    ]
    with shown() as progress:
        content, unreadable = renewed(
            encoder_path(encoder), sources, synthesized, seed, cache, progress
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(out, content)
    if unreadable:
        print(unreadable_sentence(unreadable))
    print(f"{out}: {len(content)} bytes")
