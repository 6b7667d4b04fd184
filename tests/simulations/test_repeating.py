"""Runs done again and side by side: the same bits, and nothing that was edited, moved or mixed."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from support.command import Earshot

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.learning import Budget
from earshot_protocol.phases.learning_budget import BUDGETS
from earshot_simulations import (
    Adversary,
    Heterogeneity,
    PolicyChoice,
    Settings,
    SummationChoice,
    simulate,
    versions,
)
from earshot_simulations.phases import simulation
from earshot_simulations.phases.kept import (
    EditedResultError,
    OtherSoundError,
    Written,
    differing,
    flat,
    read,
    repeatable,
)
from earshot_simulations.phases.run import PHASE_FAILED, plain
from earshot_simulations.phases.settings import Discovery, geometry_of, settings_of
from earshot_simulations.versions import OtherVersionError

TINY = Settings(
    phones=24,
    recordings=10,
    scenes=3,
    corrupted=0.0,
    dropout=0.2,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=4,
)

pytestmark = pytest.mark.usefixtures("module_without_pictures")


def kept(settings: Settings, folder: Path) -> Path:
    simulate(settings).write(folder)
    return folder / "result.json"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `result.json` of a run with dropouts."""
    return kept(TINY, tmp_path_factory.mktemp("done"))


