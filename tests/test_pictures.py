"""Figures: saved where a path is given, shown where there is a screen, left open where there is none."""

from __future__ import annotations

import inspect

import pytest
from matplotlib import pyplot

from tacit import attacks, pictures
from tacit.errors import ParameterError
from tacit.pictures import open_figure


@pytest.fixture(autouse=True)
def backend():
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def draw_line(path) -> None:
    with open_figure(path, "Error", "people", "error") as axes:
        axes.plot([1, 2], [3, 4])


@pytest.mark.slow
def test_a_figure_with_a_path_is_saved_and_closed(tmp_path):
    draw_line(tmp_path / "a.svg")
    assert "</svg>" in (tmp_path / "a.svg").read_text() and pyplot.get_fignums() == []


@pytest.mark.slow
def test_a_figure_without_a_path_is_left_open_where_there_is_no_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_figure(None, "Error", "people", "error") as axes:
        axes.plot([1, 2], [3, 4])
    assert len(pyplot.get_fignums()) == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_figure_without_a_path_is_shown_where_there_is_one(monkeypatch):
    shown = []
    monkeypatch.setattr(pictures, "_WITHOUT_SCREEN", set())
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.get_fignums()))
    with open_figure(None, "Error", "people", "error", panels=2) as (left, _):
        left.plot([1, 2], [3, 4])
    assert shown == [[1]]


def test_a_picture_that_cannot_be_saved_is_an_error_with_its_path(tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(ParameterError, match=r"a\.svg cannot be written: Is a directory"):
        draw_line(tmp_path / "a.svg")
    assert pyplot.get_fignums() == []


def test_every_plot_of_an_attack_can_be_shown_without_a_file():
    named = [getattr(attacks, name) for name in attacks.__all__]
    plots = [each.plot for each in named if isinstance(each, type) and hasattr(each, "plot")]
    assert len(plots) >= 5
    assert all(inspect.signature(plot).parameters["path"].default is None for plot in plots)
