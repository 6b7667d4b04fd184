"""`--data FILE.npz`: phones that hold vectors of one's own."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import earshot as run_earshot
from support.own_things import LOCAL, SMALL
from support.simulated import decided

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations import PolicyChoice, Settings, result, simulate, sweep
from earshot_simulations.phases.kept import OtherSoundError, read, repeatable
from earshot_simulations.phases.settings import replaced
from earshot_simulations.populations import vectors
from earshot_simulations.populations.vectors import HELD_OUT_SHARE, Vectors
from earshot_simulations.sweeps.plan import read_settings

RECORDINGS, PHONES = 600, 40
Arrays = dict[str, Any]


def arrays() -> Arrays:
    random = np.random.default_rng(0)
    scenes = random.integers(0, 3, RECORDINGS)
    points = np.eye(3, 4)[scenes] + random.normal(0, 0.05, (RECORDINGS, 4))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return {"vectors": points, "labels": scenes, "phone": random.integers(0, PHONES, RECORDINGS)}


ARRAYS = arrays()
NAMES = np.array(["low", "middle", "high"])


def saved(folder: Path, **changes: Any) -> Path:
    """A file with changes; an array that is None is left out."""
    file = folder / "mine.npz"
    held = {name: each for name, each in {**ARRAYS, **changes}.items() if each is not None}
    np.savez(file, **held)
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path)


def over(file: Path, base: Settings = SMALL, **changes: Any) -> Settings:
    return replace(base, data=str(file), **changes)


@pytest.mark.parametrize("base", [SMALL, LOCAL], ids=["secure-sum", "local"])
def test_a_phase_runs_over_a_file(base: Settings, file: Path) -> None:
    run = simulate(over(file, base))
    assert run.interrupted is None
    assert (run.phones, run.population) == (30, "mine.npz")
    assert run.found.label_names == ("label 0", "label 1", "label 2")
    assert not any("caller's own" in note for note in run.notes)
    configuration = result(run)["configuration"]
    assert configuration["data"] == str(file)
    assert not configuration.keys() & {*replaced(True)}
    assert (configuration["phones"], configuration["dimensions"]) == (30, 4)


def test_whole_phones_are_held_out_by_the_seed(file: Path) -> None:
    first, again, other = Vectors(file, 1), Vectors(file, 1), Vectors(file, 2)
    assert first.phones == PHONES - int(HELD_OUT_SHARE * PHONES)
    heard = [first.recordings(phone) for phone in range(first.phones)]
    assert sum(len(each.points) for each in heard) + len(first.held_out().points) == RECORDINGS
    assert first.held_out().points.tolist() == again.held_out().points.tolist()
    assert first.held_out().points.tolist() != other.held_out().points.tolist()
    # Each phone has the rows of one number, in the file's order.
    where = {row.astype(np.float32).tobytes(): place for place, row in enumerate(ARRAYS["vectors"])}
    seen = set()
    for each in heard:
        rows = [where[row.tobytes()] for row in each.points]
        assert rows == sorted(rows)
        (number,) = {int(ARRAYS["phone"][row]) for row in rows}
        seen.add(number)
        assert each.labels.tolist() == ARRAYS["labels"][rows].tolist()
    aside = {int(ARRAYS["phone"][where[row.tobytes()]]) for row in first.held_out().points}
    assert not seen & aside
    assert seen | aside == set(range(PHONES))


def test_of_each_scene_only_so_many_are_held_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "HELD_OUT_PER_SCENE", 5)
    assert np.bincount(Vectors(file, 1).held_out().scenes).tolist() == [5, 5, 5]


def test_labels_and_phones_may_be_texts_and_labels_missing(tmp_path: Path) -> None:
    known = np.random.default_rng(1).random(RECORDINGS) < 0.3
    texts = NAMES[ARRAYS["labels"]]
    own = {
        "labels": np.where(known, texts, ""),
        "scenes": texts,
        "phone": np.array([f"phone {phone}" for phone in ARRAYS["phone"]]),
    }
    crowd = Vectors(saved(tmp_path, **own), 1)
    assert crowd.labels == ("high", "low", "middle")
    heard = crowd.recordings(3)
    assert set(heard.labels) == {-1, 0, 1, 2}
    labelled = heard.labels >= 0
    assert heard.labels[labelled].tolist() == heard.scenes[labelled].tolist()
    # Without scenes, labels are the truth as far as they go.
    crowd = Vectors(saved(tmp_path, labels=np.where(known, ARRAYS["labels"], -1)), 1)
    heard = crowd.recordings(3)
    assert heard.scenes.tolist() == heard.labels.tolist()
    assert -1 in heard.scenes
    assert -1 not in crowd.held_out().scenes


def test_points_of_the_plane_say_so(tmp_path: Path) -> None:
    flat = saved(tmp_path, vectors=ARRAYS["vectors"][:, :2] * 0.9, geometry="euclidean")
    for base, dimensions in ((SMALL, 3), (LOCAL, 2)):
        run = simulate(over(flat, base))
        assert run.interrupted is None
        assert run.found.points.shape[1] == dimensions
        assert run.configuration["dimensions"] == 2
    assert run.configuration["budget"]["clustering"] == 1.0  # type: ignore[index]


def test_a_run_is_repeated_and_another_file_is_refused(file: Path, tmp_path: Path) -> None:
    run = simulate(over(file))
    run.write(tmp_path / "out")
    settings, changed = repeatable(read(tmp_path / "out"))
    assert not changed
    assert decided(simulate(settings)) == decided(run)
    held = read_settings(tmp_path / "out")
    assert decided(simulate(Settings(**{**held, "jobs": 1}))) == decided(run)
    moved = tmp_path / "moved.npz"
    file.rename(moved)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        repeatable(read(tmp_path / "out"))
    assert repeatable(read(tmp_path / "out"), {"data": str(moved)})[0].phones == 30
    saved(tmp_path, phone=ARRAYS["phone"][::-1])
    with pytest.raises(OtherSoundError, match="its SHA-256 differs"):
        repeatable(read(tmp_path / "out"))


def test_a_sweep_counts_a_file_by_its_content(file: Path, tmp_path: Path) -> None:
    base = over(file)
    found = sweep(base, {"epsilon": [4.0]}, tmp_path / "out", seeds=1)
    assert found.rows()[0]["failure"] is None
    rows = (tmp_path / "out" / "phases.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["configuration"]["settings"]["data"].startswith("sha256 ")
    sweep(base, {"epsilon": [4.0]}, tmp_path / "out", seeds=1)
    assert (tmp_path / "out" / "phases.jsonl").read_text().splitlines() == rows


@pytest.mark.slow
def test_it_is_the_same_in_other_processes(file: Path) -> None:
    assert decided(simulate(over(file, jobs=2))) == decided(simulate(over(file)))


@pytest.mark.slow
def test_the_command_runs_both_routes_and_repeats_them(file: Path, tmp_path: Path) -> None:
    words = ("--data", file, "--policy", "anything", "--corrupted", "0", "--jobs", "1")
    out = tmp_path / "out"
    done = run_earshot("simulate", "--discovery", "both", *words, "--out", out)
    assert done.returncode == 0, done.stderr
    again = run_earshot("simulate", "--repeat", out, "--jobs", "1")
    assert again.returncode == 0, again.stderr
    assert "the same, bit for bit" in again.stdout
    done = run_earshot("simulate", "labelling", *words, "--samples", "5")
    assert done.returncode == 0, done.stderr
    assert "30 phones" in done.stdout


# ---------------------------------------------------------------------------------- what is refused


HEARD = 7
"""A phone that takes part under seed 3."""
NAN = ARRAYS["vectors"].copy()
NAN[17, 3] = np.nan


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": None}, "has no labels; np.savez"),
        ({"vectors": None, "phone": None}, "has no vectors and no phone"),
        ({"labels": ARRAYS["labels"][1:]}, r"labels has shape \(599,\): must be \(600,\)"),
        ({"phone": ARRAYS["phone"][:, None]}, r"phone has shape \(600, 1\)"),
        ({"scenes": ARRAYS["labels"][:5]}, r"scenes has shape \(5,\)"),
        ({"vectors": ARRAYS["vectors"][0]}, r"vectors has shape \(4,\)"),
        ({name: each[:0] for name, each in ARRAYS.items()}, r"vectors has shape \(0, 4\)"),
        ({"vectors": NAN}, "vectors: row 17 is not finite"),
        ({"vectors": 2 * ARRAYS["vectors"]}, "row 0 has length 2"),
        ({"vectors": 2 * ARRAYS["vectors"], "geometry": "euclidean"}, "beyond ±1"),
        ({"vectors": np.ones((600, 4), int)}, "type int64: must be floats"),
        ({"geometry": "flat"}, "geometry='flat': must be euclidean or spherical"),
        ({"phone": ARRAYS["phone"] * 1.0}, "phone is of type float64"),
        ({"labels": ARRAYS["labels"] * 1.0}, "labels is of type float64: must be whole numbers"),
        ({"labels": ARRAYS["labels"] - 2}, "labels has an entry of -2: must be 0 or above, or -1"),
        ({"labels": ARRAYS["labels"] * 10**9}, "has 2000000001 labels: must be 2 to"),
        ({"labels": np.zeros(600, int)}, "has 1 labels"),
        ({"labels": np.full(600, "")}, "has 0 labels"),
        ({"scenes": NAMES[ARRAYS["labels"]]}, "labels and scenes must be of one type"),
        (
            {"scenes": np.where(ARRAYS["phone"] == HEARD, 1, -1)},
            "none of the 10 phones held out",
        ),
        ({"labels": np.array([None] * 600)}, "holds Python objects, which only a pickle"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(
    changes: Arrays, says: str, tmp_path: Path
) -> None:
    file = saved(tmp_path, **changes)
    with pytest.raises(InvalidInputError, match=says) as refused:
        over(file, seed=3).check()
    assert str(refused.value).startswith(f"{file}: ")


def test_too_few_phones_for_the_policy_are_counted(file: Path) -> None:
    said = r"phones=30.*npz has 40 phones, of which 30 take part: 10 are held out \(--policy"
    with pytest.raises(InvalidParametersError, match=said):
        replace(over(file), policy=PolicyChoice.DEFAULT).check()


def test_too_few_phones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidParametersError, match=r"\.npz: phones=1: must be a whole number, from 3"
    ):
        over(saved(tmp_path, phone=ARRAYS["phone"] % 2)).check()


def zipped(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return content.getvalue()


def header(shape: str, kind: str = "<f8", version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return stated(text, version)


def stated(text: bytes, version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text


HUGE = header("(1000000000, 1000)")


def encrypted(data: bytes) -> bytes:
    """The same file with the flag of encryption at every member."""
    changed = bytearray(data)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = changed.find(mark)
        while start >= 0:
            changed[start + at] |= 1
            start = changed.find(mark, start + 1)
    return bytes(changed)


def claimed(data: bytes, size: int) -> bytes:
    """The same file, whose directory says that every member unpacks to a size."""
    changed = bytearray(data)
    start = changed.find(b"PK\x01\x02")
    while start >= 0:
        changed[start + 24 : start + 28] = struct.pack("<I", size)
        start = changed.find(b"PK\x01\x02", start + 1)
    return bytes(changed)


def corrupted(method: int) -> bytes:
    """A file whose members are compressed by a method, and damaged."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as file:
        for name in ("vectors", "labels", "phone"):
            file.writestr(f"{name}.npy", HUGE)
    changed = bytearray(content.getvalue())
    start = changed.find(b"vectors.npy") + len("vectors.npy") + 12
    changed[start : start + 30] = b"\xaa" * 30
    return bytes(changed)