@pytest.fixture
def own(done: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    copy = tmp_path / "result.json"
    copy.write_bytes(done.read_bytes())
    return copy


def told(path: Path) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(path.read_bytes())
    return figures


def resealed(path: Path, **changes: object) -> Written:
    """As a run with other entries would have written it."""
    figures = told(path) | changes
    del figures["digest"]
    path.write_text(json.dumps(figures | {"digest": versions.digest(figures)}))
    return read(path)


# ----------------------------------------------------------------------------------- done again


@pytest.mark.slow
def test_a_repeated_run_is_the_same_in_another_number_of_processes(
    done: Path, tmp_path: Path, earshot: Earshot
) -> None:
    status, out, err = earshot("simulate", "--repeat", done, "--jobs", 2, "--out", tmp_path / "new")
    assert status == 0, err
    assert out.splitlines()[-1].split(maxsplit=1) == ["repeated", "the same, bit for bit"]
    then, now = told(done), told(tmp_path / "new" / "result.json")
    unlike = {name for name in then if then[name] != now[name]}
    assert unlike <= {"seconds", "peak_memory_mb", "configuration", "digest"}
    assert differing(then["configuration"], now["configuration"]) == {"jobs": (1, 2)}
    assert then["ari_test"] is not None
    assert then["survivors"] < then["phones"]


def test_what_came_out_otherwise_is_said_and_is_a_failure(
    own: Path, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    """Somebody's library draws other numbers: here, the seed is read as another."""
    real = simulation.simulate

    def unlike(settings: Settings, *rest: Any) -> Any:
        run = real(dataclasses.replace(settings, seed=5), *rest)
        return dataclasses.replace(run, configuration=settings.configuration())

    monkeypatch.setattr(simulation, "simulate", unlike)
    status, out, _ = earshot("simulate", "--repeat", own, "--jobs", 1, "--json")
    found = json.loads(out)
    assert (status, found["same"]) == (1, False)
    then = told(own)["ari_test"]
    assert found["differs"]["ari_test"] == {"then": then, "now": found["result"]["ari_test"]}
    assert not any(place.startswith(("seconds", "peak")) for place in found["differs"])
    status, out, _ = earshot("simulate", "--repeat", own, "--jobs", 1)
    assert status == 1
    assert f"ari_test was {then}" in out or "more" in out


@pytest.mark.parametrize("elsewhere", [False, True])
def test_why_figures_differ_is_said(
    own: Path, elsewhere: bool, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    """On another processor, libraries round in another order; on the same, something is wrong."""
    real = simulation.simulate

    def unlike(settings: Settings, *rest: Any) -> Any:
        run = real(dataclasses.replace(settings, seed=5), *rest)
        return dataclasses.replace(run, configuration=settings.configuration())

    origin = told(own)["provenance"]
    assert "BLAS: " in origin["versions"]["processor"]
    if elsewhere:
        origin["versions"]["processor"] = "X86_V2; BLAS: Prescott"
        resealed(own, provenance=origin)
    monkeypatch.setattr(simulation, "simulate", unlike)
    status, _, err = earshot("simulate", "--repeat", own, "--jobs", 1)
    assert status == 1
    assert ("changed since: processor was X86_V2; BLAS: Prescott, is " in err) == elsewhere
    assert ("choose their instructions by the processor" in err) == elsewhere
    assert ("one of the two runs is wrong" in err) != elsewhere


def test_another_library_is_named_and_the_run_is_done_all_the_same(
    own: Path, earshot: Earshot
) -> None:
    origin = told(own)["provenance"]
    origin["versions"]["numpy"] = "0.0.1"
    resealed(own, provenance=origin)
    status, out, err = earshot("simulate", "--repeat", own, "--jobs", 1, "--json")
    assert (status, json.loads(out)["same"]) == (0, True)
    assert f"numpy was 0.0.1, is {np.__version__}" in err


def test_another_version_is_refused_and_named(own: Path) -> None:
    with pytest.raises(OtherVersionError) as refused:
        repeatable(resealed(own, version="0.0.1"))
    for words in ("Earshot 0.0.1", f"this is {distribution.version()}", "sensing==0.0.1"):
        assert words in str(refused.value)


EDITS: dict[str, Callable[[str], str]] = {
    "a figure": lambda text: re.sub(r'"ari_test": [0-9.]+', '"ari_test": 0.99', text),
    "a setting": lambda text: text.replace('"epsilon": 2.0', '"epsilon": 1.0'),
    "a seed": lambda text: text.replace('"seed": 4', '"seed": 5'),
    "a version": lambda text: text.replace('"numpy": "', '"numpy": "9'),
    "a note": lambda text: text.replace('"notes": [', '"notes": ["mine", '),
    "the digest": lambda text: re.sub(r'"digest": "..', '"digest": "xx', text),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("way", ["repeat", "compare"])
def test_an_edited_result_is_refused(edit: str, way: str, own: Path, earshot: Earshot) -> None:
    text = own.read_text()
    own.write_text(EDITS[edit](text))
    assert own.read_text() != text
    with pytest.raises(EditedResultError, match="was edited"):
        read(own)
    words = ("simulate", "--repeat", own) if way == "repeat" else ("compare", own, own)
    status, out, err = earshot(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"earshot: {own}: was edited after the run wrote it")


def test_other_order_and_spaces_are_no_edit(own: Path) -> None:
    figures = told(own)
    own.write_text(json.dumps(dict(reversed(figures.items()))))
    assert read(own).settings == filled(TINY)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("{", "is not JSON"),
        ("[1]", "has no configuration and no provenance and no version and no digest"),
        ('{"version": "0.1.0", "configuration": {}}', "has no provenance and no digest"),
        ('{"digest": "x"}', "has no configuration"),
    ],
)
def test_what_is_no_result_is_named(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "result.json").write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path)


def test_repeating_takes_no_settings(own: Path, earshot: Earshot) -> None:
    status, out, err = earshot("simulate", "--repeat", own, "--phones", 30, "--seed", 4)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "--phones, --seed: not with --repeat" in err


def test_an_interrupted_run_has_no_end_to_come_to(own: Path) -> None:
    with pytest.raises(InvalidInputError, match="was interrupted in the step 'hear'"):
        repeatable(resealed(own, interrupted="interrupted in the step 'hear'"))


@pytest.mark.slow
def test_a_phase_that_failed_fails_again(tmp_path: Path, earshot: Earshot) -> None:
    attacked = dataclasses.replace(TINY, dropout=0.1, adversary=Adversary(dropouts=0.5))
    file = kept(attacked, tmp_path)
    assert told(file)["interrupted"].startswith(PHASE_FAILED)
    status, out, _ = earshot("simulate", "--repeat", file)
    assert status == 1
    assert "the same, bit for bit" in out


def tone(file: Path, hertz: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * hertz * np.arange(16_000) / 8_000), 8_000)


