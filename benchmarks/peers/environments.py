"""The environments of the other sides, each with the versions that it needs, made on first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1] / ".venv-bench"

WANTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "opendp": ("query-opendp", ("opendp[polars]==0.16.0",)),
    "smartnoise": ("smartnoise", ("smartnoise-sql==1.0.10", "pyarrow")),
    "pipelinedp": ("query-pipelinedp", ("pipeline-dp==0.3.1", "pyarrow")),
    "tumult": ("query-tumult", ("tmlt.analytics==0.21.0",)),
    "diffprivlib": ("learn-diffprivlib", ("diffprivlib==0.6.6", "scikit-learn==1.6.1")),  # it does not import with 1.9
    "ebm": ("learn-ebm", ("interpret-core==0.7.8", "scikit-learn==1.7.2")),
}
"""For each side, its folder and what is installed there."""


class Missing(Exception):
    """A side that cannot be had; its text says why."""


def python_of(side: str) -> Path:
    """The Python of a side's environment."""
    folder, wanted = WANTED[side]
    root = ROOT / folder
    python, done = root / "bin" / "python", root / ".installed"
    if done.exists() and done.read_text(encoding="utf-8") == "\n".join(wanted):
        return python
    print(f"Setting up {', '.join(wanted)} (once, some minutes)...", file=sys.stderr, flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    try:
        ROOT.mkdir(exist_ok=True)
        (ROOT / ".gitignore").write_text("*\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True, text=True)
        subprocess.run(install, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        said = (getattr(problem, "stderr", "") or str(problem)).strip().splitlines()
        raise Missing(f"could not be installed: {said[-1] if said else problem}") from None
    done.write_text("\n".join(wanted), encoding="utf-8")
    return python