WHOLE = zipped(vectors=HUGE, labels=HUGE, phone=HUGE)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello", "is not a file of np.savez, or is damaged"),
        (b"", "is not a file of np.savez"),
        (WHOLE[:-30], "is not a file of np.savez"),
        (WHOLE, "vectors is damaged: its header says"),
        (zipped(vectors=b"hello", labels=b"", phone=b""), "vectors is not an array of numpy"),
        (zipped(vectors=HUGE[:20], labels=b"", phone=b""), "vectors is not an array of numpy"),
        (
            zipped(vectors=header("(1,)", version=b"\x03\x00"), labels=b"", phone=b""),
            r"vectors is not an array of numpy \(version \(3, 0\)\)",
        ),
        (zipped(vectors=header("(2, 2)") + bytes(8), labels=b"", phone=b""), "vectors is cut off"),
        (zipped(vectors=header("(-2, 2)") + bytes(8), labels=b"", phone=b""), "is damaged"),
        (claimed(WHOLE, 2**31), r"unpacks to 6\.0 GiB: must be at most 4"),
        (encrypted(WHOLE), r"is not a file of np\.savez, or is damaged"),
        (zipped(vectors=stated(b"{'descr': (\n"), labels=b"", phone=b""), "cannot be read"),
        (zipped(vectors=stated(b"-" * 9000 + b"1"), labels=b"", phone=b""), "cannot be read"),
        (zipped(vectors=stated(b"{[]: 1}"), labels=b"", phone=b""), "cannot be read"),
        (zipped(vectors=header("(2,)", "<U0"), labels=b"", phone=b""), "vectors is damaged"),
        (zipped(vectors=header("(True,)") + bytes(8), labels=b"", phone=b""), "is damaged"),
        (
            zipped(vectors=header(f"(0, {10**30})"), labels=b"", phone=b""),
            "vectors is damaged: its header says",
        ),
        (
            zipped(vectors=header("(1,)", "<U1") + b"\xff" * 4, labels=b"", phone=b""),
            "it has texts of no characters",
        ),
        (corrupted(zipfile.ZIP_LZMA), r"is not a file of np\.savez, or is damaged"),
        (corrupted(zipfile.ZIP_BZIP2), r"cannot be read \(Invalid data stream\)"),
    ],
    ids=range(20),
)
def test_a_damaged_or_hostile_file_is_refused_before_it_takes_memory(
    content: bytes, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.npz"
    file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=says):
        over(file).check()


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LARGEST_BYTES", 10_000)
    with pytest.raises(InvalidInputError, match=r"unpacks to 0\.0 GiB: must be at most"):
        over(saved(tmp_path)).check()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--scenes", "5"), "scenes: not beside data="),
        (("--labelled", "0.5"), "labelled: not beside data="),
        (("--heterogeneity.concentration", "2"), "heterogeneity: not beside data="),
        (("--pool", "5"), "pool: not beside data="),
        (("--encoder", "contrast-3"), "encoder: not beside data="),
        (("--scenes", "10"), "scenes: not beside data="),
        (("--heterogeneity.mislabelled", "0"), "heterogeneity: not beside data="),
        (("--phones", "31"), "phones=31: not beside data="),
        (("--phones", "40"), "which has 40 phones, of which 30 take part: 10 are held out"),
        (("--phones", "500"), "which has 40 phones, of which 30 take part: 10 are held out"),
        (("--dimensions", "5"), "dimensions=5: not beside data="),
    ],
)
def test_options_that_the_file_replaces_are_refused(
    words: tuple[str, ...], says: str, file: Path, earshot: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, error = earshot("simulate", "--data", file, "--policy", "anything", *words)
    assert (code, out) == (2, "")
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "words", "says"),
    [
        ("scenes = 10", (), "scenes: not beside data="),
        ("phones = 500", (), "which has 40 phones, of which 30 take part: 10 are held out"),
        ("heterogeneity = {mislabelled = 0.0}", (), "heterogeneity: not beside data="),
        ("", ("--scenes", "10"), "scenes: not beside data="),
    ],
)
def test_a_file_of_settings_and_options_beside_it_are_refused_like_options(
    line: str,
    words: tuple[str, ...],
    says: str,
    file: Path,
    tmp_path: Path,
    earshot: Callable[..., tuple[int, str, str]],
) -> None:
    settings = tmp_path / "run.toml"
    settings.write_text(f"[settings]\ndata = '{file}'\npolicy = 'anything'\n{line}\n")
    code, out, error = earshot("simulate", "--config", settings, *words)
    assert (code, out) == (2, "")
    assert says in error
    assert error.count("\n") == 1
