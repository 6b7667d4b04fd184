"""A release: what its packages hold and ask for, and that it can be made again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from support.closure import distributions, link, named
from support.documented import blocks
from support.node import ROOT
from support.release import (
    PHONE_EXTRAS,
    PHONE_PACKAGES,
    PHONE_PAGE,
    PROJECT,
    SETTINGS,
    VERSION,
    build,
    lay_out,
    lay_out_phone,
    on_index,
    repository,
)

from earshot_client.command import SUB_COMMANDS
from earshot_protocol.distribution import NAME, PHONE

PACKAGES = {
    NAME: tuple(SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]),
    PHONE: PHONE_PACKAGES,
}
ABOUT = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"}
PLACE = "https://code.example/earshot"
DIRECT = re.compile(r"\]\((?!https?://|#)")
"""A link that leads nowhere from an index."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both distributions' wheels and source archives."""
    folder = tmp_path_factory.mktemp("release")
    lay_out(folder / "tree")
    lay_out_phone(folder / "tree", folder / "phone")
    for source in ("tree", "phone"):
        build(folder / source, folder / "built")
    return folder / "built"


def tracked() -> set[str]:
    listed = subprocess.run(  # noqa: S603
        ["git", "-C", str(ROOT), "ls-files", "-z"],  # noqa: S607
        capture_output=True,
        check=True,
    ).stdout.decode()
    return {name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()}


def of_packages(distribution: str) -> set[str]:
    """Files that the distribution's wheel must hold, by their places in it."""
    return {
        name.removeprefix(f"{Path(package).parent}/")
        for name in tracked()
        for package in PACKAGES[distribution]
        if name.startswith(f"{package}/")
    }


def stem(distribution: str) -> str:
    return f"{distribution.replace('-', '_')}-{VERSION}"


def wheel(built: Path, distribution: str) -> Path:
    return built / f"{stem(distribution)}-py3-none-any.whl"


def metadata(built: Path, distribution: str) -> Message:
    with zipfile.ZipFile(wheel(built, distribution)) as archive:
        text = archive.read(f"{stem(distribution)}.dist-info/METADATA").decode()
    return Parser().parsestr(text)


@pytest.mark.parametrize("distribution", PACKAGES)
def test_a_wheel_holds_the_tracked_files_of_its_packages(built: Path, distribution: str) -> None:
    with zipfile.ZipFile(wheel(built, distribution)) as archive:
        held = set(archive.namelist())
    about = {f"{stem(distribution)}.dist-info/{name}" for name in ABOUT}
    assert held == of_packages(distribution) | about
    assert "earshot_protocol/data/contrast-3.tflite" in held


