"""What the documentation shows is what happens."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.counts import FULL
from tests.support.started import Starter, starter

import tacit.local
from tacit.aggregates.registry import read_question as parse
from tacit.demo.clinic import POLICY_TEXT, build_clinic
from tacit.demo.walk import COUNT
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import plan_for
from tacit.plan.explain import explain
from tacit.policy.load import load

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
WRITTEN = ROOT / "docs" / "project"  # what `make docs` writes for the site, which is checked there
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.is_relative_to(WRITTEN)),
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


# By default what takes long is done in fewer rounds, or with less data; each text must be in what it is replaced in.
SMALLER = {
    "attacks": {"queries=1000, truth": "queries=400, truth", ", 200, 1000, truth": ", 200, 400, truth"},
    "audits": {
        "canaries = np.arange(2_000), np.full(2_000, 30.0)": "canaries = np.arange(400), np.full(400, 30.0)",
        "each.one, each.other, each.claim)": "each.one, each.other, each.claim, samples=2_000)",
        "samples=10_000": "samples=2_000",
    },
    "deep-learning": {"epochs=10)": "epochs=2)", "epochs=4, batch_size=300": "epochs=1, batch_size=300"},
}


def shrink(name: str, text: str) -> str:
    """The Python of a page as it is run: by default with less to do."""
    for long, short in {} if FULL else SMALLER.get(name, {}).items():
        assert long in text
        text = text.replace(long, short)
    return text


def run(code: str, folder: Path, started: Starter | None = None) -> str:
    (folder / "shown.py").write_text(code, encoding="utf-8")
    return run_script(folder / "shown.py", [], folder, started)


def run_script(script: Path, arguments: list[str], folder: Path, started: Starter | None = None) -> str:
    """What a script prints, in a process of its own or, sooner, in a fork of one that has imported much."""
    if started is None:
        command = [sys.executable, script, *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    else:
        done = started.run(script, arguments, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def started():
    """Where scripts are forked from; at full counts each is a process that imports what it needs itself."""
    if FULL:
        yield None
    else:
        with starter() as process:
            yield process


def test_the_ten_lines_of_the_readme_run(tmp_path):
    (code,) = blocks(ROOT / "README.md", "python")
    assert len(code.strip().splitlines()) <= 11  # ten, and an empty one
    assert re.search(r"^north +[\d,]+ +", run(code, tmp_path), re.MULTILINE)


def test_the_first_answer_runs_on_the_clinic_that_the_page_makes(tmp_path, started):
    (tmp_path / "clinic").mkdir()
    build_clinic(tmp_path / "clinic")
    (code,) = blocks(ROOT / "docs" / "guide" / "first-answer.md", "python")
    assert "95% interval" in run(code, tmp_path, started)


@pytest.mark.parametrize(
    "page",
    [
        "mechanisms",
        "counting-the-cost",
        "choosing-epsilon",
        "glossary",
        "attacks",
        "audits",
        "local",
        "local-more",
        "learning",
        "graphs",
        *(["deep-learning"] if find_spec("torch") else []),  # `tests/learn/test_torch_missing.py` says where it is not
    ],
)
def test_the_python_of_the_guide_runs(page, tmp_path, started, monkeypatch):
    script = tmp_path / "page.py"
    code = "\n".join(blocks(ROOT / "docs" / "guide" / f"{page}.md", "python"))
    script.write_text(shrink(page, code), encoding="utf-8")
    if page == "deep-learning" and not FULL:  # this process has PyTorch already, which takes longer than the page
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(script))
    else:
        run_script(script, [], tmp_path, started)


def test_the_guide_shows_every_public_name_of_the_local_model():
    pages = [ROOT / "docs" / "guide" / f"{page}.md" for page in ("local", "local-more", "survey")]
    used = set(re.findall(r"\w+", "\n".join(code for page in pages for code in blocks(page, "python"))))
    assert set(tacit.local.__all__) <= used


def test_the_guide_and_the_examples_need_no_submodule():
    files = [*(ROOT / "docs" / "guide").glob("*.md"), *(ROOT / "examples").glob("*.py")]
    inner = re.compile(r"^ *(?:from|import) tacit\.(?:accounting|mechanisms|privacy)\.\w+", re.MULTILINE)
    assert len(files) > 30
    assert not {file.name: found for file in files if (found := inner.findall(file.read_text(encoding="utf-8")))}


def test_the_figures_of_the_ledger_page_come_out(tmp_path, started):
    (code,) = blocks(ROOT / "docs" / "guide" / "ledger.md", "python")
    assert run(code, tmp_path, started).splitlines() == re.findall(r"^print.*  # (.+)$", code, re.MULTILINE) != []


def test_the_table_of_failures_has_every_code_of_the_ledger():
    page = (ROOT / "docs" / "guide" / "ledger.md").read_text(encoding="utf-8")
    table = page.partition("## Everything that can break")[2]
    told = set(re.findall(r"^\|.*\| `([a-z-]+)` \|.*\|$", table, re.MULTILINE))
    assert told == {code for code in ErrorCode if code.startswith("ledger")} | {ErrorCode.FAILED}


def test_the_policy_of_the_guide_loads(tmp_path):
    (text,) = blocks(ROOT / "docs" / "guide" / "policy.md", "toml")
    (tmp_path / "policy.toml").write_text(text)
    assert load(tmp_path / "policy.toml").table("visits") is not None


def test_the_tables_of_that_policy_can_be_asked_about(tmp_path):
    (text,) = blocks(ROOT / "docs" / "guide" / "policy.md", "toml")
    (tmp_path / "policy.toml").write_text(text)
    policy = load(tmp_path / "policy.toml")
    for sql in (
        "SELECT SUM(amount) AS billed FROM bills",
        "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward",
        "SELECT diagnosis, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY diagnosis",
        "SELECT AVG(age) AS age FROM visits JOIN wards USING (ward) WHERE beds > 20",
    ):
        assert plan_for(parse(sql), policy, 0.5).unit == "patient_id"  # bills reach it through visits


@pytest.fixture(scope="module")
def clinic():
    return load(tomllib.loads(POLICY_TEXT))


def test_the_question_of_the_readme_is_planned(clinic):
    (sql,) = blocks(ROOT / "README.md", "sql")
    assert plan_for(parse(sql), clinic, 0.1)


def test_the_answer_that_the_readme_shows_is_of_the_price_it_says(clinic):
    (shown,) = re.findall(r"^3\. A private count$.*?^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    explained = str(explain(plan_for(parse(COUNT), clinic, 0.1), clinic, 0.95))
    estimate, low, high = (int(n.replace(",", "")) for n in re.findall(r"[\d,]{6}", shown.partition("──")[2])[:3])
    assert high - estimate == estimate - low
    assert f"within {high - estimate} of the bounded value" in explained


@pytest.mark.parametrize("page", ["guide/first-answer", "guide/policy", "guide/sql", "reference/errors"])
def test_a_refusal_that_a_page_quotes_is_what_happens(page, clinic):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for quoted in re.findall(r"^(refused \[.*?)\n```", text, re.DOTALL | re.MULTILINE):
        question = quoted.splitlines()[2].strip()
        if not question.startswith("SELECT"):
            question = f"SELECT COUNT(*)\nFROM visits\n  {question}"
        with pytest.raises(Refused) as caught:
            plan_for(parse(question), clinic, 0.1)
        assert str(caught.value) == quoted


# What is not installed is left out; `tests/learn/test_torch_missing.py` says so.
NEEDED = {"deep_audit": "torch", "deep_digits": "torch", "deep_text": "torch", "deep_trainer": "transformers"}
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if find_spec(NEEDED.get(path.stem, "tacit"))]


PICTURES = [path for path in EXAMPLES if "sys.argv" in path.read_text(encoding="utf-8")]
# By default the quickest run, once: the others are left to `make docs`, whose gallery runs all without arguments.
TOLD = {"anonymity", "demo_picture"}  # where to draw: the second writes its picture itself
QUICK = {"auction", "ledger", "own_data", "puzzles", "secret_bit", "truthfulness"}
DRAWN = [path for path in PICTURES if FULL or path.stem in TOLD]
ALONE = [path for path in EXAMPLES if FULL or path.stem in QUICK]


@pytest.mark.parametrize("example", ALONE, ids=lambda path: path.name)
def test_an_example_runs_without_arguments_and_leaves_nothing(example, tmp_path, started):
    """By default the quickest; that the others run without arguments, `make docs` says each day."""
    assert run_script(example, [], tmp_path, started)  # it prints what it finds
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "err"}  # where the output was caught


@pytest.mark.parametrize("example", DRAWN, ids=lambda path: path.name)
def test_an_example_writes_its_picture_where_it_is_told(example, tmp_path, started):
    """By default two of them; the others say alike what they pass on."""
    run_script(example, ["drawn.svg"], tmp_path, started)
    assert "</svg>" in (tmp_path / "drawn.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_starts_with_a_title_that_the_gallery_takes(example):
    title, line, *rest = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))).splitlines()
    assert line == "=" * len(title) and len(rest) > 1


def test_every_picture_is_told_where_in_the_same_way():
    assert all(path.read_text(encoding="utf-8").endswith("\n    main(*sys.argv[1:2])\n") for path in PICTURES)


def test_pictures_that_pages_show_can_be_made_again():
    made = {name for path in PICTURES for name in re.findall(r"docs/images/([\w-]+\.svg)", path.read_text("utf-8"))}
    assert len(made) == len(PICTURES) and all((ROOT / "docs" / "images" / name).exists() for name in made)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
