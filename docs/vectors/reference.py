"""Reference of all messages, as Markdown, from the table of their fields (`schema.json`).

`python docs/vectors/reference.py` writes `docs/messages.md`; run it after `generate.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Table = dict[str, Any]

FOLDER = Path(__file__).parent
_HEAD = """# Messages, field by field

With this page you encode and check every message of a phone, a leader or a helper. It has all
fields of [vectors/schema.json](vectors/schema.json), from which it is made.
[protocol.md](protocol.md) says what the fields mean, and its section 3 how they are encoded;
[native-phones.md](native-phones.md) begins with the few that a phone needs.

A field is required unless it has a default. *Whole* and *real* are numbers, a real one always
written as a 64-bit float; *text* is UTF-8, and a *line* is text without control characters and line
breaks; *bytes* are binary, in JSON base64. A reader refuses fields that are not listed, except
where a map ignores them. A map that leaves out defaults is written without the fields that have
theirs.
"""
_GROUPS = {
    "bodies": "Bodies of requests and responses",
    "tasks": "Tasks: from the server to a phone",
    "answers": "Answers: from a phone to the server",
    "parameters": "Parameters of phases",
    "helper_tasks": "From the leader to the helper",
    "list_parts": "Parts of a long list, from the leader to the helper",
    "helper_answers": "From the helper to the leader",
}


def text(schema: Table) -> str:
    """Return the page.

    Args:
        schema: Table of `schema.schema`, as `schema.json` has it.
    """
    maps, blocks = schema["maps"], [_HEAD]
    groups = {title: schema["messages"][group] for group, title in _GROUPS.items()}
    named = {name for names in groups.values() for name in names}
    groups["Maps inside these"] = [name for name in maps if name not in named]
    for title, names in groups.items():
        blocks.append(f"## {title}\n")
        blocks += [_section(name, maps[name]) for name in names]
    return "\n".join(blocks)


def _section(name: str, table: Table) -> str:
    tag = table.get("tag")
    notes = [
        *([f"`{tag['name']}` is `{tag['value']}`."] if tag else []),
        *(["It leaves out defaults."] if table["leaves_out_defaults"] else []),
        *(["It ignores other fields."] if table.get("ignores_others") else []),
        *([] if table["fields"] else ["It has no fields."]),
    ]
    rows = [
        f"| `{field['name']}` | {_type(field)} | {_default(field)} |" for field in table["fields"]
    ]
    lines = [f"### {name}", ""]
    if notes:
        lines += [" ".join(notes), ""]
    if rows:
        lines += ["| field | type | default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _type(field: Table) -> str:
    kind = field["type"]
    if kind == "map":
        said = _link(field["map"])
    elif kind == "map of a kind":
        said = " or ".join(map(_link, field["maps"]))
    elif kind == "choice":
        said = "one of " + ", ".join(f"`{choice}`" for choice in field["choices"])
    elif kind == "list":
        said = f"list{_size(field, 'entries', ', ')}, each: {_type(field['of'])}"
    elif kind == "bytes":
        said = _size(field, "bytes") or "bytes"
    elif kind == "text":
        said = ("line" if field.get("line") else "text") + _size(field, "characters", ", ")
        said += f", matches `{field['pattern']}`" if "pattern" in field else ""
    else:
        said = kind + _range(field)
    return said + (", or nil" if field.get("or_nil") else "")


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _size(field: Table, unit: str, before: str = "") -> str:
    least, most = field.get("shortest", 0), field.get("longest")
    if most is None:
        return f"{before}at least {least:,} {unit}" if least else ""
    if least == most:
        return f"{before}{most:,} {unit}"
    return f"{before}{f'{least:,} to' if least else 'at most'} {most:,} {unit}"


def _range(field: Table) -> str:
    words = {"least": "at least", "above": "above", "most": "at most", "below": "below"}
    limits = [f"{said} {_number(field[name])}" for name, said in words.items() if name in field]
    return f", {' and '.join(limits)}" if limits else ""


def _number(value: float) -> str:
    return f"{value:,.15g}" if isinstance(value, float) else f"{value:,}"


def _default(field: Table) -> str:
    if "default" not in field:
        return "–"
    value = field["default"]
    if value is None:
        return "nil"
    if value in ("", []):
        return "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if isinstance(value, str) else _number(value)


def main() -> None:
    """Write the page beside the other documents."""
    schema = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
    (FOLDER.parent / "messages.md").write_text(text(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
