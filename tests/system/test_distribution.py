"""The name under which we are installed: the same everywhere, and what it installs works."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.closure import distributions, link
from support.release import PHONE_EXTRAS

from earshot_client.command import SUB_COMMANDS
from earshot_protocol import distribution
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

INSTALLS = re.compile(r"pip3? install[^\n`\"]*")
"""Whatever a reader, or a shell, is told to install."""
WITH_EXTRAS = re.compile(r"(?<![\w./-])(earshot(?:-[\w-]+)?)\[([\w, ]+)\]")
WITHOUT = re.compile(r"(?<![\w./$-])(earshot[\w-]*)(?![\w./@-])")


def tracked() -> Iterator[tuple[str, str]]:
    """Every text file of the repository, with its name."""
    listed = subprocess.run(  # noqa: S603 - our own words
        ["git", "-C", str(ROOT), "ls-files", "-z"],  # noqa: S607
        capture_output=True,
        check=True,
    ).stdout.decode()
    own = Path(__file__).relative_to(ROOT).as_posix()
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if name == own or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            yield name, content.decode()


def test_nothing_is_tracked_that_a_server_keeps_for_itself() -> None:
    """Such as the credentials of one that was started here without `--data`."""
    names = [name for name, _ in tracked()]
    assert len(names) > 100
    assert [name for name in names if name.endswith((".key", ".token"))] == []


def named_in(text: str) -> set[tuple[str, str]]:
    """Each distribution of ours that the text says to install, with an extra or with none."""
    text = text.replace("\\[", "[").replace("\\]", "]")  # in regular expressions
    found = {
        (match[1], extra.strip())
        for match in WITH_EXTRAS.finditer(text)
        for extra in match[2].split(",")
    }
    for command in INSTALLS.findall(text):
        found |= {(name, "") for name in WITHOUT.findall(command) if "[" not in command}
    return found


def test_the_search_finds_what_it_is_for() -> None:
    assert named_in("run `pip install earshot` or") == {("earshot", "")}
    assert named_in("pip install 'earshot[phone,server]'") == {
        ("earshot", "phone"),
        ("earshot", "server"),
    }
    assert named_in("with `earshot-sensing[phone]`: ") == {("earshot-sensing", "phone")}
    assert named_in("pip install -e /opt/earshot") == set()
    assert named_in("rate(earshot_requests_total[5m])") == set()  # of Prometheus


def test_every_text_names_the_distribution_and_an_extra_of_it() -> None:
    assert PROJECT["name"] == distribution.NAME
    known = {(PROJECT["name"], extra) for extra in ("", *PROJECT["optional-dependencies"])}
    known |= {(distribution.PHONE, extra) for extra in ("", *PHONE_EXTRAS)}
    wrong, right = {}, set()
    for name, text in tracked():
        found = named_in(text)
        right |= found & known
        if found - known:
            wrong[name] = found - known
    assert wrong == {}
    assert len(right) >= 4  # the search has found something


def test_every_hint_of_ours_is_an_extra_of_the_project() -> None:
    needed = {
        extras
        for command in SUB_COMMANDS.values()
        for extras in (command.extras, *(command.needed([inner]) for inner in command.further))
    }
    for extras in needed | {("phone",), ("microphone",), ("cluster",)}:
        words = distribution.installation(*extras)
        requirement = Requirement(words.removeprefix("pip install '").removesuffix("'"))
        assert requirement.name == PROJECT["name"]
        assert requirement.extras == set(extras) <= set(PROJECT["optional-dependencies"])


def installed(folder: Path, name: str, version: str) -> None:
    """Put the description of an installed distribution into a folder."""
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize(
    ("versions", "name", "version"),
    [
        ({"earshot-phone": "0.2.0"}, "earshot-phone", "0.2.0"),
        ({"earshot-sensing": "0.3.0"}, "earshot-sensing", "0.3.0"),
        ({"earshot-sensing": "0.3.0", "earshot-phone": "0.3.0"}, "earshot-sensing", "0.3.0"),
    ],
)
def test_the_installed_distribution_is_found(
    versions: dict[str, str],
    name: str,
    version: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in versions.items():
        installed(tmp_path, *each)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert (distribution.name(), distribution.version()) == (name, version)
    assert distribution.installation("phone") == f"pip install '{name}[phone]'"


def test_without_an_installation_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app may carry its own copy of our files."""
    monkeypatch.setattr(sys, "path", [])
    assert distribution.name() == distribution.NAME
    assert distribution.missing(("phone",)) == []
    with pytest.raises(PackageNotFoundError):
        distribution.version()


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["ledger"]])
def test_two_versions_over_each_other_are_refused_by_name(words: list[str], tmp_path: Path) -> None:
    installed(tmp_path, distribution.PHONE, "0.0.9")
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "earshot_client", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"earshot: earshot-sensing {PROJECT['version']} and earshot-phone 0.0.9 are installed over "
        "each other: pip uninstall earshot-sensing earshot-phone, then install one of them\n"
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", str(folder), str(ROOT)),
    )
    (made,) = folder.glob("*.whl")
    return made


def run(*words: str, status: int = 0) -> str:
    """What a command says, where nothing but its own environment is on Python's path."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - our own words
        words, capture_output=True, text=True, check=False, timeout=300, env=bare
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_the_wheel_holds_every_shipped_encoder_and_its_credits(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name, digest in SHIPPED_ENCODERS.items():
            data = archive.read(f"earshot_protocol/data/{name}.tflite")
            assert hashlib.sha256(data).hexdigest() == digest
            assert archive.read(f"earshot_protocol/data/{name}-credits.txt")


def test_the_wheel_holds_no_study(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packages = {name.partition("/")[0] for name in archive.namelist()}
    assert "earshot_simulations" in packages
    assert "earshot_studies" not in packages


@pytest.mark.parametrize("extra", ["", pytest.param("phone", marks=pytest.mark.slow)])
def test_the_wheel_brings_the_command_into_a_bare_environment(
    wheel: Path, extra: str, tmp_path: Path
) -> None:
    assert wheel.name.startswith(f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}-")
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"),
        *("--no-index", "--no-deps", str(wheel)),
    )
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    link(packages, distributions(*filter(None, [extra])))
    command = str(tmp_path / "venv" / "bin" / "earshot")
    if not extra:
        assert "[phone: not installed]" in " ".join(run(command, "--help").split())
        assert PROJECT["version"] in run(command, "--version")
        refused = run(command, "phone", status=2)
        assert f"pip install '{PROJECT['name']}[phone]'" in refused
        assert "not in the wheels" in run(command, "reproduce", "--list", status=2)
        assert run(str(python), "-c", "import earshot_client") == ""
        return
    assert PROJECT["version"] in run(command, "--version")
    shown = run(command, "--help")
    assert all(name in shown for name in SUB_COMMANDS)
    refused = run(command, "serve", "--data", str(tmp_path / "data"), status=2)
    assert f"pip install '{PROJECT['name']}[server]'" in refused
