"""Sphinx's configuration of the documentation: the pages of ``resources/docs``, in Markdown, with furo's look.

``packaging/docs.py`` builds it. What the pages take from the code comes from ``directives.py``, which calls
``of_techniques.py`` and ``of_code.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The code whose knobs, messages and commands are described, before anything that is installed.
sys.path[:0] = [str(HERE), str(ROOT / "engine"), str(ROOT / "app")]

project = "Paretone"
author = "the authors of Paretone"
project_copyright = f"{author}, Apache-2.0"
language = "en"

extensions = ["myst_parser", "directives"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = True
myst_heading_anchors = 3
# Blocks that name no language are commands.
highlight_language = "sh"
# Quotes and dashes stay what they are: many of them are of commands.
smartquotes = False

html_theme = "furo"
html_title = "Paretone"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_favicon = str(ROOT / "resources" / "icons" / "paretone.svg")
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5c8a", "color-brand-content": "#0b5c8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#7cc4f0"},
}
html_use_index = False
