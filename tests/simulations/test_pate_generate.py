"""`earshot pate generate`: from folders to generators, sounds and words on what they are worth."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from support.command import ended

from earshot_models.generators import dp_gan, pate_gan, private_autoencoder
from earshot_models.generators.networks import Decoder
from earshot_models.generators.origin import Origin
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.lnmax import LNMax
from earshot_server.accounting.dp_sgd import training_epsilon
from earshot_simulations.generation import budgets, recipes, run

RATE = 8000
CLIPS = 24


def folder_of(path: Path, seed: int, clips: int = CLIPS) -> Path:
    """Short tones and noises, each other than all others."""
    generator = np.random.default_rng(seed)
    times = np.arange(RATE // 2) / RATE
    for clip in range(clips):
        kind = ("tone", "noise")[clip % 2]
        (path / kind).mkdir(parents=True, exist_ok=True)
        wave = np.sin(2 * np.pi * generator.uniform(300, 2000) * times)
        if kind == "noise":
            wave = generator.normal(size=len(times))
        soundfile.write(path / kind / f"{clip}.wav", 0.1 * wave * np.hanning(len(times)), RATE)
    return path


@pytest.fixture(scope="module")
def sensitive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("sensitive"), 0)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("public"), 1, 60)


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Any:
    def command(*words: object) -> int:
        return ended(monkeypatch, "pate", "generate", *words)

    return command


SMALL = ("--steps", 3, "--batch", 4, "--samples", 2)
BUDGET = ("--epsilon", 8, "--delta", "1e-3")


@pytest.fixture(scope="module")
def published(public: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a generator from public sound."""
    out = tmp_path_factory.mktemp("published") / "out"
    with pytest.MonkeyPatch.context() as patch:
        words = ("pate", "generate", "--kind", "aae", "--public", public, *SMALL, "--out", out)
        assert ended(patch, *words) == 0
    return out


@pytest.mark.slow
def test_a_generator_from_public_sound_says_so_and_how_far_its_samples_are(
    published: Path,
) -> None:
    names = {path.relative_to(published).as_posix() for path in published.rglob("*")}
    assert names == {
        "generator.npz", "listen.html", "report.md", "result.json", "samples",
        "samples/sample-0001.wav", "samples/sample-0002.wav",
    }  # fmt: skip
    figures = json.loads((published / "result.json").read_text())
    assert figures["origin"] == "public"
    assert figures["epsilon"] is None
    distance = figures["distance"]
    assert distance["dimensions"] == 3  # 60 clips have two halves of ten a dimension
    assert distance["samples_from_public"] > distance["public_from_public"] > 0
    assert "never met the sensitive clips" in figures["distance_note"]
    report = (published / "report.md").read_text()
    assert "Trained on public sound alone" in report
    assert "may be noise" in report
    page = (published / "listen.html").read_text()
    assert page.count("<audio") == 2
    assert "may be noise" in page
    assert "not private" not in page
    samples, rate = soundfile.read(published / "samples" / "sample-0001.wav")
    assert (len(samples), rate) == (RATE, RATE)


