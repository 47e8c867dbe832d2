"""How Sphinx builds the site: `make docs` writes it to build/docs, without the network."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "extensions"))

project = "Tacit"
author = "the authors of Tacit"
copyright = "the authors of Tacit, Apache License 2.0"
release = version = installed_version("tacit-dp")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "repository_pages",
    "public_names",
    "text_thumbnails",
]
exclude_patterns = [
    "README.md",
    "gallery/*.ipynb",
    "gallery/*.py",
    "**/sg_execution_times.rst",
    "extensions",
    "static",
    "templates",
]
root_doc = "index"
language = "en"

# Pages: Markdown that reads the same on a code host, with links that are checked.
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Notebooks run in the build. A cell that fails fails the build, unless it is there to show an error.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_merge_streams = True

# The reference: what `__all__` says, from numpydoc docstrings.
autosummary_generate = True
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_predict_request, set_score_request"
}  # scikit-learn's
autodoc_typehints = "none"  # numpydoc sections have the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["templates"]
default_role = "code"  # a name in single backquotes

# The gallery: every example, as it runs without arguments.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"^$" if find_spec("transformers") else r"/deep_\w+\.py$",  # `make torch` installs it
    "example_extensions": {".py"},
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 3600,
    "default_thumb_file": str(DOCS / "static" / "text.png"),
    "copyfile_regex": r".*\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = "Tacit"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["accessible-names.js"]
html_favicon = "static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "Tacit"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}

# Scripts and notebooks that the build runs draw to files and print plain text.
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("NO_COLOR", "1")
os.environ["COLUMNS"] = "110"
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the `tacit` of this version
