"""Files of the page: those that are shipped, and what a host gets of them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import posixpath
import re
import subprocess
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from flask import Flask
from support.command import earshot
from support.compiled_page import SHIPPED, compiled, shipped
from support.node import PACKAGE

from earshot_protocol.environments import default_hierarchy
from earshot_protocol.shipped_encoders import packaged
from earshot_server.phone_page.assembling import assembled, header_fields, policy
from earshot_server.phone_page.serving import phone_page

TEXTS = PACKAGE / "page" / "texts"
SERVER = "https://earshot.example.org"


def texts(language: str) -> dict[str, str]:
    read: dict[str, str] = json.loads((TEXTS / f"{language}.json").read_text())
    return read


def test_what_is_shipped_is_what_the_sources_make() -> None:
    assert shipped() == compiled(), "run: make phone-page"


def test_names_of_shared_scripts_do_not_change_with_their_contents() -> None:
    names = {name for name in compiled() if "shared" in name}
    assert names == {f"page/shared-{number}.js" for number in range(1, len(names) + 1)}


def test_the_scripts_are_as_small_as_the_design_asks() -> None:
    """40 KB compressed, each file by itself, for all of the package but its page's own scripts.

    What proves inputs has 4 KB beside it, since nothing loads it before a sum asks for proofs.
    """
    files = {
        path.relative_to(SHIPPED).as_posix(): path.read_bytes() for path in SHIPPED.rglob("*.js")
    }
    package, at_once = {"page/worklet.js"}, set[str]()
    for script in ("index.js", "hearing.js"):
        package |= imported(files, script, r'(?:from|import\(?)"(\.[^"]+)"')
        at_once |= imported(files, script, r'(?:from|import)"(\.[^"]+)"')
    assert package < files.keys()
    (prover,) = (path for path in package if b"4611686018427387897n" in files[path])
    assert prover not in at_once
    size = {path: len(gzip.compress(files[path], 9)) for path in package}
    assert size.pop(prover) <= 4_000
    assert sum(size.values()) <= 40_000


def imported(files: Mapping[str, bytes], script: str, statement: str) -> set[str]:
    """Paths of a script and of what it imports by such statements, however indirectly."""
    found, waiting = set[str](), [script]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            names = re.findall(statement, files[path].decode())
            folder = posixpath.dirname(path)
            waiting += [posixpath.normpath(posixpath.join(folder, name)) for name in names]
    return found


# ----------------------------------------------------------------------------------------- texts


def test_all_languages_say_the_same() -> None:
    english, german = texts("en"), texts("de")
    assert english.keys() == {key for key in german if not key.startswith("name.")}
    for key, text in english.items():
        holes = re.findall(r"\{\w+\}", text)
        assert sorted(holes) == sorted(re.findall(r"\{\w+\}", german[key])), key
        assert text.strip() == text, key
        assert german[key].strip() == german[key], key


def test_the_choices_of_everyday_life_have_german_names() -> None:
    groups = default_hierarchy().groups
    wanted = {*groups, *(choice for choices in groups.values() for choice in choices)}
    named = {key.removeprefix("name.") for key in texts("de") if key.startswith("name.")}
    assert named == wanted


def test_every_text_is_used_and_every_text_that_is_used_is_there() -> None:
    script = "".join(path.read_text() for path in sorted((PACKAGE / "page").glob("*.ts")))
    literal = set(re.findall(r'"([a-z]+(?:\.(?!js)[a-z]+)+)"', script))
    literal |= set(re.findall(r'say\(\s*"([a-z]+)"', script)) | {"yes", "no"}
    made = {
        "error.": {f"error.{name}" for name in re.findall(r"\w+Error", _errors())},
        "visit.": {f"visit.{event}" for event in _words("phone/visits.ts", "readonly event:")},
        "budget.": {f"budget.{s}.{u}" for s in ("year", "life") for u in ("recording", "phone")},
        "result.": {f"result.{kind}" for kind in _words("protocol/messages.ts", "readonly type:")},
    }
    screens = set(re.findall(r'"(\w+)"', _between(script, "NAVIGATION: ", ";")))
    titles = {f"{screen}.title" for screen in screens | {"welcome", "gone"}}
    titles |= {f"{screen}.nav" for screen in screens}
    known = {re.sub(r"\.(one|other)$", "", key) for key in texts("en")}
    used = literal | titles | made["visit."] | made["budget."] | made["result."]
    assert used <= known
    errors = {key for key in known if key.startswith("error.")}
    assert errors <= made["error."], "an error that the phone does not have"
    assert known - errors <= used


def _errors() -> str:
    return "".join(path.read_text() for path in sorted(PACKAGE.rglob("*.ts")))


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def _words(path: str, field: str) -> list[str]:
    """Literal alternatives of a field's type."""
    return re.findall(r'"([^"]+)"', _between((PACKAGE / path).read_text(), field, ";"))


# ---------------------------------------------------------------------------------------- folder