def test_a_published_file_makes_the_same_samples_and_more(
    published: Path, tmp_path: Path, generate: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out, file = tmp_path / "out", published / "generator.npz"
    assert generate("--from", file, "--samples", 3, "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["origin"] == "public"
    assert len(list((out / "samples").iterdir())) == 3
    for name in ("sample-0001.wav", "sample-0002.wav"):
        assert (out / "samples" / name).read_bytes() == (published / "samples" / name).read_bytes()
    first = (out / "samples" / "sample-0001.wav").read_bytes()
    again = ("--from", file, "--samples", 1, "--out", out)
    assert generate(*again, "--seed", 5) == 2
    assert "not empty" in capsys.readouterr().err
    assert generate(*again, "--seed", 5, "--overwrite") == 0
    (only,) = (out / "samples").iterdir()
    assert only.read_bytes() != first


@pytest.mark.slow
def test_an_autoencoder_of_sensitive_clips_is_called_not_private_everywhere(
    sensitive: Path, tmp_path: Path, generate: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert generate("--kind", "aae", "--clips", sensitive, *SMALL, "--out", out) == 0
    assert "not private" in capsys.readouterr().out
    figures = json.loads((out / "result.json").read_text())
    assert figures["origin"] == "not_private"
    assert figures["distance"] is None
    assert "an uncounted release of its own" in figures["distance_note"]
    report = (out / "report.md").read_text()
    assert report.index("Not private") < report.index("It learned from 24 sensitive clips")
    assert "Treat both as you treat the clips" in report
    page = (out / "listen.html").read_text()
    assert page.index("Not private") < page.index("<audio")
    shutil.rmtree(out / "samples")
    assert generate("--from", out / "generator.npz", "--samples", 1, "--out", tmp_path / "b") == 0
    assert "not private" in (tmp_path / "b" / "listen.html").read_text()


class Given:
    """What a training was called with; it trains nothing."""

    def __init__(self, generator: Any) -> None:
        self.arguments: tuple[Any, ...] = ()
        self.names: dict[str, Any] = {}
        self._generator = generator

    def __call__(self, clips: Any, settings: Any, *arguments: Any, **names: Any) -> Any:
        self.arguments, self.names = (clips, settings, *arguments), names
        (origin,) = [each for each in arguments if isinstance(each, Origin)]
        return self._generator(settings, origin)


@pytest.fixture
def untrained() -> Any:
    """A generator with the weights that it begins with."""
    import jax

    from earshot_models.generators.generator import Generator

    def made(settings: Any, origin: Any) -> Generator:
        decoder = Decoder((32, 40), settings, jax.random.key(0))
        return Generator(decoder, (32, 40), settings, origin)

    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["aae-private", "dp-gan"])
def test_noisy_gradients_cost_no_more_than_the_budget_by_the_accountant(
    kind: str,
    sensitive: Path,
    tmp_path: Path,
    generate: Any,
    untrained: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = Given(untrained)
    module, name = {
        "aae-private": (private_autoencoder, "train_private_autoencoder"),
        "dp-gan": (dp_gan, "train_dp_gan"),
    }[kind]
    monkeypatch.setattr(module, name, given)
    out = tmp_path / "out"
    assert generate("--kind", kind, "--clips", sensitive, *SMALL, *BUDGET, "--out", out) == 0
    pictures, settings, training, origin = given.arguments
    assert len(pictures) == CLIPS
    assert (settings.steps, settings.batch) == (3, 4)
    assert settings.width == 64, "of the recipe: fewer weights, less noise"
    assert (training.rate, training.steps, training.norm) == (4 / CLIPS, 3, 1.0)
    spent = training_epsilon(training.noise, training.rate, training.steps, 1e-3)
    assert 7.9 < spent <= 8
    assert (origin.epsilon, origin.delta, origin.unit) == (8, 1e-3, "clip that is there or not")
    assert "seed" not in given.names, "noise is the operating system's"
    assert not (out / "work").exists()
    report = (out / "report.md").read_text()
    assert "ε = 8 at δ = 0.001" in report
    assert f"{training.noise:.4g}" in report
    assert "Two clips of one person have ε = 16 at δ = 1 – that is, nothing" in report


@pytest.mark.parametrize("mechanism", ["gnmax", pytest.param("lnmax", marks=pytest.mark.slow)])
def test_votes_cost_no_more_than_the_budget_over_all_queries(
    mechanism: str,
    sensitive: Path,
    tmp_path: Path,
    generate: Any,
    untrained: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = Given(untrained)
    monkeypatch.setattr(pate_gan, "train_pate_gan", given)
    out = tmp_path / "out"
    words = ("--kind", "pate-gan", "--clips", sensitive, *SMALL, *BUDGET, "--teachers", 12)
    assert generate(*words, "--mechanism", mechanism, "--out", out) == 0
    _, settings, ensemble, aggregator, origin = given.arguments
    assert pate_gan.queries(settings) == 12
    assert ensemble.teachers == 12
    level = budgets.labels(8.0, 1e-3, 12, budgets.NoisyMax(mechanism))
    assert aggregator == (LNMax(1 / level) if mechanism == "lnmax" else GNMax(level))
    assert (origin.epsilon, origin.delta, origin.unit) == (8, 1e-3, "clip that is another")
    assert "seed" not in given.names, "noise is the operating system's"
    report = (out / "report.md").read_text()
    assert "Δ² = 2" in report
    assert "12 queries" in report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "share"),
    [
        ("pate-gan", "train_pate_gan", recipes.voted_share),
        ("dp-gan", "train_dp_gan", recipes.share),
    ],
)
def test_a_folder_of_public_sound_is_what_a_private_training_starts_with(
    kind: str,
    name: str,
    share: Any,
    sensitive: Path,
    public: Path,
    tmp_path: Path,
    generate: Any,
    untrained: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "START", replace(run.START, steps=2))
    given = [Given(untrained), Given(untrained)]
    votes = ("--teachers", 12) if kind == "pate-gan" else ()
    words = ("--kind", kind, "--clips", sensitive, *SMALL, *BUDGET, *votes)
    for number, (own, folder) in enumerate(zip(given, (("--public", public), ()), strict=True)):
        monkeypatch.setattr(pate_gan if votes else dp_gan, name, own)
        assert generate(*words, *folder, "--out", tmp_path / str(number)) == 0
    started, bare = given
    start = started.names["start"]
    assert bare.names["start"] is None
    assert (start.origin.kind.value, len(start.clips)) == ("public", 60)
    # It is bought by no other noise, and weighed by it alone.
    assert started.arguments[2:] == bare.arguments[2:]
    noise = started.arguments[3].deviation / 12 if votes else started.arguments[2].noise
    assert start.share == share(noise)
    said = [(tmp_path / each / "report.md").read_text() for each in "01"]
    assert "networks that learned 60 public clips" in said[0]
    assert "networks that learned" not in said[1]


@pytest.mark.slow
def test_a_training_that_was_cut_short_goes_on_and_another_is_refused(
    public: Path,
    published: Path,
    tmp_path: Path,
    generate: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from earshot_models.generators import generator_file

    out = tmp_path / "out"
    words = ("--kind", "aae", "--public", public, "--batch", 4, "--samples", 2, "--out", out)
    begun = run._trained

    def cut(*given: Any) -> Any:
        def stop(what: str, done: int, total: int, line: str | None = None) -> None:
            raise KeyboardInterrupt

        *others, _, start = given
        return begun(*others, stop, start)

    monkeypatch.setattr(run, "_trained", cut)
    assert generate(*words, "--steps", 60) == 130
    assert "the same command goes on" in capsys.readouterr().out
    monkeypatch.undo()
    assert [path.name for path in out.iterdir()] == ["work"]
    assert (out / "work").stat().st_mode & 0o077 == 0
    monkeypatch.setattr(sys, "argv", [])
    assert ended(monkeypatch, "pate", "generate", *words, "--steps", 70) == 2
    assert "another training" in capsys.readouterr().err
    assert ended(monkeypatch, "pate", "generate", *words, "--steps", 60) == 0
    assert not (out / "work").exists()
    whole = tmp_path / "whole"
    words = (*words[:-1], whole)
    assert ended(monkeypatch, "pate", "generate", *words, "--steps", 60) == 0
    one, other = (
        generator_file.load(each / "generator.npz").samples(2, 0) for each in (out, whole)
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--kind: name one of aae, aae-private, pate-gan, dp-gan"),
        (("--kind", "aae"), "learns from one folder"),
        (("--kind", "dp-gan", *BUDGET), "needs --clips"),
        (("--kind", "dp-gan", *BUDGET, "--clips", "none"), "there is no folder none"),
        (("--from", "x.npz", "--epsilon", 1), "leave out what trains one"),
        (("--from", "x.npz"), "x.npz"),
        (("--kind", "aae", "--samples", 0), "samples"),
    ],
    ids=["nothing", "no folder", "no clips", "no such folder", "both", "no file", "no samples"],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(
    words: tuple[object, ...],
    said: str,
    tmp_path: Path,
    generate: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate(*words, "--out", "out") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line
    assert list(tmp_path.iterdir()) == []


def test_a_budget_that_buys_nothing_ends_before_any_sound_is_read(
    tmp_path: Path, generate: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files are no sound at all, which nobody notices."""
    for clip in range(CLIPS):
        (tmp_path / f"{clip}.wav").write_bytes(b"")
    words = ("--clips", tmp_path, "--epsilon", 0.01, "--delta", "1e-3", "--out", tmp_path / "out")
    assert generate("--kind", "pate-gan", "--teachers", 12, *words) == 2
    assert "this budget is useless" in capsys.readouterr().err
    assert generate("--kind", "dp-gan", "--batch", 8, *words) == 2
    assert "this budget is useless" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_generator_of_another_shape_is_refused(
    tmp_path: Path, generate: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    import jax

    from earshot_models.generators import generator_file
    from earshot_models.generators.generator import Generator
    from earshot_models.generators.origin import PUBLIC
    from earshot_models.generators.settings import GeneratorSettings

    settings = GeneratorSettings(width=8, latent=4)
    decoder = Decoder((8, 10), settings, jax.random.key(0))
    generator_file.save(Generator(decoder, (8, 10), settings, PUBLIC), tmp_path / "g.npz")
    assert generate("--from", tmp_path / "g.npz", "--out", tmp_path / "out") == 2
    assert "32 × 40" in capsys.readouterr().err
    (tmp_path / "g.npz").write_bytes(b"no such thing")
    assert generate("--from", tmp_path / "g.npz", "--out", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()
