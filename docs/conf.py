"""Sphinx settings; builds offline."""

import re
import sys
from pathlib import Path

from mixnorm import __version__

sys.path.insert(0, str(Path(__file__).parent))
import reference

reference.write()

project = "mixnorm"
author = "The mixnorm developers"
copyright = "2026, The mixnorm developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "**/README.rst"]
suppress_warnings = ["config.cache"]
default_role = "literal"

# No intersphinx: it would need the network. Names of other projects stay plain text.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say it in words
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2

html_theme = "pydata_sphinx_theme"
html_title = "mixnorm"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "backreferences_dir": None,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": False,  # with -W a failing example fails the build all the same
}

_FOREIGN_ROLE = re.compile(r":(?:ref|term|doc):`(?P<text>[^`<]+?)\s*(?:<[^`>]*>)?`")


def _plain_links(app, what, name, obj, options, lines):
    """Turn scikit-learn's links into plain text, in the docstrings it lends us.

    Methods inherited or generated from scikit-learn refer to labels of its own
    documentation, which exist there and not here.
    """
    module = getattr(obj, "__module__", None) or ""
    generated = re.fullmatch(r"set_\w+_request", name.rpartition(".")[2])
    if module.startswith("sklearn.") or generated:
        lines[:] = _FOREIGN_ROLE.sub(r"\g<text>", "\n".join(lines)).split("\n")


def setup(app):
    app.connect("autodoc-process-docstring", _plain_links)
