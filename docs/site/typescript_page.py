"""The directive `typescript`, which shows all that `earshot-phone` exports, with its comments."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from support.node import PACKAGE
from support.package_exports import Module, modules


def page(shown: list[Module]) -> str:
    """Return the modules as Markdown.

    Args:
        shown: Modules of the package.
    """
    lines: list[str] = []
    for module in shown:
        lines += [f"## {module.name}", "", module.comment, ""]
        for each in module.exports:
            lines += [f"### {each.name}", "", each.comment, ""]
            lines += ["```typescript", each.declaration, "```", ""]
    return "\n".join(lines)


class TypeScript(SphinxDirective):
    """Shows the package in a page of Markdown."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of the page."""
        self.env.note_dependency(str(PACKAGE / "package.json"))
        return self.parse_text_to_nodes(page(modules()), allow_section_headings=True)


def setup(app: Sphinx) -> None:
    """Connect the directive."""
    app.add_directive("typescript", TypeScript)
