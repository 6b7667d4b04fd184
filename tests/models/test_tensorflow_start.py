"""TensorFlow and LiteRT start without a word, and errors are heard."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEVEL = "TF_CPP_MIN_LOG_LEVEL"
QUIET = ("models/earshot_models", "simulations/earshot_studies")
"""Packages whose first line silences TensorFlow."""


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has no setting of TensorFlow's but these."""
    kept = {name: value for name, value in os.environ.items() if name != LEVEL}
    return subprocess.run(  # noqa: S603 - programs of this file
        [sys.executable, "-W", "error", "-c", program],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


WAYS = {
    "keras": "import earshot_models.network",
    "tensorflow": "import earshot_models, tensorflow; tensorflow.constant(1)",
    "a study": "import earshot_studies.muehl.cnn",
    "both": "import earshot_studies.muschiol.tagging.training",
    "JAX": "import earshot_studies.pate_aae.generators.networks, jax; jax.devices()",
    "another process": (
        "import earshot_models, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import earshot_models.objectives'], check=True)"
    ),
    "LiteRT": "from earshot_client.encoder import default_encoder; default_encoder()",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_import_it_says_anything(way: str) -> None:
    ran = run(WAYS[way])
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "")


FAKE = """
import os
os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called are written\\n")
os.write(2, b"I0000 00:00:17.26 2 cudart_stub.cc:31] no cuda drivers\\n")
os.write(2, b"W0000 00:00:17.26 2 guard.cc:1] not all instructions\\n")
os.write(2, b"E0000 00:00:17.26 2 guard.cc:1] broken library\\n")
"""
ERROR = "E0000 00:00:17.26 2 guard.cc:1] broken library\n"


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A TensorFlow that talks at its start, as the real one does from its libraries."""
    (tmp_path / "tensorflow.py").write_text(FAKE, encoding="utf-8")
    return tmp_path


def test_errors_are_heard_and_chatter_is_not(fake: Path) -> None:
    program = "import earshot_models, tensorflow, os; os.write(2, b'I0000 later\\n')"
    ran = run(program, PYTHONPATH=str(fake))
    assert (ran.returncode, ran.stderr) == (0, f"{ERROR}I0000 later\n")


def test_who_looks_for_it_first_does_not_make_it_talk(fake: Path) -> None:
    program = (
        "import earshot_models, importlib.util\n"
        "importlib.util.find_spec('tensorflow')\n"
        "import tensorflow\n"
        "print(tensorflow.__loader__.get_filename())"
    )
    ran = run(program, PYTHONPATH=str(fake))
    assert (ran.stdout, ran.stderr) == (f"{fake / 'tensorflow.py'}\n", ERROR)


@pytest.mark.parametrize(
    ("end", "words", "status"),
    [
        ("raise ImportError('no such library')", "ImportError: no such library", 1),
        ("os.write(2, b'F0000 no AVX\\n'); os.abort()", "F0000 no AVX", -6),
    ],
)
def test_what_ends_it_is_heard(fake: Path, end: str, words: str, status: int) -> None:
    (fake / "tensorflow.py").write_text(f"{FAKE}{end}\n", encoding="utf-8")
    ran = run("import earshot_models, tensorflow", PYTHONPATH=str(fake))
    assert ran.returncode == status
    assert ran.stderr.startswith(ERROR)
    assert words in ran.stderr
    assert "drivers" not in ran.stderr


@pytest.mark.parametrize("level", ["0", "2"])
def test_a_setting_of_the_user_wins(fake: Path, level: str) -> None:
    program = f"import earshot_models, tensorflow, os; print(os.environ[{LEVEL!r}])"
    ran = run(program, PYTHONPATH=str(fake), **{LEVEL: level})
    assert ran.stdout == f"{level}\n"
    assert "I0000" in ran.stderr
    assert "W0000" in ran.stderr


def test_nothing_else_of_ours_imports_it() -> None:
    found = set()
    for path in ROOT.glob("*/earshot_*/**/*.py"):
        text = path.read_text(encoding="utf-8")
        if "tensorflow" not in text and "keras" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            if any(name.partition(".")[0] in ("tensorflow", "keras") for name in names):
                found.add("/".join(path.relative_to(ROOT).parts[:2]))
    assert found == set(QUIET)
