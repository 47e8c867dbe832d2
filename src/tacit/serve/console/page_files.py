"""What pages are made of: templates, styles and scripts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from starlette.responses import Response

_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "LICENSE": "text/plain"}


def load_static() -> dict[str, bytes]:
    """The styles, scripts, pictures and licenses by name."""
    return {path.name: path.read_bytes() for path in (files(__package__) / "static").iterdir()}


def hash_static(static: Mapping[str, bytes]) -> str:
    """What changes whenever one of these files does."""
    return hashlib.sha256(b"".join(static[name] for name in sorted(static))).hexdigest()[:12]


def load_templates(**values: object) -> Environment:
    """The templates, in which every value is escaped; `values` are known to all."""
    texts = {path.name: path.read_text("utf-8") for path in (files(__package__) / "templates").iterdir()}
    templates = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.globals.update(values)
    return templates


def send_static(static: Mapping[str, bytes], name: str) -> Response:
    """One of these files: a table of them, so no path leads elsewhere."""
    body = static.get(name)
    if body is None:
        return Response(status_code=404)
    kind = _KINDS.get(name.rpartition(".")[2], "application/octet-stream")
    return Response(body, media_type=kind, headers={"cache-control": "public, max-age=86400"})
