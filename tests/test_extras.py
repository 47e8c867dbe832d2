"""The name under which Tacit is installed, wherever it is said, and the error where an extra is missing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from importlib.metadata import distribution as installed_distribution
from pathlib import Path

import pytest
from tests.support.counts import FULL

from tacit.extras import DISTRIBUTION, install_command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEXTS = {".py", ".md", ".toml", ".txt", ".sh", ".cfg", ".yml", ".yaml", ".html", ".js", ".service", ""}
FOLDERS = ("src", "docs", "examples", "benchmarks", "deploy", "requirements", ".ci", ".github")
IMPORTED = re.compile(r"^(?:import|from) +(\w+)", re.MULTILINE)  # ruff says that a line imports one module
# `tacit` where a package is meant: with extras, or after "pip install" and its options.
EXTRAS = "|".join(PROJECT["optional-dependencies"])
NAMED = re.compile(
    rf"(?<![\w./-])tacit\[(?:{EXTRAS})[],]"
    r"|pip3? install(?: +-\S+)*(?: +[\"']?[\w.\[\],=<>-]+[\"']?)*? +[\"']?tacit(?![\w-])"
)


def _texts() -> list[Path]:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    found = [path for path in [*ROOT.iterdir(), *inside] if path.is_file() and path.suffix in TEXTS]
    return [path for path in found if "__pycache__" not in path.parts]


def test_the_distribution_is_the_one_that_the_constant_names() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_no_text_names_another_projects_package() -> None:
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in _texts()
        if (found := NAMED.findall(path.read_text(errors="replace"))) and path.name != "CHANGELOG.md"
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("pip install 'tacit[serve]'", True),
        ("pip install -U tacit", True),
        ("pip install --no-cache-dir numpy tacit", True),
        ("needs `tacit[fast]`", True),
        ("pip install 'tacit-dp[serve]'", False),
        ("pip install tacit-dp", False),
        ("python -m tacit", False),
    ],
)
def test_the_search_for_such_names_finds_them(text: str, wrong: bool) -> None:
    assert bool(NAMED.search(text)) == wrong


def test_every_extra_that_an_error_or_a_page_names_exists() -> None:
    named: set[str] = set()
    for path in _texts():
        text = path.read_text(errors="replace")
        named |= set(re.findall(r'missing_extra\(\s*"(\w+)"', text))
        for some in re.findall(rf"{DISTRIBUTION}\[([a-z, ]+)\]", text):
            named |= {one.strip() for one in some.split(",")}
    assert {"serve", "plot", "frames", "learn"} <= named  # the search finds what is there
    assert named <= set(PROJECT["optional-dependencies"])


# Each with the module that is hidden, and the extra that the error must name.
MISSING = {
    "frames": ("pandas", "answer.to_pandas()"),
    "frames ": ("polars", "answer.to_polars()"),
    "plot": ("matplotlib", "answer.plot('x.svg')"),
    "learn": ("sklearn", "tacit.learn.Ridge"),
    "torch": ("torch", "import tacit.learn.torch; tacit.learn.torch.Private"),
    "ibis": ("ibis", "ada.table('t')"),
    "postgres": ("psycopg", "import tacit.engines.postgres"),
    "postgres ": ("psycopg", "import tacit.ledger.postgres"),
    "spark": ("pyspark", "import tacit.engines.spark"),
    "oidc": ("joserfc", "import tacit.serve.openid.id_token"),
}
SCRIPT = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name in {hidden!r} else find(name, *rest)
import tacit, tacit.learn, pyarrow
policy = {{"privacy": {{"epsilon": 3.0}}, "ledger": {{"store": "x.ledger"}}, "analysts": {{"ada": {{"epsilon": 1.0}}}},
          "tables": {{"t": {{"unit": "row", "columns": {{"x": {{"type": "int", "lower": 0, "upper": 1}}}}}}}}}}
ada = tacit.open(policy, data={{"t": pyarrow.table({{"x": [0, 1]}})}}).analyst("ada")
answer = ada.ask("SELECT COUNT(*) AS n FROM t", epsilon=0.5)
for extra, statement in {statements!r}.items():
    try:
        exec(statement)
    except tacit.ParameterError as error:
        print(extra, error.fix, sep="=")
"""


def run_without(missing: dict[str, tuple[str, str]], folder: Path) -> dict[str, str]:
    """What errors propose for each statement, in a process in which none of the modules is found."""
    hidden = {module for module, _ in missing.values()}
    script = SCRIPT.format(hidden=hidden, statements={extra: statement for extra, (_, statement) in missing.items()})
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same of all statements: in one process, or with one module missing at a time at full counts."""
    if not FULL:
        return run_without(MISSING, tmp_path_factory.mktemp("without"))
    each = [run_without({extra: one}, tmp_path_factory.mktemp("without")) for extra, one in MISSING.items()]
    return {extra: fix for found in each for extra, fix in found.items()}


@pytest.mark.parametrize("extra", MISSING)
def test_a_missing_extra_is_an_error_with_the_command_that_installs_it(extra: str, proposed: dict[str, str]) -> None:
    assert proposed[extra] == install_command(extra.strip())


def _required(extra: str) -> set[str]:
    """The distributions that an extra names, by itself and through other extras of this project."""
    found: set[str] = set()
    for line in PROJECT["optional-dependencies"][extra]:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", line).groups()  # type: ignore[union-attr]
        found |= {name.lower()} if name != DISTRIBUTION else set().union(*(map(_required, extras.split(","))))
    return found


def test_what_the_tests_import_is_required_by_name() -> None:
    """What another package brings along today is missing in an environment made tomorrow."""
    plain = {re.match(r"[\w.-]+", line)[0].lower() for line in PROJECT["dependencies"]}  # type: ignore[index]
    required = plain | _required("dev") | _required("torch")
    ours = {"tacit", "tests", "tools", *(path.stem for path in (ROOT / "benchmarks").glob("*.py"))}
    known = {*sys.stdlib_module_names, *ours}.union(*map(_list_modules, required))
    wrong = {
        (str(path.relative_to(ROOT)), name)
        for path in [*(ROOT / "tests").rglob("*.py"), ROOT / "conftest.py"]
        if not known.issuperset(IMPORTED.findall(text := path.read_text()))  # or a string looks like an import
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name in {_top(alias) for alias in _imported(statement)}
        if name not in known
    }
    assert sorted(wrong) == []


def _list_modules(distribution: str) -> set[str]:
    """The modules that a distribution brings, where it is installed."""
    try:
        found = installed_distribution(distribution)
    except PackageNotFoundError:
        return set()
    named = found.read_text("top_level.txt")
    return set(named.split()) if named else {path.parts[0].removesuffix(".py") for path in found.files or ()}


def _imported(statement: ast.Import | ast.ImportFrom) -> list[str]:
    return [each.name for each in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]


def _top(module: str) -> str:
    return module.partition(".")[0]