class Found(HTMLParser):
    """Tags of a page with their attributes."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_a_page_loads_its_own_scripts_alone_each_by_its_digest() -> None:
    files = assembled((SERVER,))
    for path in (each for each in files if each.endswith(".html")):
        tags = Found(files[path]).tags
        folder = Path(path).parent
        loaded = [
            tag for name, tag in tags if name == "script" or tag.get("rel") == "modulepreload"
        ]
        assert len(loaded) > 1
        for tag in loaded:
            where = (folder / str(tag.get("src") or tag["href"])).as_posix()
            named = re.sub(r"[^/]+/\.\./", "", where)
            digest = base64.b64encode(hashlib.sha256(files[named]).digest()).decode()
            assert tag["integrity"] == f"sha256-{digest}", where
        assert not [name for name, tag in tags if {"style", "onclick", "onload"} & tag.keys()]
        assert not [name for name, tag in tags if name == "style"]
        (stated,) = [
            tag["content"]
            for name, tag in tags
            if tag.get("http-equiv") == "Content-Security-Policy"
        ]
        assert stated == policy((SERVER,) if folder.name == "page" else ())
    (index,) = [path for path in files if path.endswith("/page/index.html")]
    loaded_paths = {
        str(tag["href"]) for _, tag in Found(files[index]).tags if tag.get("rel") == "modulepreload"
    }
    wanted = imported(shipped(), "page/main.js", r'(?:from|import)"(\.[^"]+)"') - {"page/main.js"}
    assert len(wanted) > 1
    assert loaded_paths == {f"../{path}" for path in wanted}
    assert not any(b"indexedDB" in shipped()[path] for path in wanted), "it is in its worker"


def test_a_policy_lets_no_other_server_be_called() -> None:
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy((SERVER,)).split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == f"'self' {SERVER}"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy((SERVER,))
    assert header_fields(())["Content-Security-Policy"].startswith(policy(()))


def test_a_server_compresses_the_page_for_whoever_takes_that() -> None:
    app = Flask(__name__)
    app.register_blueprint(phone_page())
    client, files = app.test_client(), assembled(())
    for path in files:
        address = f"/phone/{path.removesuffix('index.html')}"
        plain = client.get(address)
        assert (plain.data, plain.headers.get("Content-Encoding")) == (files[path], None)
        small = client.get(address, headers={"Accept-Encoding": "gzip, br"})
        assert small.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(small.data) == files[path]
        for response in (plain, small):
            assert response.headers["Vary"] == "Accept-Encoding"
            assert int(response.headers["Content-Length"]) == len(response.data)
        if path.endswith(".tflite"):
            assert len(small.data) <= 820_000
    assert client.get("/phone/other.js").status_code == 404


def test_another_byte_is_another_version_with_another_address() -> None:
    versions = {
        json.loads(assembled(servers)["newest.json"])["version"] for servers in ((), (SERVER,))
    }
    assert len(versions) == 2
    assert assembled((SERVER,)) == assembled((SERVER,))


def test_a_folder_is_written_whole_and_keeps_its_former_versions(tmp_path: Path) -> None:
    out = tmp_path / "page"
    said = earshot("phone-page", "--out", str(out), "--server", SERVER)
    assert said.returncode == 0, said.stderr
    check = subprocess.run(
        ["sha256sum", "--check", "--strict", "digests.txt"],  # noqa: S607
        cwd=out,
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout
    first = json.loads((out / "newest.json").read_text())
    folder = out / first["version"]
    assert (folder / "contrast-3.tflite").read_bytes() == packaged("contrast-3")
    listed = "".join(
        line.replace(f"{first['version']}/", "")
        for line in (out / "digests.txt").read_text().splitlines(keepends=True)
        if first["version"] in line
    )
    assert hashlib.sha256(listed.encode()).hexdigest() == first["digest"]
    kept = sorted(json.loads((folder / "files.json").read_text()))
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {*kept} == there - {"files.json"}
    assert SERVER in (out / "headers.txt").read_text()

    other = ("--server", "https://other.example.org")
    assert earshot("phone-page", "--out", str(out), "--server", SERVER, *other).returncode == 0
    second = json.loads((out / "newest.json").read_text())
    assert second["version"] != first["version"]
    assert (folder / "page" / "index.html").exists(), "people may stay with it"
    assert second["version"] in (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://earshot.example.org", "use https"),
        ("https://earshot.example.org/path", "without a path"),
        ("*", "name each one"),
        ("https://a.example.org; script-src *", "is not an origin"),
    ],
)
def test_what_is_not_an_origin_does_not_get_into_a_policy(
    tmp_path: Path, server: str, said: str
) -> None:
    run = earshot("phone-page", "--out", str(tmp_path / "page"), "--server", server)
    assert run.returncode == 2
    assert said in " ".join(run.stderr.split())
    assert not (tmp_path / "page").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = earshot("phone-page", "--out", str(tmp_path / "file" / "x"), "--server", SERVER)
    assert run.returncode == 2
    assert "--out" in run.stderr
