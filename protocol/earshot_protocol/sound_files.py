"""Names of sound files, whether the reader at hand decodes them or not."""

from __future__ import annotations

_KINDS = (
    "3ga 3gp aac ac3 aif aifc aiff amr ape au caf flac m4a m4b mka mkv mov mp2 mp3 mp4 mpc oga ogg "
    "opus ra rf64 snd w64 wav wave weba webm wma wv"
)

SOUND_SUFFIXES = frozenset(f".{kind}" for kind in _KINDS.split())
"""Suffixes of files that recorders write and downloads bring, in lower case."""