def test_sound_and_encoder_are_known_by_what_is_in_them(tmp_path: Path, own: Path) -> None:
    sound, encoder = tmp_path / "sound", tmp_path / "mine.tflite"
    tone(sound / "low" / "1.wav", 200)
    tone(sound / "high" / "1.wav", 2000)
    encoder.write_bytes(b"an encoder")
    files = {"data": str(sound), "encoder": str(encoder)}
    heard = dataclasses.replace(TINY, discovery=Discovery.LOCAL, **files)
    origin = heard.provenance()
    written = resealed(own, configuration=plain(heard.configuration()), provenance=plain(origin))
    assert repeatable(written)[0] == filled(heard)
    for place, change in (
        ("data", lambda: tone(sound / "low" / "1.wav", 201)),  # as long as before
        ("encoder", lambda: encoder.write_bytes(b"An encoder")),
    ):
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        change()
        with pytest.raises(OtherSoundError, match=f"{place} .* is not that of the run"):
            repeatable(written)
        for path, content in before.items():
            path.write_bytes(content)
    (sound / "low" / "notes.txt").write_text("nobody hears this")
    assert heard.provenance() == origin
    (sound / "low" / "1.wav").rename(sound / "low" / "2.wav")
    with pytest.raises(OtherSoundError):
        repeatable(written)


def test_what_is_heard_without_files_needs_no_digest_but_the_encoder_s() -> None:
    origin = TINY.provenance()
    assert (origin["data"], origin["encoder"]) == (None, None)
    scenes = dataclasses.replace(TINY, data="soundscapes")
    usual, named = (
        each.provenance() for each in (scenes, dataclasses.replace(scenes, encoder="contrast-1"))
    )
    assert usual["data"] is None
    assert len({usual["encoder"], named["encoder"], None}) == 3
    assert {"earshot", "python", "numpy", "scikit-learn", "machine"} <= set(versions.versions())


# ------------------------------------------------------------------------------ settings in files


def filled(settings: Settings) -> Settings:
    """The settings with what was left to a default filled in, as a file has them."""
    usual: dict[str, Any] = {"policy": settings.agreement}
    if settings.discovery is Discovery.SECURE_SUM:
        usual["epsilon"] = settings.phone_epsilon
    elif settings.budget is None and settings.epsilon is None:
        usual["budget"] = BUDGETS[geometry_of(settings.data)]
    return dataclasses.replace(settings, **usual)


