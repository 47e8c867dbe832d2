"""What is shipped and installed by others' hands is known by its hash."""

from __future__ import annotations

import hashlib
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_the_vendored_script_is_the_one_that_was_recorded():
    static = files("tacit.serve.console") / "static"
    recorded = tomllib.loads((files("tacit.serve.console") / "vendored.toml").read_text("utf-8"))
    for name, about in recorded.items():
        data = (static / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == about["sha256"]
        assert f'version:"{about["version"]}"'.encode() in data
        assert (static / about["license"]).is_file()
    minified = {each.name for each in static.iterdir() if ".min." in each.name}
    assert minified <= set(recorded)


def test_every_requirement_of_a_deployment_has_its_hashes_and_names_no_registry():
    text = (ROOT / "requirements" / "serve.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text and "file:" not in text
    entries = re.split(r"\n(?=\S)", "\n".join(lines))
    pinned = {}
    for entry in entries:
        name, version = re.match(r"([a-z0-9-]+)==([^ ;\\]+)", entry).groups()
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), name
        pinned[name] = version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for wanted in [
        *project["dependencies"],
        *extras["serve"],
        *extras["postgres"],
        *extras["fast"],
        *extras["catalog"],
    ]:
        assert re.match(r"[A-Za-z0-9-]+", wanted)[0].lower() in pinned, wanted
