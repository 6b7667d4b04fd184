"""The directive `openapi`, which shows docs/openapi.json: every path, and every map in a body."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DOCUMENT = Path(__file__).parents[1] / "openapi.json"

Schema = dict[str, Any]


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _anchor(name: str) -> str:
    return f"api-{name.lower()}"


def _kind(schema: Schema) -> str:
    """Return the type of a value, with links to the maps that it holds."""
    if "$ref" in schema:
        return f"[{_name(schema)}](#{_anchor(_name(schema))})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_kind(each) for each in schema[several])
    if "enum" in schema or "const" in schema:
        return ", ".join(
            f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")])
        )
    kind = schema.get("type", "any value")
    if kind == "array":
        inside = schema.get("items") or {}
        return f"list of {_kind(inside)}" if inside else "list"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"map to {_kind(values)}" if isinstance(values, dict) and values else "map"
    return f"{kind}, {schema['format']}" if "format" in schema else str(kind)


def _bodies(content: Schema) -> str:
    kinds = {_kind(each.get("schema", {})): None for each in content.values()}
    return " or ".join(kinds) or "none"


def _operation(path: str, method: str, operation: Schema) -> list[str]:
    lines = [f"### `{method.upper()} {path}`", "", f"{operation['summary']}.", ""]
    lines += [operation["description"], ""] if "description" in operation else []
    signed = [name for each in operation.get("security", []) for name in each]
    lines += [f"- signed in as: {', '.join(signed) or 'nobody'}"]
    for each in operation.get("parameters", []):
        needed = "" if each.get("required") else ", optional"
        lines += [f"- {each['in']} `{each['name']}`{needed}: {_kind(each.get('schema', {}))}"]
    if "requestBody" in operation:
        lines += [f"- body: {_bodies(operation['requestBody']['content'])}"]
    for status, each in operation["responses"].items():
        if status < "400":
            lines += [f"- {status}: {each['description']}; {_bodies(each.get('content', {}))}"]
    problems = [status for status in operation["responses"] if status >= "400"]
    lines += [f"- problems: {', '.join(problems)}"] if problems else []
    return [*lines, ""]


def _map(name: str, schema: Schema) -> list[str]:
    text, _, attributes = str(schema.get("description", "")).partition("\n\nAttributes:\n")
    said = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE))
    lines = [f"({_anchor(name)})=", f"### {name}", "", text, ""]
    fields = schema.get("properties", {})
    if not fields:
        return [*lines, _kind(schema), ""]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    for field, each in fields.items():
        needed = "" if field in schema.get("required", []) else "optional; "
        meaning = needed + " ".join(said.get(field, "").split()).replace("|", "\\|")
        lines += [f"| `{field}` | {_kind(each)} | {meaning.removesuffix('; ')} |"]
    return [*lines, ""]


def page(document: Schema) -> str:
    """Return the document as Markdown.

    Args:
        document: OpenAPI document, as parsed JSON.
    """
    lines = [document["info"]["description"], "", "## Paths", ""]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _operation(path, method, operation)
    lines += ["## Bodies", ""]
    for name, schema in document["components"]["schemas"].items():
        lines += _map(name, schema)
    return "\n".join(lines)


class OpenAPI(SphinxDirective):
    """Shows the document in a page of Markdown."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of the page."""
        self.env.note_dependency(str(DOCUMENT))
        text = page(json.loads(DOCUMENT.read_text("utf-8")))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> None:
    """Connect the directive."""
    app.add_directive("openapi", OpenAPI)
