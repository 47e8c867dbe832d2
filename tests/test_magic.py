"""The notebook magic, in a real IPython shell."""

from __future__ import annotations

import pytest

from tacit.demo.clinic import build_clinic
from tacit.errors import ParameterError, TacitError


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "tacit")
    return shell


@pytest.fixture
def opened(shell, tmp_path):
    shell.run_line_magic("tacit", f"{build_clinic(tmp_path)} --as ada")
    return shell


@pytest.mark.slow
def test_a_cell_is_a_question_and_its_answer_is_a_value(opened):
    answer = opened.run_cell_magic(
        "tacit", "--epsilon 0.5 --into found", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1"
    )
    assert len(answer) == 6
    assert opened.user_ns["found"] is answer
    assert "<table" in answer._repr_html_()


@pytest.mark.slow
def test_a_cell_may_name_its_accuracy(opened):
    # 12 rows of a patient, width 100 at 95 %: -ln(0.05) 12/e <= 100 at about e = 0.36
    answer = opened.run_cell_magic("tacit", "--within n=100", "SELECT COUNT(*) AS n FROM visits")
    low, high = answer.interval("n")[0]
    assert high - low <= 200
    assert 0.3 < float(answer.receipt.to_dict()["charged_epsilon"]) < 0.4


@pytest.mark.slow
def test_an_explanation_costs_nothing(opened):
    found = opened.run_cell_magic("tacit", "--epsilon 0.5 --explain", "SELECT COUNT(*) AS n FROM visits")
    assert "costs epsilon 0.5" in str(found)


@pytest.mark.slow
def test_a_cell_may_be_drawn_too(opened):
    from IPython.core.displaypub import CapturingDisplayPublisher

    cell = "SELECT ward, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY ward"
    for line, name in (("--plot", "n"), ("--plot mean", "mean")):
        opened.display_pub = CapturingDisplayPublisher()
        answer = opened.run_cell_magic("tacit", f"--epsilon 0.5 {line}", cell)
        (picture,) = opened.display_pub.outputs
        assert f"{name}, 95% intervals" in picture["data"]["image/svg+xml"]
        assert picture["data"]["text/plain"] == answer.chart(name)
        assert len(answer) == 6


@pytest.mark.slow
def test_an_explanation_is_not_drawn(opened):
    with pytest.raises(ParameterError, match="not allowed with"):
        opened.run_cell_magic("tacit", "--epsilon 0.5 --explain --plot", "SELECT COUNT(*) AS n FROM visits")


@pytest.mark.slow
def test_mistakes_are_said(shell, opened):
    for line, cell in [("--epsilon", "SELECT 1"), ("--epsilon x", "SELECT 1"), ("", "SELECT COUNT(*) FROM visits")]:
        with pytest.raises(ParameterError):
            opened.run_cell_magic("tacit", line, cell)
    with pytest.raises(TacitError):
        opened.run_cell_magic("tacit", "--epsilon 1", "SELECT age FROM visits")


def test_a_policy_is_opened_first(shell):
    with pytest.raises(ParameterError, match="no policy is open"):
        shell.run_cell_magic("tacit", "--epsilon 1", "SELECT COUNT(*) FROM visits")
    with pytest.raises(ParameterError):
        shell.run_line_magic("tacit", "clinic.toml")
