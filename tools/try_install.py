"""Build the wheel and the source distribution, install them in bare environments, and try what users do first.

    python tools/try_install.py            # the base: the demo, README's ten lines, a CSV file from init to an answer
    python tools/try_install.py --extras   # and each extra by itself, with its feature

It needs the package index, and takes about a minute, with the extras some ten.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ROWS = "\n".join(
    [
        "visit_id,patient_id,name,ward,age",
        *(f"{n},{n % 800},P{n % 800},{'AB'[n % 2]},{20 + n % 60}" for n in range(4_000)),
    ]
)
ASKED = """
import tacit
policy = {"privacy": {"epsilon": 3}, "analysts": {"ada": {"epsilon": 3}}, "ledger": {"store": "t.ledger"},
          "tables": {"t": {"unit": "row", "columns": {"x": {"type": "int", "lower": 0, "upper": 9}}}}}
ada = tacit.open(policy, data={"t": {"x": [1, 2, 3] * 100}}).analyst("ada")
answer = ada.ask("SELECT COUNT(*) AS n, SUM(x) AS s FROM t", epsilon=1)
"""
# What each extra is for. Without it the same must say what to install.
FEATURES = {
    "frames": f"{ASKED}\nassert len(answer.to_pandas()) == len(answer.to_polars()) == 1",
    "plot": f"{ASKED}\nanswer.plot('answer.svg')",
    "postgres": "import tacit.engines.postgres, tacit.ledger.postgres",
    "ibis": f"{ASKED}\nassert ada.table('t').count() is not None",
    "notebook": "from IPython.core.interactiveshell import InteractiveShell\n"
    "InteractiveShell().run_line_magic('load_ext', 'tacit')",
    "learn": "from tacit.learn import LogisticRegression\nLogisticRegression(epsilon=1)",
    "serve": "from tacit.serve import http, server",
    "oidc": "import tacit.serve.openid.id_token",
}
# Of the wire; speed only; Java; two gigabytes; the site; tests.
TRIED_ELSEWHERE = {"catalog", "fast", "spark", "torch", "docs", "dev"}


def run(*command: str | Path, cwd: Path | None = None, must: bool = True) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(  # noqa: S603 - pip, and the programs that it installed
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=600
    )
    if must and done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout + done.stderr


def make_environment(folder: Path, *requirements: str) -> Path:
    """A bare environment with these packages; its folder of programs."""
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    return folder / "bin"


def try_base(programs: Path, folder: Path) -> None:
    """What a newcomer does: the demo, README's ten lines, and their own CSV file."""
    assert "all in order" in run(programs / "tacit", "demo", cwd=folder)
    (lines,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert "north" in run(programs / "python", "-c", lines, cwd=folder)
    (folder / "visits.csv").write_text(ROWS + "\n", encoding="utf-8")
    tacit = programs / "tacit"
    run(tacit, "init", "visits.csv", "--unit", "patient_id", cwd=folder)
    assert "is in order, and the data is as declared" in run(tacit, "check", cwd=folder)
    sql = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
    print(run(tacit, "ask", "--as", "ada", sql, "--epsilon", "0.5", cwd=folder))


def try_missing(programs: Path, folder: Path) -> None:
    """Without an extra its feature is an error that says what to install. A notebook is run by IPython itself."""
    for extra, code in FEATURES.items():
        serving = programs / "tacit", "serve"
        said = run(
            *(serving if extra == "serve" else (programs / "python", "-c", f"import tacit\n{code}")),
            cwd=folder,
            must=False,
        )
        assert f"pip install '{PROJECT['name']}[{extra}]'" in said or extra == "notebook", f"{extra}: {said[-800:]}"


def main() -> None:
    """Try the wheel, the source distribution and, where asked to, each extra."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--extras", action="store_true")
    given = options.parse_args()
    assert FEATURES.keys() | TRIED_ELSEWHERE == PROJECT["optional-dependencies"].keys()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        builder = make_environment(place / "builder", "build")
        run(builder / "python", "-m", "build", "--outdir", place / "dist", ROOT)
        (wheel,), (source,) = place.glob("dist/*.whl"), place.glob("dist/*.tar.gz")
        for made in (wheel, source):
            begun = time.monotonic()
            programs = make_environment(place / made.suffix, str(made))
            work = place / f"work{made.suffix}"
            work.mkdir()
            try_base(programs, work)
            try_missing(programs, work)
            print(f"{made.name}: works, {time.monotonic() - begun:.0f} s with its installation\n")
        for extra, code in FEATURES.items() if given.extras else ():
            programs = make_environment(place / extra, f"{wheel}[{extra}]")
            run(programs / "python", "-c", f"import tacit\n{code}", cwd=place)
            print(f"{extra}: works")


if __name__ == "__main__":
    main()
