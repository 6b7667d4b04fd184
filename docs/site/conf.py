"""Configuration of the site that `make docs` builds.

Sources are read from the root of the repository, so that a link between two Markdown files leads to
the same page on a forge and on the site.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.sorting import ExplicitOrder


def _saved(block: tuple[object, ...], values: dict[str, Any], options: dict[str, Any]) -> str:
    """Show the pictures that an example has saved beside itself, and take them from there."""
    saved = sorted(Path(values["src_file"]).parent.glob("*.png"))
    shown = [shutil.move(each, next(values["image_path_iterator"])) for each in saved]
    return str(figure_rst(shown, options["src_dir"]))


_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1] / "tests")]  # pages of code, and what reads it

project = "Earshot"
copyright = "The Earshot authors"  # Sphinx's name for it

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "openapi_page",
    "typescript_page",
]
root_doc = "docs/site/index"
include_patterns = [
    "*.md",
    "*/README.md",
    "client/web/README.md",
    "client/web/examples/*/README.md",
    "simulations/*/*/README.md",
    "docs/**",
]
exclude_patterns = [".*", "out", "tests", "deploy", "**/node_modules", "docs/examples"]

# A fenced block keeps its language; anchors are those of a forge.
myst_heading_anchors = 4

# Single backticks in docstrings are code, with a link where they name something of the reference.
default_role = "py:obj"
napoleon_use_ivar = True  # a named tuple's fields are listed once
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
python_display_short_literal_types = True
# Annotations name types of other libraries, and of Earshot's inside, which have no page here.
nitpicky = True
nitpick_ignore_regex = [("py:(class|obj|data|exc|func)", ".*")]

sphinx_gallery_conf = {
    "examples_dirs": "docs/examples",
    "gallery_dirs": "docs/gallery",  # Sphinx reads sources only; `make clean` removes it
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder(
        [
            "first_phase.py",
            "both_routes.py",
            "epsilon_against_names.py",
            "own_folder.py",
            "own_population.py",
            "own_encoder.py",
            "own_clustering.py",
            "own_attack.py",
            "votes_of_teachers.py",
        ]
    ),
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "image_scrapers": (_saved,),
}

suppress_warnings = ["config.cache"]  # that a function is in the configuration

html_theme = "furo"
html_title = "Earshot"
html_copy_source = False
html_show_sourcelink = False
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["gallery.css"]
html_js_files = ["accessible.js"]
html_extra_path = ["start/index.html"]

_FOLDERS = {
    "decisions": "docs/site/decisions",
    "earshot_studies": "docs/site/studies",
    "examples": "docs/gallery/index",
    "vectors": "docs/site/vectors",
}
"""Pages that stand for a folder, which a forge lists where a link leads to it."""


def _lead_to_pages(app: Sphinx, page: nodes.document) -> None:
    """Lead links to folders to the pages that stand for them; others are unknown, an error."""
    for link in page.findall(pending_xref):
        folder, slash, rest = str(link.get("reftarget", "")).rpartition("/")
        name = folder.rpartition("/")[2]
        if slash and not rest and name in _FOLDERS:
            link.attributes.update(refdomain="doc", reftarget=_FOLDERS[name], reftargetid=None)


_FIELDS = "Attributes:"


def _complete(
    app: Sphinx, what: str, name: str, it: object, options: object, lines: list[str]
) -> None:
    """Describe the fields that a dataclass inherits before its own; keep colons of attributes."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # napoleon takes what precedes a colon in the first line for a type
    if what != "class" or not is_dataclass(it) or _FIELDS not in lines:
        return
    place = lines.index(_FIELDS) + 1
    for base in filter(is_dataclass, it.__mro__[1:]):
        _, _, entries = cleandoc(base.__doc__ or "").partition(f"{_FIELDS}\n")
        lines[place:place] = re.sub(r"--[a-z-]+", r"`\g<0>`", entries).splitlines()


def setup(app: Sphinx) -> None:
    """Connect what this file adds."""
    app.connect("doctree-read", _lead_to_pages)
    app.connect("autodoc-process-docstring", _complete, priority=400)  # before napoleon
