"""The package that apps install: it holds under their settings, and gives what its sources give."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from support.documented import blocks
from support.node import PACKAGE, ROOT, node, type_errors
from support.release import lay_out, pack

from earshot_protocol.shipped_encoders import packaged

APP = """
import { openPhone, type Client, BusyError } from "earshot-phone";
import { listen, shippedEncoder } from "earshot-phone/hearing";
import { MemoryStore } from "earshot-phone/testing";

const keys = { leader: "1a".repeat(32), helper: "2b".repeat(32) };
const encoder = await shippedEncoder(await fetch("contrast-3.tflite"));
const own = { ...keys, encoder, store: new MemoryStore(), key: new Uint8Array(32) };
export const phone: Client = openPhone({ server: "https://a.example", ...own });
export const number: number = await phone.hear(await listen("worklet.js"));
export const busy: string = new BusyError("").message;
"""
NAMES = """
import * as all from "earshot-phone";
import * as hearing from "earshot-phone/hearing";
import * as testing from "earshot-phone/testing";
console.log(JSON.stringify(Object.keys({ ...all, ...hearing, ...testing }).sort()));
"""
GUIDE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an app that has installed what `npm pack` makes of a checkout."""
    folder = tmp_path_factory.mktemp("app")
    checkout = folder / "checkout"
    lay_out(checkout)
    pack(checkout, folder)
    (archive,) = folder.glob("earshot-phone-*.tgz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (folder / "node_modules").mkdir()
    (folder / "package").rename(folder / "node_modules" / "earshot-phone")
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


@pytest.mark.parametrize("resolution", ["bundler", "nodenext"])
@pytest.mark.parametrize(
    "compiler", ["typescript", pytest.param("typescript-5.4", marks=pytest.mark.slow)]
)
def test_its_types_hold_under_an_app_s_own_settings(
    app: Path, resolution: str, compiler: str
) -> None:
    (app / "main.ts").write_text(APP)
    options = {
        "target": "es2022",
        "module": "nodenext" if resolution == "nodenext" else "esnext",
        "moduleResolution": resolution,
        "lib": ["es2022", "dom"],
        "types": [],
        "strict": True,
        "skipLibCheck": False,
    }
    settings = {"compilerOptions": options, "files": ["main.ts"]}
    (app / "tsconfig.json").write_text(json.dumps(settings))
    assert type_errors(app, compiler) == ""
    (app / "main.ts").write_text(APP.replace("number: number", "number: string"))
    assert "TS2322" in type_errors(app, compiler), "types of the package are looked at"


def test_it_gives_what_the_sources_give(app: Path) -> None:
    (app / "names.js").write_text(NAMES)
    found = json.loads(_run(app / "names.js"))
    sources = app / "sources.ts"
    names = NAMES.replace('"earshot-phone"', json.dumps(f"{PACKAGE}/index.ts"))
    sources.write_text(re.sub(r'"earshot-phone/(\w+)"', rf'"{PACKAGE}/\1.ts"', names))
    assert found == json.loads(_run(sources))
    assert {"openPhone", "shippedEncoder", "MemoryStore"} <= set(found)


def test_the_guide_s_test_of_an_app_passes_as_it_stands(app: Path) -> None:
    """In an app as `npm init` makes it, which is not of modules; and its types hold."""
    (example,) = [each for each in blocks(GUIDE, "ts") if "node:test" in each]
    own = app / "own"
    own.mkdir()
    (own / "package.json").write_text('{"type": "commonjs"}')
    (own / "app.test.mts").write_text(example)
    assert "# pass 2" in _run("--test", "--test-reporter=tap", own / "app.test.mts")
    options = {"module": "nodenext", "types": ["node"], "strict": True, "skipLibCheck": True}
    settings = {"compilerOptions": options, "files": ["app.test.mts"]}
    (own / "tsconfig.json").write_text(json.dumps(settings))
    assert type_errors(own) == ""


def test_all_that_it_exports_is_there_and_nothing_of_the_page(app: Path) -> None:
    folder = app / "node_modules" / "earshot-phone"
    exports = json.loads((folder / "package.json").read_text())["exports"]
    assert exports.keys() == {*(".", "./hearing", "./testing", "./worklet", "./contrast-3.tflite")}
    paths = [each for value in exports.values() for each in re.findall(r"\./[^']+", str(value))]
    assert len(paths) == 9
    for path in paths:
        assert (folder / path).is_file(), path
    dist = folder / "dist"
    assert (dist / "contrast-3.tflite").read_bytes() == packaged("contrast-3")
    assert (dist / "contrast-3-credits.txt").stat().st_size > 10_000, "its sounds' licences ask it"
    assert (dist / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert {path.name for path in (dist / "page").iterdir()} == {"worklet.js", "worklet.d.ts"}
    assert {path.name for path in folder.iterdir()} == {"README.md", "dist", "package.json"}


def test_no_link_of_its_readme_leads_out_of_it(app: Path) -> None:
    page = (app / "node_modules" / "earshot-phone" / "README.md").read_text("utf-8")
    assert "# earshot-phone" in page
    assert re.findall(r"\]\((?!\w+:|#)[^)]*\)", page) == []


def _run(*words: str | Path) -> str:
    return subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), *words], capture_output=True, text=True, check=True, timeout=60
    ).stdout
