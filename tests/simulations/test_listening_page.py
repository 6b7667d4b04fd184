"""The page to listen on: whole, safe against names, honest first; and WAV as others read it."""

from __future__ import annotations

import base64
import io
import re
import wave
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.generation import page, wav
from earshot_simulations.generation.page import Listening, PlayedSound

WARNING = "Any of these samples may be noise."


class Elements(HTMLParser):
    """All elements with their attributes, in order, and all text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, wanted: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == wanted]


def tone(seconds: float = 0.5, rate: int = 8000, hertz: float = 440) -> NDArray[np.float32]:
    times = np.arange(int(seconds * rate)) / rate
    return (0.1 * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def listening(*sounds: PlayedSound, unseen: int = 0) -> Listening:
    return Listening(
        kicker="generated sound",
        headline="Two samples.",
        warnings=[WARNING],
        origin="Trained on public sound alone.",
        sounds=sounds,
        facts=[("clips", "450")],
        unseen=unseen,
    )


def test_every_sound_has_a_player_a_picture_and_its_words_and_nothing_is_loaded() -> None:
    document = page.render(
        listening(
            PlayedSound("Sample 1", tone(), 8000, "Teachers say: 7"),
            PlayedSound("b", tone(), 16_000),
        )
    )
    elements = Elements(document)
    for tag, attributes in elements.found:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form")
        assert not [name for name in attributes if name.startswith("on")]
        assert "autoplay" not in attributes
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:")
    names = [each["aria-label"] for each in elements.of("audio")]
    assert names == ["Sample 1", "b"]
    assert all("controls" in each for each in elements.of("audio"))
    alts = [each["alt"] or "" for each in elements.of("img")]
    assert alts[0].startswith("Mel spectrogram of Sample 1, 0.5 s: loudest at")
    assert "Teachers say: 7" in elements.text
    (policy,) = [each["content"] for each in elements.of("meta") if "http-equiv" in each]
    assert policy == (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; media-src data:"
    )


def test_what_may_be_noise_and_where_it_comes_from_is_said_before_anything_plays() -> None:
    document = page.render(listening(PlayedSound("a", tone(), 8000)))
    first = document.index("<audio")
    for words in (WARNING, "Trained on public sound alone.", "450"):
        assert 0 < document.index(words) < first


def test_players_hold_the_sound_itself() -> None:
    sound = tone()
    (player,) = Elements(page.render(listening(PlayedSound("a", sound, 8000)))).of("audio")
    content = base64.b64decode((player["src"] or "").removeprefix("data:audio/wav;base64,"))
    samples, rate = soundfile.read(io.BytesIO(content), dtype="float32")
    assert rate == 8000
    np.testing.assert_allclose(samples, sound, atol=2e-5)


def test_names_and_words_become_text_never_markup() -> None:
    evil = '"><script>alert(1)</script>\x00'
    document = page.render(
        Listening(evil, evil, [evil], evil, [PlayedSound(evil, tone(), 8000, evil)], [(evil, evil)])
    )
    assert "<script" not in document
    elements = Elements(document)
    assert elements.of("script") == []
    assert "script" in (elements.of("audio")[0]["aria-label"] or "")


def test_long_and_many_sounds_are_cut_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    long = page.render(listening(PlayedSound("long", tone(12), 8000), unseen=2))
    assert "The first 10 seconds." in long
    assert "2 more sounds not on this page." in long
    (player,) = Elements(long).of("audio")
    content = base64.b64decode((player["src"] or "").partition(",")[2])
    assert len(soundfile.read(io.BytesIO(content))[0]) == 80_000
    monkeypatch.setattr(page, "MOST_BYTES", 20_000)
    several = page.render(listening(*(PlayedSound(str(each), tone(), 8000) for each in range(4))))
    assert len(Elements(several).of("audio")) == 2
    assert "2 more sounds not on this page." in several


def test_a_page_without_sounds_says_so() -> None:
    document = page.render(listening())
    assert "There is nothing to listen to." in document
    assert "<audio" not in document


def test_pictures_say_in_words_what_is_in_them() -> None:
    sounds = (
        PlayedSound("low", tone(hertz=300), 8000),
        PlayedSound("none", np.zeros(4000, np.float32), 8000),
    )
    low, none = (each["alt"] or "" for each in Elements(page.render(listening(*sounds))).of("img"))
    found = re.search(r"near (\d+) Hz, (\d+) dB below full scale", low)
    assert found is not None
    assert 270 < int(found[1]) < 330
    assert 17 < int(found[2]) < 24
    assert none == "Mel spectrogram of none, 0.5 s: silent."


def test_two_sounds_of_one_name_and_what_is_no_sound_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="names must differ"):
        page.render(listening(PlayedSound("a", tone(), 8000), PlayedSound("a", tone(), 8000)))
    with pytest.raises(InvalidInputError, match="finite"):
        page.render(listening(PlayedSound("a", np.full(9, np.nan, dtype=np.float32), 8000)))
    with pytest.raises(InvalidInputError, match="no samples"):
        page.render(listening(PlayedSound("a", np.zeros(0, dtype=np.float32), 8000)))
    with pytest.raises(InvalidParametersError):
        page.render(listening(PlayedSound("a", tone(), 8001)))


def test_sounds_of_files_are_read_as_long_as_they_are_played(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([tone(15, 44_100)] * 2, axis=1), 44_100)
    found = page.sound_of(path, "a", "dog")
    assert (found.rate, found.words) == (16_000, "dog")
    assert len(found.samples) == 11 * 16_000
    page.write(listening(found), tmp_path / "page.html")
    assert "The first 10 seconds." in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_is_the_same_every_time() -> None:
    assert page.render(listening(PlayedSound("a", tone(), 8000))) == page.render(
        listening(PlayedSound("a", tone(), 8000))
    )


# ------------------------------------------------------------------------------------------- WAV


def test_wav_is_what_the_standard_library_and_libsndfile_read(tmp_path: Path) -> None:
    sound = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -3.0], dtype=np.float32)
    path = tmp_path / "a.wav"
    wav.write(path, sound, 8000)
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8000)
        whole = np.frombuffer(file.readframes(99), dtype="<i2")
    assert whole.tolist() == [0, 32767, -32767, 16384, 32767, -32767]
    assert soundfile.info(path).subtype == "PCM_16"
    assert [each.name for each in tmp_path.iterdir()] == ["a.wav"]


@pytest.mark.parametrize(
    ("samples", "rate"),
    [(np.zeros((2, 2)), 8000), (np.array([np.inf]), 8000), (np.zeros(2), 10)],
    ids=["table", "infinite", "rate"],
)
def test_what_is_no_sound_is_no_wav(samples: NDArray[np.float32], rate: int) -> None:
    with pytest.raises((InvalidInputError, InvalidParametersError)):
        wav.encoded(samples, rate)
