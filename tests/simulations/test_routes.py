"""Both routes on one crowd: each as it is alone, heard once, and told on one page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from support.command import Earshot

from earshot_client.encoder import default_encoder, rate_of
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_server.dashboard.wording import real
from earshot_simulations.phases import simulation
from earshot_simulations.phases.kept import results_differing
from earshot_simulations.phases.routes_page import FILES_OF_BOTH, headline, render, write_both
from earshot_simulations.phases.run import DIGEST, PHASE_FAILED, Run, cost_figure, result
from earshot_simulations.phases.run import render as render_one
from earshot_simulations.phases.settings import (
    ROUTES,
    SOUNDSCAPES,
    Discovery,
    PolicyChoice,
    Routes,
    Settings,
    SummationChoice,
)
from earshot_simulations.phases.simulation import simulate, simulate_routes
from earshot_simulations.reporting.words import at_delta, percent

SMALL = Settings(
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
WORDS = (
    *("simulate", "--discovery", "both", "--phones", 24, "--recordings", 10, "--scenes", 3),
    *("--corrupted", 0, "--dropout", 0.2, "--policy", "anything", "--summation", "ideal"),
    *("--jobs", 1, "--seed", 4),
)
LOCAL, SECURE_SUM = Routes.BOTH.each
Runs = dict[Discovery, Run]

pytestmark = pytest.mark.usefixtures("module_without_pictures")


def both(**changes: Any) -> dict[Discovery, Settings]:
    return {route: replace(SMALL, discovery=route, **changes) for route in Routes.BOTH.each}


@pytest.fixture(scope="module")
def runs() -> Runs:
    # An ε at which the few phones of a test name something.
    return simulate_routes(both(epsilon=29.0))


@pytest.fixture(scope="module")
def kept(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    write_both(runs, folder)
    return folder


def text(runs: Runs) -> str:
    """The page's words."""
    words = re.sub(r"<style>.*?</style>", "", render(runs), flags=re.DOTALL)
    plain = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", words)))
    return plain.replace("\u202f", " ").replace("\u00a0", " ")


def spaced(words: str) -> str:
    return words.replace("\u202f", " ").replace("\u00a0", " ")


# ------------------------------------------------------------------------------- the same crowd


def same(one: Run, other: Run) -> bool:
    """Whether all that a clock did not measure is the same, bit for bit."""
    differing = results_differing(result(one), result(other))
    return differing.keys() <= {DIGEST} and one.configuration == other.configuration


def test_each_route_comes_to_what_it_does_alone_bit_for_bit_on_sound_heard_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rate, generator = rate_of(default_encoder()), np.random.default_rng(1)
    for label, loudness in (("quiet", 0.01), ("loud", 0.5)):
        (tmp_path / label).mkdir()
        for number in range(8):
            sound = loudness * generator.standard_normal(rate).clip(-1, 1)
            soundfile.write(tmp_path / label / f"{number}.wav", sound, rate)
    seconds: list[int] = []

    def embed(self: LiteRtEncoder, samples: np.ndarray) -> np.ndarray:
        """In no time."""
        seconds.append(len(samples))
        return np.array(samples[:, : 8 * self.dimensions : 8], np.float32)

    monkeypatch.setattr(LiteRtEncoder, "embed", embed)
    asked = both(data=str(tmp_path))
    alone = {route: simulate(settings) for route, settings in asked.items()}
    heard_alone = sum(seconds)
    seconds.clear()
    told: list[str] = []
    together = simulate_routes(asked, lambda what, done, total: told.append(what))
    assert (sum(seconds), heard_alone) == (16, 32)
    for route, run in together.items():
        assert run.interrupted is None
        assert same(run, alone[route])
    np.testing.assert_array_equal(together[LOCAL].found.scenes, together[SECURE_SUM].found.scenes)
    steps = list(dict.fromkeys(told))
    assert steps[:2] == ["hear", "local, local centroids"]
    assert steps[-1] == "secure-sum, labels: unmask"


def test_points_are_one_crowd_too(runs: Runs) -> None:
    for route, settings in both(epsilon=29.0).items():
        assert same(runs[route], simulate(settings))
    local, sums = runs[LOCAL], runs[SECURE_SUM]
    np.testing.assert_array_equal(local.found.scenes, sums.found.scenes)
    # The sphere holds the same points, raised above the plane.
    np.testing.assert_allclose(
        sums.found.points[:, :2] / sums.found.points[:, 2:], local.found.points, rtol=1e-4
    )