def test_a_source_archive_holds_what_its_wheel_is_built_from(built: Path) -> None:
    held = {}
    for distribution in PACKAGES:
        with tarfile.open(built / f"{stem(distribution)}.tar.gz") as archive:
            held[distribution] = {
                name.removeprefix(f"{stem(distribution)}/") for name in archive.getnames()
            }
    assert held[NAME] == tracked() | {"PKG-INFO"}  # so the container's image is made from it, too
    beside = {"LICENSE", "NOTICE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert held[PHONE] == of_packages(PHONE) | beside


def test_the_phone_alone_asks_for_what_the_whole_asks_for(built: Path) -> None:
    whole, phone = metadata(built, NAME), metadata(built, PHONE)
    assert (whole["Name"], phone["Name"]) == (NAME, PHONE)
    for field in ("Version", "Requires-Python", "License-Expression", "Classifier"):
        assert phone.get_all(field) == whole.get_all(field) != None  # noqa: E711
    assert phone.get_all("Provides-Extra") == sorted(PHONE_EXTRAS)
    both = [set(each.get_all("Requires-Dist") or ()) for each in (whole, phone)]
    of_phone = {line for line in both[0] if not (extra := _extra(line)) or extra in PHONE_EXTRAS}
    assert both[1] == of_phone
    commands = {name for name, each in SUB_COMMANDS.items() if each.package == "client"}
    assert {extra for name in commands for extra in SUB_COMMANDS[name].extras} <= set(PHONE_EXTRAS)


def _extra(requirement: str) -> str:
    return requirement.partition("extra == '")[2].rstrip("'")


@pytest.mark.parametrize("distribution", PACKAGES)
def test_its_page_on_an_index_links_to_no_file_beside_it(built: Path, distribution: str) -> None:
    page = str(metadata(built, distribution).get_payload())
    assert page.lstrip().startswith("# ")
    assert not DIRECT.search(page)
    assert f"pip install {distribution}" in page or distribution == NAME


@pytest.mark.parametrize(
    ("written", "folder", "with_a_place", "without"),
    [
        ("[a\nb](docs/x.md)", ".", f"[a\nb]({PLACE}/blob/v{VERSION}/docs/x.md)", "a\nb"),
        ("![p](docs/p.png)", ".", f"![p]({PLACE}/raw/v{VERSION}/docs/p.png)", "*p*"),
        ("[a](../docs/x.md#y)", "client", f"[a]({PLACE}/blob/v{VERSION}/docs/x.md#y)", "a"),
        ("[a](#here)", ".", "[a](#here)", "[a](#here)"),
        ("[a](https://x.example)", ".", "[a](https://x.example)", "[a](https://x.example)"),
    ],
)
def test_links_of_a_page_hold_on_an_index(
    written: str, folder: str, with_a_place: str, without: str
) -> None:
    assert on_index(written, folder, PLACE) == with_a_place
    assert on_index(written, folder, None) == without


def test_files_name_one_version_and_one_repository() -> None:
    """Until it has an address, none names it."""
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    package = json.loads((ROOT / "client/web/package.json").read_text("utf-8"))
    named_there = {
        next(iter(re.findall(r"^repository-code: (.*)$", citation, re.MULTILINE)), None),
        package.get("repository", {}).get("url"),
    }
    assert named_there == {repository()}
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [package["version"]]
    assert package["version"] == VERSION


def test_the_phone_alone_runs_and_says_what_it_lacks(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel(built, PHONE)) as archive:
        archive.extractall(tmp_path)  # noqa: S202 - our own wheel
    link(tmp_path, distributions())
    start = (
        f"import sys; sys.path.append({str(tmp_path)!r}); "
        "from earshot_client.command import main; main()"
    )

    def said(*words: str, status: int = 0) -> str:
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-I", "-S", "-c", start, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    assert said("--version") == f"{VERSION}\n"
    listed = " ".join(said("--help").split())
    assert "pip install 'earshot-phone[phone]'" in listed
    assert "[phone: not installed]" in listed
    assert listed.count("[only in earshot-sensing]") > 10
    assert said("ledger", status=2).endswith("pip install 'earshot-phone[phone]'\n")
    assert said("bench", "sitting", status=2) == (
        "earshot: earshot bench is not in earshot-phone: pip uninstall earshot-phone, "
        "then pip install 'earshot-sensing[simulations,server,browsers]'\n"
    )


def test_the_program_of_the_phone_s_page_is_the_readme_s() -> None:
    """Which a test runs."""
    page, readme = ((ROOT / name).read_text("utf-8") for name in (PHONE_PAGE, "README.md"))
    assert blocks(page, "python") == blocks(readme, "python")


# ------------------------------------------------------------------------------------- in earnest


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit of the tracked files, and this environment."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (["init", "--quiet"], ["add", "-A"], [*author, "commit", "--quiet", "-m", "All"]):
        subprocess.run(["git", "-C", folder, *words], check=True)  # noqa: S603, S607
    (folder / ".venv").symlink_to(ROOT / ".venv")
    with (folder / ".git/info/exclude").open("a") as excluded:
        excluded.write("/.venv\n")
    return folder


def release(clone: Path, folder: Path, umask: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "support.release", str(folder)],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone / "tests")},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_release_is_whole_and_can_be_made_again(clone: Path, tmp_path: Path) -> None:
    first, second = clone / "out/release", tmp_path / "second"
    done = release(clone, first.relative_to(clone), 0o022)  # as make calls it
    assert (done.returncode, done.stderr) == (0, "")
    for path in (*clone.rglob("*.py"), *clone.rglob("*.ts")):
        os.utime(path, (1, 1))
        path.chmod(0o600)  # as another clone may have other times and modes
    second.mkdir()
    (second / "earshot_sensing-0.0.1.tar.gz").write_text("of a release before")
    assert release(clone, second, 0o077).returncode == 0
    files = {path.name: path.read_bytes() for path in first.iterdir()}
    assert files == {path.name: path.read_bytes() for path in second.iterdir()}
    bills = {PHONE, f"{NAME}-server", f"{NAME}-simulations"}
    assert files.keys() == {
        *(f"{stem(name)}{end}" for name in PACKAGES for end in (".tar.gz", "-py3-none-any.whl")),
        *(f"{name}-{VERSION}.cdx.json" for name in bills),
        *(f"contrast-{number}{end}" for number in "12" for end in (".tflite", "-credits.txt")),
        f"earshot-phone-{VERSION}.tgz",
        "SHA256SUMS",
    }
    sums = {
        name: digest
        for digest, name in (line.split() for line in files.pop("SHA256SUMS").decode().splitlines())
    }
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    of_phone = json.loads(files[f"{PHONE}-{VERSION}.cdx.json"])
    components = {each["name"] for each in of_phone["components"]}
    assert components == named(distributions("phone", "proofs"))
    for name in bills:
        found = json.loads(files[f"{name}-{VERSION}.cdx.json"])
        assert found["metadata"]["component"]["version"] == VERSION
        assert all(each["externalReferences"][0]["hashes"] for each in found["components"])
        assert {"numpy", "cryptography"} <= {each["name"] for each in found["components"]}


@pytest.mark.slow
def test_a_release_is_made_of_what_is_committed(clone: Path, tmp_path: Path) -> None:
    page = clone / "README.md"
    shutil.copy(page, tmp_path / "kept")
    page.write_text("# Another\n")
    done = release(clone, tmp_path / "out", 0o022)
    shutil.copy(tmp_path / "kept", page)
    assert done.returncode == 1
    assert done.stderr.startswith("a release is made from a commit; these files are in none:\n")
    assert "README.md" in done.stderr
    assert not (tmp_path / "out").exists()


def test_python_versions_are_said_once() -> None:
    """The classifiers begin with the oldest Python that is accepted."""
    (oldest,) = re.findall(r"^>=(3\.\d+)$", PROJECT["requires-python"])
    listed = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert listed[0] == oldest
    assert listed == [f"3.{int(oldest[2:]) + step}" for step in range(len(listed))]