@pytest.mark.parametrize(
    "settings",
    [
        TINY,
        Settings(),
        Settings(discovery=Discovery.LOCAL, budget=Budget(1.0, 2.0, 3.0, 4.5)),
        Settings(discovery=Discovery.LOCAL, epsilon=0.7),
        Settings(discovery=Discovery.LOCAL, data="soundscapes"),
        Settings(heterogeneity=Heterogeneity(0.1, 1.0, 0.5), adversary=Adversary(poisoning=0.05)),
        Settings(data="a folder", encoder="x.tflite", cells=7, dimensions=9),
    ],
    ids=["tiny", "default", "local", "epsilon", "usual", "uneven", "named"],
)
def test_settings_come_back_as_they_were(settings: Settings) -> None:
    through = json.loads(json.dumps(plain(settings.configuration())))
    back = settings_of(through)
    assert back == filled(settings)
    assert back.configuration() == settings.configuration()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"phone": 3}, "phone: there is no such setting; did you mean phones"),
    "unknown within": ({"budget": {"clusterin": 1.0}}, "did you mean budget.clustering"),
    "no number": ({"phones": "many"}, "phones: expected `int`, got `str`"),
    "a fraction of a phone": ({"phones": 3.5}, "phones: expected `int`, got `float`"),
    "no table": ({"adversary": 1}, "adversary: expected a table, got `int`"),
    "a choice that is none": ({"discovery": "magic"}, "there are secure-sum, local"),
    "or none at all": ({"policy": "magic"}, "there are default, recording, anything"),
    "out of range": ({"heterogeneity": {"concentration": -1}}, "from 0.01 to 1e"),
    "a budget in words": ({"budget": "clustering=1"}, "give each once"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_setting_that_is_none_is_named(case: str) -> None:
    entries, message = WRONG[case]
    with pytest.raises(InvalidParametersError, match=re.escape(message)):
        settings_of(entries)


# ---------------------------------------------------------------------------------- side by side


def test_of_equal_runs_nothing_differs(done: Path, tmp_path: Path, earshot: Earshot) -> None:
    again = kept(TINY, tmp_path)
    resealed(again, configuration=told(again)["configuration"] | {"jobs": 2})
    status, out, _ = earshot("compare", done.parent, again)
    assert status == 0
    assert "settings: nothing differs" in out
    assert out.splitlines()[-1] == "nothing differs, bit for bit, but time and memory"
    _, out, _ = earshot("compare", done, again, "--json")
    found = json.loads(out)
    assert found["same"] is True
    assert found["settings"] == found["provenance"] == {}
    timed = {"seconds", "peak_memory_mb"}
    for name, figures in found["figures"].items():
        assert name in timed or figures["difference"] == 0


def test_what_differs_in_settings_comes_first_and_differences_are_b_less_a(
    done: Path, tmp_path: Path, earshot: Earshot
) -> None:
    changed = dataclasses.replace(
        TINY,
        epsilon=8.0,
        heterogeneity=Heterogeneity(quantity_skew=1.0),
        local_centroids=5,  # of the other discovery: nobody looks at it
    )
    other = kept(changed, tmp_path)
    status, out, _ = earshot("compare", done, other)
    assert status == 0
    assert out.index("heterogeneity.quantity_skew") < out.index("ari test")
    assert "local_centroids" not in out
    assert "one run each: a difference may be chance" in out
    _, out, _ = earshot("compare", done, other, "--json")
    found = json.loads(out)
    assert found["same"] is False
    assert found["settings"] == {
        "epsilon": {"a": 2.0, "b": 8.0},
        "heterogeneity.quantity_skew": {"a": 0.0, "b": 1.0},
    }
    a, b = told(done), told(other)
    figures = found["figures"]
    assert figures["ari_test"] == {
        "a": a["ari_test"],
        "b": b["ari_test"],
        "difference": b["ari_test"] - a["ari_test"],
    }
    assert figures["epsilon per phone"]["difference"] == pytest.approx(6.0, rel=0.05)
    up = [sum(each["bytes_up_per_phone"].values()) for each in (a, b)]
    assert figures["bytes_up_per_phone"]["difference"] == up[1] - up[0]


def test_runs_that_ended_early_are_compared_by_what_they_have(
    done: Path, own: Path, earshot: Earshot
) -> None:
    resealed(own, interrupted="interrupted in the step 'hear'", ari_test=None)
    status, out, _ = earshot("compare", done, own)
    assert status == 0
    assert "B ended early: interrupted in the step 'hear'" in out
    line = next(line for line in out.splitlines() if line.startswith("ari test"))
    assert line.split()[-2:] == ["–", "–"]


def test_places_are_told_apart_however_deep() -> None:
    nested = {"a": {"b": [1, {"c": None}]}, "d": [], "e": {}}
    assert dict(flat(nested)) == {"a.b.0": 1, "a.b.1.c": None, "d": [], "e": {}}
    # What is there with nothing in it is not what is not there.
    assert differing({"a": None}, {}) == {"a": (None, None)}
    assert differing({"a": [1, 2]}, {"a": [1]}) == {"a.1": (2, None)}
    assert differing({"a": 0.1 + 0.2}, {"a": 0.3}) == {"a": (0.1 + 0.2, 0.3)}
    assert differing(nested, nested) == {}