def test_what_one_of_them_cannot_do_is_refused_before_the_other_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulation, "simulate", None)
    asked = both()
    asked[SECURE_SUM] = replace(asked[SECURE_SUM], cells=10**6)
    with pytest.raises(InvalidParametersError, match="cells"):
        simulate_routes(asked)


@pytest.mark.parametrize(
    ("ending", "begun"), [("interrupted in the step 'hear'", 1), (PHASE_FAILED + "few", 2)]
)
def test_after_an_interruption_no_further_run_is_begun_but_after_a_failure(
    ending: str, begun: int, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Settings] = []

    def ended(settings: Settings, progress: object) -> Run:
        asked.append(settings)
        return replace(runs[LOCAL], interrupted=ending)

    monkeypatch.setattr(simulation, "simulate", ended)
    assert list(simulate_routes(both())) == list(Routes.BOTH.each[:begun])
    assert len(asked) == begun


def test_ctrl_c_between_two_runs_keeps_the_first(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second(settings: Settings, progress: object) -> Run:
        if settings.discovery is SECURE_SUM:
            raise KeyboardInterrupt
        return runs[LOCAL]

    monkeypatch.setattr(simulation, "simulate", second)
    assert list(simulate_routes(both())) == [LOCAL]


# -------------------------------------------------------------------------------------- the page


def test_the_page_names_both_promises_with_the_numbers_of_the_runs(runs: Runs) -> None:
    page = text(runs)
    for run, name, unit in (
        (runs[LOCAL], "Learning phase", Unit.RECORDING),
        (runs[SECURE_SUM], "Discovery phase", Unit.PHONE),
    ):
        assert f"{name}: protects a {unit}" in page
        epsilon = real(run.together[unit].epsilon)
        assert spaced(f"Whether one {unit} took part changes the probability") in page
        assert spaced(f"with ε = {epsilon}, except with probability") in page
        assert spaced(f"gives {percent(run.found.label_accuracy or 0)} of new recordings") in page
        figure, _ = cost_figure(f"ε per {unit}, {name.lower()}", run.together[unit])
        assert spaced(f"{figure} {epsilon} ") in page
        told = f"ε = {at_delta(run.together[unit])} per {unit}"
        assert spaced(told) in spaced(headline(runs))
    phone = spaced(at_delta(runs[LOCAL].together[Unit.PHONE]))
    assert f"all of them together cost it ε = {phone}. That promises nothing to a phone." in page
    assert "a phone that took part in both would pay for both" in page


def test_the_headline_says_where_the_encoder_knows_the_scenes(runs: Runs) -> None:
    """Points have no encoder; of synthesized scenes the shipped one has met every kind."""
    assert not any(run.is_known for run in runs.values())
    assert "trained" not in headline(runs)
    known = {route: replace(run, is_known=True) for route, run in runs.items()}
    said = headline(known)
    assert "two routes on scenes that the encoder was trained on: the learning" in said
    for run in known.values():
        assert "a new recording of these scenes, which the encoder knows," in run.found.outcome(run)
    crowd = Settings(data=SOUNDSCAPES)
    assert crowd.is_known(DEFAULT_ENCODER)
    assert not crowd.is_known("mine")
    assert not replace(crowd, encoder="my.tflite").is_known(DEFAULT_ENCODER)
    assert not replace(crowd, data="folder").is_known(DEFAULT_ENCODER)


def test_no_page_of_a_run_shows_an_identifier_outside_code(runs: Runs) -> None:
    for page in (render(runs), *map(render_one, runs.values())):
        assert "ε of the phase per phone=" in page, "a refusal of default phones"
        prose = re.sub(r"<(pre|style|code|svg)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
        assert re.findall(r"[^\W_]+_\w+", prose) == []


def test_the_columns_are_those_of_the_results(runs: Runs) -> None:
    rows = {
        cells[0]: [spaced(each) for each in cells[1:]]
        for row in re.findall(r"<tr>(.*?)</tr>", render(runs), re.DOTALL)
        if (cells := [html.unescape(each) for each in re.findall(r"<t[hd][^>]*>(.*?)</t", row)])
    }
    told = {route: result(run) for route, run in runs.items()}

    def each(write: Callable[[Any], str]) -> list[str]:
        return [spaced(write(told[route])) for route in Routes.BOTH.each]

    assert rows["Protected unit"] == ["recording", "phone"]
    for unit, row in (("recording", "ε per recording"), ("phone", "ε per phone (zero-out)")):
        assert rows[row] == each(lambda it: at_delta(Cost(**it["privacy"]["together"][unit])))  # noqa: B023
    assert rows["Right name, held out"] == each(lambda it: percent(it["label_accuracy"]))
    assert rows["Clustering (ARI), held out"] == each(lambda it: f"{it['ari_test']:.2f}")
    assert rows["Phones that stayed"] == each(lambda it: f"{it['survivors']} of {it['phones']}")
    # Centroids are no cells: each route counts its own.
    assert rows["Centroids"][1] == "–"
    assert rows["Cells"][0] == "–"
    for scene in runs[LOCAL].found.label_names:
        assert rows[scene] == each(
            lambda it: str(sum(place["label"] == scene for place in it["centroids"]))  # noqa: B023
        )
    assert sum(map(int, rows["without a name"])) == sum(
        run.found.names.count(None) for run in runs.values()
    )


def test_the_page_loads_nothing_and_links_to_the_reports_beside_it(kept: Path) -> None:
    page = (kept / "report.html").read_text()
    assert "<script" not in page
    places = re.findall(r'(?:src|href)="([^"]*)"', page)
    links = [place for place in places if not place.startswith("data:")]
    assert links == ["local/report.html", "secure-sum/report.html"]
    assert all((kept / link).is_file() for link in links)
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*.*")) == sorted(
        FILES_OF_BOTH
    )


def test_the_page_of_runs_that_ended_early_says_which(runs: Runs) -> None:
    at_first = stopped_at_first(runs)
    page = text(at_first)
    assert "The learning phase ended early: interrupted in the step 'hear'." in page
    assert "The discovery phase was not begun." in page
    assert "the learning phase has no result" in page
    second = {**runs, SECURE_SUM: replace(runs[SECURE_SUM], interrupted=f"{PHASE_FAILED}few")}
    page = text(second)
    assert f"The discovery phase ended early: {PHASE_FAILED}few." in page
    assert "was not begun" not in page


def stopped_at_first(runs: Runs) -> Runs:
    """As Ctrl-C leaves them while phones hear."""
    run = runs[LOCAL]
    heard_nothing = Run(
        version=run.version,
        population=run.population,
        phones=run.phones,
        survivors=run.phones,
        found=ROUTES[LOCAL].found(
            label_names=run.found.label_names, points=np.empty((0, 2), np.float32)
        ),
        configuration=run.configuration,
        interrupted="interrupted in the step 'hear'",
    )
    return {LOCAL: heard_nothing}


def test_words_from_outside_are_text(runs: Runs) -> None:
    hostile = "<script>alert(1)</script>"
    page = render(
        {
            route: replace(
                run,
                found=replace(run.found, label_names=(hostile, *run.found.label_names[1:])),
                notes=(hostile + route,),
            )
            for route, run in runs.items()
        }
    )
    assert "<script" not in page
    assert html.escape(hostile) in page


# ------------------------------------------------------------------------------------ the command


def test_json_and_files_hold_the_results_of_both(tmp_path: Path, earshot: Earshot) -> None:
    stale = tmp_path / "result.json"
    stale.write_text("{}")
    status, out, err = earshot(*WORDS, "--out", tmp_path, "--json")
    assert (status, out) == (2, "")
    assert "--overwrite to replace report.html and local/result.json" in err
    status, out, _ = earshot(*WORDS, "--out", tmp_path, "--json", "--overwrite")
    assert status == 0
    told = json.loads(out)
    assert list(told) == ["local", "secure-sum"]
    for route, figures in told.items():
        assert figures == json.loads((tmp_path / route / "result.json").read_text())
        assert figures["configuration"]["discovery"] == route
    # That of an earlier run would pass for one of these.
    assert not stale.exists()


def test_the_summary_has_a_column_for_each_route_with_its_costs(
    tmp_path: Path, earshot: Earshot
) -> None:
    status, out, _ = earshot(*WORDS, "--out", tmp_path)
    assert status == 0
    said, *lines = out.splitlines()
    assert said.startswith("One crowd of ")
    rows = {line[:22].strip(): re.split(r"\s{2,}", line[22:].strip()) for line in lines}
    assert rows[""] == ["learning phase", "discovery phase"]
    assert rows["report"] == [str(tmp_path / "report.html")]
    for row, unit in (("ε per recording", "recording"), ("ε per phone", "phone")):
        spent = [
            json.loads((tmp_path / route / "result.json").read_text())["privacy"]["together"][unit]
            for route in Routes.BOTH.each
        ]
        assert rows[row] == [at_delta(Cost(**cost)) for cost in spent]
    assert rows["global centroids"][1] == rows["cells"][0] == "–"


@pytest.mark.slow
def test_the_page_has_a_command_that_repeats_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    asked: list[dict[Discovery, Settings]] = []

    def instead(settings: dict[Discovery, Settings], progress: object) -> Runs:
        asked.append(settings)
        return simulate_routes(settings)

    monkeypatch.setattr(simulation, "simulate_routes", instead)
    more = ("--budget", "clustering=4,selection=2,centroid-vote=1,label-vote=1", "--epsilon", 9)
    assert earshot(*WORDS, *more, "--sums", 3, "--label-votes", 2, "--out", tmp_path)[0] == 0
    page = (tmp_path / "report.html").read_text()
    (command,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    words = html.unescape(command).replace("\\\n", "").split()
    assert words[:2] == ["earshot", "simulate"]
    assert earshot(*words[1:], "--json")[0] == 0
    assert asked[0] == asked[1]
    assert asked[0][SECURE_SUM].epsilon == 9
    assert asked[0][SECURE_SUM].sums == 3
    assert asked[0][LOCAL].budget is not None
    assert asked[0][LOCAL].budget.clustering == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--discovery", "local", "--cells", 20), "--cells: not for --discovery local"),
        (("--discovery", "secure-sum", "--label-votes", 2), "not for --discovery secure-sum"),
        (("--discovery", "both", "--budget", "none", "--epsilon", 2), "--epsilon and --budget"),
        (("--discovery", "both"), "with --policy recording"),
        (("--discovery", "neither"), "Choose from"),
    ],
)
def test_refusals_are_by_name(words: tuple[Any, ...], message: str, earshot: Earshot) -> None:
    status, out, err = earshot("simulate", "--phones", 24, *words)
    assert (status, out) == (2, "")
    assert message in re.sub(r"[\s│]+", " ", err)


