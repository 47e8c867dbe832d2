"""Charts for the console, as SVG: places across are in percent, so a drawing fits any width and words stay legible.

Colors come from the style sheet, by class. Every word is escaped.

>>> print(PercentScale(0, 10).at(5))
50%
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tacit.charts.scale import AxisScale, format_tick

SERIES_KINDS = ("first", "second", "third", "fourth", "fifth", "sixth")  # classes, by color


@dataclass(frozen=True)
class PercentScale(AxisScale):
    """An axis across a drawing: places are in percent of its width, from `left` to `right`."""

    left: float = 0.0
    right: float = 100.0

    def at(self, value: float) -> str:
        """Return the place of a number as SVG has it."""
        return f"{self.left + (self.right - self.left) * self.share(value):.4g}%"


@dataclass(frozen=True)
class ChartLine:
    """A curve through points, by the class that styles it; of steps where `steps`."""

    points: Sequence[tuple[float, float]]
    kind: str = "first"
    steps: bool = False


@dataclass(frozen=True)
class ChartMark:
    """A dot, with an interval where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    kind: str = "first"


def make_element(name: str, words: str | Markup = "", **given: object) -> Markup:
    """One element. Underscores in names of attributes stand for hyphens, a last one for nothing.

    Names are constants of this module. Values and words may be anyone's, and are escaped.
    """
    attributes = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in given.items())
    return Markup(f"<{name}{attributes}>{escape(remove_control_characters(words))}</{name}>")  # noqa: S704 - escaped on this line


def draw_plot(
    x: PercentScale,
    y: AxisScale,
    lines: Sequence[ChartLine],
    marks: Sequence[ChartMark] = (),
    *,
    title: str,
    across: str = "",
    percent: bool = False,
    dates: Sequence[tuple[float, str]] = (),
    height: int = 200,
) -> Markup:
    """Curves and marks in a frame. `dates` names places across in place of numbers."""
    top, bottom = 12, height - 24

    def up(value: float) -> float:
        return round(bottom - (bottom - top) * min(1.0, max(0.0, y.share(value))), 1)

    parts = []
    for tick in y.ticks():
        word = f"{100 * tick:.10g}%" if percent else format_tick(tick)
        parts.append(make_element("line", class_="grid", x1="0%", x2="100%", y1=up(tick), y2=up(tick)))
        parts.append(make_element("text", word, x="0%", y=up(tick) - 4))
    for place, word in dates or [(tick, format_tick(tick)) for tick in x.ticks()]:
        anchor = find_anchor((x.left + (x.right - x.left) * x.share(place)) / 100)
        parts.append(make_element("text", word, x=x.at(place), y=height - 6, text_anchor=anchor))
    for line in lines:
        for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
            kind = f"curve {line.kind}"
            if line.steps:
                parts.append(make_element("line", class_=kind, x1=x.at(x1), x2=x.at(x2), y1=up(y1), y2=up(y1)))
                parts.append(draw_vertical_line(kind, x.at(x2), up(y1), up(y2)))
            else:
                parts.append(make_element("line", class_=kind, x1=x.at(x1), x2=x.at(x2), y1=up(y1), y2=up(y2)))
    for mark in marks:
        here = x.at(mark.x)
        if mark.low is not None and mark.high is not None:
            parts.append(draw_vertical_line(f"error-bar {mark.kind}", here, up(mark.low), up(mark.high)))
        parts.append(make_element("circle", class_=f"dot {mark.kind}", cx=here, cy=up(mark.y), r=5))
    drawing = make_element("svg", Markup().join(parts), class_="plot", height=height, role="img", aria_label=title)
    below = make_element("figcaption", across) if across else Markup()
    return make_element("figure", drawing + below, class_="curves")


def draw_budget_bar(left: float, taken: float = 0.0) -> Markup:
    """The part of a budget that is left, as a bar; and how much of that one more question would take."""
    whole = 100 * min(1.0, max(0.0, left))
    part = min(whole, 100 * max(0.0, taken))
    drawn = [make_element("rect", class_="whole", width="100%", height=10, rx=5)]
    drawn.append(make_element("rect", class_="remaining", width=f"{whole:.4g}%", height=10, rx=5))
    if part:
        part = min(whole, max(1.0, part))
        drawn.append(make_element("rect", class_="taken", x=f"{whole - part:.4g}%", width=f"{part:.4g}%", height=10))
    words = f"{whole:.0f}% of the budget is left" + (f", this would take {part:.0f}% of it" if part else "")
    return make_element("svg", Markup().join(drawn), class_="budget-bar", height=10, role="img", aria_label=words)


def draw_guessed_secrets(right: Sequence[bool]) -> Markup:
    """A dot for each person whose secret was guessed, a cross for each who was spared."""
    side = math.ceil(math.sqrt(len(right)))
    drawn = []
    for place, known in enumerate(right):
        x, y = 10 * (place % side) + 5, 10 * (place // side) + 5
        if known:
            drawn.append(make_element("circle", class_="known", cx=x, cy=y, r=3.6))
        else:
            drawn.append(make_element("path", class_="spared", d=f"M{x - 2.4} {y - 2.4}l4.8 4.8m0 -4.8l-4.8 4.8"))
    words = f"{sum(right)} of {len(right)} secrets are guessed right"
    box = f"0 0 {10 * side} {10 * math.ceil(len(right) / side)}"
    return make_element("svg", Markup().join(drawn), class_="people", viewBox=box, role="img", aria_label=words)


def draw_vertical_line(kind: str, x: str, top: float, bottom: float) -> Markup:
    """Return a line from top to bottom, by the class that styles it."""
    return make_element("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)


def find_anchor(share: float) -> str:
    """Return how words stand at a place: near an end they grow inward."""
    return "start" if share < 0.05 else "end" if share > 0.95 else "middle"


def remove_control_characters(words: str | Markup) -> str | Markup:
    """Return words without what HTML has no place for. Markup is ours, and clean."""
    if isinstance(words, Markup):
        return words
    return "".join(c if c.isprintable() else " " for c in words)
