"""Fixes in a terminal: each is written with options, and works when it is pasted."""

from __future__ import annotations

import json
import re
import shlex
from types import SimpleNamespace

import pytest

from tacit.cli.option_fixes import write_as_options

COUNT = "SELECT COUNT(*) AS n FROM t"


def option(name, *, multiple=False):
    return SimpleNamespace(opts=[name], multiple=multiple, nargs=1)


OPTIONS = {
    "epsilon": option("--epsilon"),
    "within": option("--within", multiple=True),
    "dialect": option("--dialect"),
    "key": option("--key", multiple=True),
    "one": option("--one"),
    "other": option("--other"),
    "url": SimpleNamespace(opts=["url"], multiple=False, nargs=1),
    "command": SimpleNamespace(opts=["command"], multiple=False, nargs=-1),
}


@pytest.mark.parametrize(
    ("fix", "written"),
    [
        ("epsilon=0.5", "--epsilon 0.5"),
        ("epsilon=0.5, say", "--epsilon 0.5"),
        ("epsilon=1e-06", "--epsilon 1e-06"),
        ('epsilon=0.5, or within={"n": 50}', "--epsilon 0.5, or --within n=50"),
        ('within={"n": 50, "all of it": 2.5}', "--within n=50 --within 'all of it=2.5'"),
        ('within={"a}": 50}', "--within 'a}=50'"),
        ('dialect="postgres"', "--dialect postgres"),
        ('key=["postcode", "date of birth"], say', "--key postcode --key 'date of birth'"),
        ("one=[1, 0], other=[1, 1]", "--one '[1, 0]' --other '[1, 1]'"),
        ('url="http://localhost:8000/mean"', "http://localhost:8000/mean"),
        ('command=["./mechanism", "{}"]', "./mechanism '{}'"),
        ("give epsilon=1 in place of within", "give --epsilon 1 in place of within"),
        # what is no argument of the command stays
        ("delta=1e-6", "delta=1e-6"),
        ("epsilon=0.5, delta=1e-6", "epsilon=0.5, delta=1e-6"),
        ('say "epsilon=1" or "mu=1"', 'say "epsilon=1" or "mu=1"'),
        ("WHERE t.epsilon=1", "WHERE t.epsilon=1"),
        ("--within epsilon=50", "--within epsilon=50"),
        ("https://a.example/?epsilon=1", "https://a.example/?epsilon=1"),
    ],
)
def test_arguments_of_python_are_options_in_a_terminal(fix, written):
    assert write_as_options(fix, OPTIONS) == written


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (["--within", "n=0"], "--within n=50"),
        (["--within", "n=nan"], "--within n=50"),
        (["--within", "n=-inf"], "--within n=50"),
        (["--within", "n=much"], "--within n=50"),
        (["--within", "0.5"], "--within n=50"),
        (["--within", "n=1", "--within", "n=2"], "--within n=50"),
        (["--epsilon", "nan"], "--epsilon 0.5"),
        (["--epsilon", "inf"], "--epsilon 0.5"),
        ([], "--epsilon 0.5"),
        (["--epsilon", "1.5"], "--epsilon 1"),  # of an analyst whose cap is 1
        (["--epsilon", "0.5", "--dialect", "PostgreSQL"], "--epsilon 0.5 --dialect postgres"),
        (["--epsilon", "0.5", "--confidence", "nan"], "--epsilon 0.5 --confidence 0.5"),
    ],
)
def test_a_fix_of_a_question_works_when_it_is_pasted(tacit, folder, wrong, fix):
    asked = ["-p", "t.toml", "--as", "ada", COUNT]
    refused = tacit("ask", *asked, *wrong, cwd=folder)
    assert refused.returncode in {2, 3} and "Traceback" not in refused.stderr
    said = refused.stderr.partition("fix: ")[2].strip()
    assert not re.search(r"(?<!-)\b(epsilon|within|dialect|confidence)=", said)
    kept = "--epsilon 0.5 " if "--epsilon 0.5 --" in fix else ""  # what was right stays
    assert fix in f"{kept}{said}"
    asked_again = tacit("explain", *asked, *shlex.split(fix), cwd=folder)
    assert asked_again.returncode == 0, asked_again.stderr


def test_json_has_the_same_fix(tacit, folder):
    shown = tacit("explain", "-p", "t.toml", "--as", "ada", COUNT, "--epsilon", "nan", "--json", cwd=folder)
    assert json.loads(shown.stdout)["error"]["fix"] == "--epsilon 0.5"


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (["profile", "-p", "t.toml", "--epsilon", "nan"], "--epsilon 0.5"),
        (["attack", "-p", "t.toml", "--epsilon", "nan"], "--epsilon 0.5"),
        (["audit", "policy", "-p", "t.toml", "--epsilon", "nan"], "--epsilon 0.5"),
        (["init", "t.parquet", "-p", "new.toml", "--epsilon", "nan"], "--epsilon 0.5"),
        (["init", "t.parquet", "-p", "new.toml", "--epsilon", "0"], "--epsilon 1"),
        (["audit", "callable", "math:fsum", "--claim", "mu=1", "--shape", "sum", "--lower", "nan"], "--lower 0.5"),
        (
            ["audit", "url", "ftp://a", "--claim", "epsilon=1", "--one", "1", "--other", "2"],
            "http://localhost:8000/mean",
        ),
        (["explain", COUNT, "--epsilon", "1", "--server", "ftp://a"], "--server https://clinic.example:8080"),
    ],
)
def test_every_command_writes_its_own_options(tacit, folder, arguments, fix):
    shown = tacit(*arguments, cwd=folder, TACIT_KEY="tacit_x")
    assert shown.returncode == 2 and shown.stderr.rstrip().endswith(f"fix: {fix}"), shown.stderr


def test_a_missing_key_is_set_in_the_environment(tacit, folder):
    shown = tacit("budget", "--server", "https://clinic.example", cwd=folder, TACIT_KEY="")
    assert "fix: export TACIT_KEY=tacit_..." in shown.stderr
