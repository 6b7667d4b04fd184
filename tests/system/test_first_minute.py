"""A bare machine: what `make demo` installs, how it says so, and that it is enough."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.closure import distributions, named
from support.only import only

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "simulations" / "requirements.lock"


def pins(lock: Path) -> dict[str, str]:
    """The version of each package that is installed here."""
    lines = [line for line in lock.read_text("utf-8").splitlines() if "==" in line]
    entries = [Requirement(line.removesuffix(" \\")) for line in lines]
    here = [each for each in entries if each.marker is None or each.marker.evaluate()]
    return {each.name: str(each.specifier) for each in here}


def test_the_demos_lock_is_what_simulations_need_and_a_part_of_the_whole_lock() -> None:
    part, whole = pins(LOCK), pins(ROOT / "requirements.lock")
    assert part.items() <= whole.items()
    builds = {"hatchling", "packaging", "pathspec", "pluggy", "trove-classifiers", "tomlkit"}
    assert part.keys() == named(distributions("simulations")) | builds
    assert part.keys().isdisjoint({"tensorflow", "keras", "jax", "ray", "librosa", "pyarrow"})


@pytest.mark.slow
def test_the_demo_runs_with_what_its_lock_brings(tmp_path: Path) -> None:
    line = re.search(r"^DEMO := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert line is not None
    words = line[1].replace("$(OUT)", str(tmp_path / "out")).split()
    small = ["--phones", "40", "--recordings", "8", "--pool", "3", "--scenes", "2"]
    agreed = ["--policy", "anything", "--corrupted", "0", "--jobs", "1"]
    (run,) = only(tmp_path, ["simulations"], [*words, *small, *agreed])
    assert run.status == 0, run.said
    assert (tmp_path / "out" / "report.html").exists()


# ------------------------------------------------------------------------------ the installation


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two small packages, and their lock."""
    folder = tmp_path_factory.mktemp("wheels")
    lines = []
    for name in ("alpha", "beta"):
        about = f"{name}-1.0.dist-info"
        path = folder / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(f"{name}.py", "")
            wheel.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            )
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/RECORD", "")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{name}==1.0 \\\n    --hash=sha256:{digest}\n")
    (folder / "lock").write_text("# Two packages.\n" + "".join(lines))
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)  # noqa: S603
    return folder / "bin" / "python"


def install(python: Path, wheels: Path, lock: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [python, ROOT / "deploy" / "packages.py", lock],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)},
    )


@pytest.mark.slow
def test_an_installation_says_without_a_terminal_how_far_it_is(
    environment: Path, wheels: Path
) -> None:
    run = install(environment, wheels, wheels / "lock")
    assert run.returncode == 0, run.stderr
    assert re.fullmatch(
        r"((fetched|unpacked) \d of 2, \d\d:\d\d\n)*all 2 packages are installed, \d\d:\d\d\n",
        run.stdout,
    )
    subprocess.run([environment, "-c", "import alpha, beta"], check=True)  # noqa: S603
    again = install(environment, wheels, wheels / "lock")
    assert (again.returncode, again.stdout.splitlines()[-1][:3]) == (0, "all")


@pytest.mark.slow
def test_a_package_that_is_not_the_locks_is_refused(
    environment: Path, wheels: Path, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    text = (wheels / "lock").read_text().replace("alpha", "gamma")
    for path in wheels.glob("beta*.whl"):
        (tmp_path / path.name.replace("beta", "gamma")).write_bytes(path.read_bytes())
    lock.write_text(text)
    run = install(environment, tmp_path, lock)
    assert run.returncode != 0
    assert "installed" not in run.stdout
    assert "gamma" in run.stderr