def test_both_are_repeated_from_their_folder(
    kept: Path, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    status, out, _ = earshot("simulate", "--repeat", kept, "--jobs", 1)
    assert status == 0
    assert out.splitlines()[-1].split(maxsplit=1) == ["repeated", "the same, bit for bit"]
    real_one = simulation.simulate

    def unlike(settings: Settings, *rest: Any) -> Run:
        run = real_one(settings, *rest)
        return (
            replace(run, found=replace(run.found, ari_test=0.5))
            if settings.discovery is SECURE_SUM
            else run
        )

    monkeypatch.setattr(simulation, "simulate", unlike)
    status, out, _ = earshot("simulate", "--repeat", kept, "--jobs", 1, "--json")
    told = json.loads(out)
    assert status == 1
    assert {route: each["same"] for route, each in told.items()} == {
        "local": True,
        "secure-sum": False,
    }
    assert told["secure-sum"]["differs"]["ari_test"]["now"] == 0.5


def test_of_two_routes_no_difference_is_taken_where_they_count_other_things(
    kept: Path, earshot: Earshot
) -> None:
    status, out, err = earshot("compare", kept, kept)
    assert (status, out) == (2, "")
    assert f"{kept}: holds a run of each route; name one of them: {kept / 'local'} or" in err
    status, out, _ = earshot("compare", kept / "local", kept / "secure-sum")
    assert status == 0
    assert "local protects a recording, secure-sum a phone" in out
    figures = json.loads(earshot("compare", kept / "local", kept / "secure-sum", "--json")[1])[
        "figures"
    ]
    for counted in ("named", "global_centroids", "top_global_centroids"):
        assert figures[counted]["difference"] is None
        assert figures[counted]["a"] is not None
        assert figures[counted]["b"] is not None
    scored = figures["ari_test"]
    assert scored["difference"] == scored["b"] - scored["a"]
    same = json.loads(earshot("compare", kept / "local", kept / "local", "--json")[1])["figures"]
    assert same["named"]["difference"] == 0
