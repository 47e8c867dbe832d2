"""Charts of a survey's results: rows with error bars on a terminal, and the same as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from tacit.local.survey.form import Survey
from tacit.local.survey.numbers import NumberQuestion
from tacit.local.survey.questions import SurveyQuestion
from tacit.local.survey.results import TARGET_HALF_WIDTH, CategoryEstimate, QuestionResult
from tacit.local.survey.rounding import places_down, places_up
from tacit.local.survey.words import format_factor, format_number, format_people, format_range, legible

_LABEL = 28  # characters of an option on a terminal
_SHORT = 12  # characters of a unit that is repeated on each row
_TITLE, _HEADING = 56, 72  # characters of a line of a picture: above all of it, and above a question


def render_results(survey: Survey, found: Sequence[QuestionResult], width: int = 90) -> str:
    """Render all questions: a bar, an estimate, an interval and a count for each row, and the bounds."""
    lines = textwrap.wrap(f"{survey.title}: {_summary_line(found)}", width)
    lines += textwrap.wrap('"sent" counts the reports as they came, before the coins are taken out of them.', width)
    for result in found:
        question = result.question
        lines += ["", *textwrap.wrap(f"{question.text} (epsilon {question.epsilon})", width)]
        numbers = [format_estimate(result, row) for row in result.rows]
        intervals = [format_interval(result, row) for row in result.rows]
        counts = [f"{row.count:,}" for row in result.rows]
        sent = " sent"
        if isinstance(question, NumberQuestion):
            sent += f" {format_range(question)[1] if len(question.unit) <= _SHORT else format_number(question.upper)}"
        labels = [textwrap.shorten(row.label, _LABEL, placeholder="…") for row in result.rows]
        room, wide, far, high = (max(map(len, column)) for column in (labels, numbers, intervals, counts))
        cells = max(12, width - room - wide - far - high - 13 - len(sent))
        rows = zip(result.rows, labels, numbers, intervals, counts, strict=True)
        for row, label, number, interval, count in rows:
            bar = _interval_bar(result, row, cells)
            shown = f"{number.rjust(wide)}  {interval.rjust(far)}  {count.rjust(high)}{sent}"
            lines.append(f"  {label.ljust(room)}  {bar}  {shown}")
        for text in filter(None, (describe_clipping(result), describe_bounds(result))):
            lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def describe_bounds(result: QuestionResult) -> str:
    """Describe the influence of one malicious report, and how many people five points take."""
    unit, influence, close = "points", 100 * result.exact_influence, 100 * TARGET_HALF_WIDTH
    if isinstance(result.question, NumberQuestion):
        span = result.question.upper - result.question.lower
        unit, influence, close = result.question.unit or "of its unit", result.exact_influence, TARGET_HALF_WIDTH * span
    made_up = f"One made-up report moves an estimate by at most {legible(influence)} {unit}"
    surer = f"An honest one makes anyone at most {format_factor(result.question.ratio)} times surer."
    return f"{made_up}; {format_people(result.required_users)} give intervals within {legible(close)} {unit}. {surer}"


def describe_clipping(result: QuestionResult) -> str:
    """Describe the estimates that were clipped; an empty text where none was."""
    rows = [row for row in result.rows if row.is_clipped]
    if not rows:
        return ""
    if isinstance(result.question, NumberQuestion):
        text = _format_value(result, rows[0].value, rows[0].high - rows[0].low)
    else:
        text = ", ".join(f"{100 * row.value:.1f} % for {row.label}" for row in rows)
    return f"* Clipped to what is possible: the unbiased estimate is {text}."


def save_chart(path: Path, survey: Survey, found: Sequence[QuestionResult]) -> None:
    """Save the results as a picture. Numbers are placed by their share of the range."""
    from tacit.pictures import COLORS, TEXT_COLOR, open_figure

    headings = [_heading(result.question) for result in found]
    rows = sum(len(result.rows) + 0.7 * heading.count("\n") for result, heading in zip(found, headings, strict=True))
    height = 1.4 + 0.3 * rows + 0.45 * len(found)
    place, ticks = 0.0, []
    across = "share of people, in percent"
    if any(isinstance(result.question, NumberQuestion) for result in found):
        across += "; of a number, where its mean is in its range"
    if any(row.is_clipped for result in found for row in result.rows):
        across += "\n* clipped to what is possible: the unbiased estimate lies outside"
    title = textwrap.fill(survey.title, _TITLE)
    with open_figure(path, title, across, "", size=(8.4, height + 0.2 * title.count("\n"))) as axes:
        axes.set_title(title, pad=22)
        above = {"xy": (0, 1), "xycoords": "axes fraction", "xytext": (0, 9), "textcoords": "offset points"}
        axes.annotate(_summary_line(found), **above, fontsize=9.5, color=TEXT_COLOR, annotation_clip=False)
        for number, result in enumerate(found):
            heading = headings[number]
            place += 0.7 * heading.count("\n")
            asked = axes.text(0, place + 0.35, heading, fontsize=9.5, fontweight="bold", va="bottom", color=TEXT_COLOR)
            asked.set_in_layout(False)  # it may run over the column of numbers, and narrows nothing
            place += 1
            for row in result.rows:
                low, middle, high = (100 * _share(result, at) for at in (row.low, row.clipped_value, row.high))
                error = [[middle - low], [high - middle]]
                color = COLORS[number % len(COLORS)]
                axes.errorbar([middle], [place], xerr=error, fmt="none", capsize=3, color=color)
                axes.plot([middle], [place], "o", color=color, markersize=5)
                words = f"{format_estimate(result, row)}  ({format_interval(result, row)})"
                axes.text(103, place, words, fontsize=8.5, va="center", color=TEXT_COLOR, clip_on=False)
                ticks.append((place, textwrap.shorten(row.label, 40, placeholder="…")))
                place += 1
            place += 0.5
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.set_ylim(place - 0.3, -0.8)
        axes.set_xlim(-1, 101)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)


def _heading(question: SurveyQuestion) -> str:
    """Return a question in lines that fit the picture, with its range."""
    span = f"  ({' to '.join(format_range(question))})" if isinstance(question, NumberQuestion) else ""
    return textwrap.fill(question.text + span, _HEADING)


def _summary_line(found: Sequence[QuestionResult]) -> str:
    """Return the number of reports, and the confidence of the intervals."""
    users = found[0].users
    reports = "1 report" if users == 1 else f"{users:,} reports"
    return f"{reports}, intervals at {100 * float(found[0].confidence):g} %"


def format_estimate(result: QuestionResult, row: CategoryEstimate) -> str:
    """Format an estimate with the digits that its interval makes meaningful; * where it is clipped."""
    mark = "*" if row.is_clipped else " " if any(each.is_clipped for each in result.rows) else ""
    return _format_value(result, row.clipped_value, row.high - row.low) + mark


def format_interval(result: QuestionResult, row: CategoryEstimate) -> str:
    """Format the ends of an interval, rounded outward."""
    width = row.high - row.low
    low, high = _format_value(result, row.low, width, places_down), _format_value(result, row.high, width, places_up)
    return f"{low.removesuffix(' %')} to {high}"


def _nearest(number: Fraction, places: int) -> str:
    return places_down(number + Fraction(1, 2 * 10**places), places)


def _format_value(
    result: QuestionResult, value: float, width: float, format_rounded: Callable[[Fraction, int], str] = _nearest
) -> str:
    if isinstance(result.question, NumberQuestion):
        digits = next((digits for digits in range(6) if width >= 20 * 10.0**-digits), 6)
        return format_rounded(Fraction(value), digits)
    return format_rounded(100 * Fraction(value), 1) + " %"


def _share(result: QuestionResult, value: float) -> float:
    """Return a value as a share of its range, from 0 to 1."""
    if isinstance(result.question, NumberQuestion):
        first, last = result.question.value(0), result.question.value(1)
        return (value - first) / (last - first)
    return value


def _interval_bar(result: QuestionResult, row: CategoryEstimate, cells: int) -> str:
    def at(value: float) -> int:
        return round(min(1.0, max(0.0, _share(result, value))) * (cells - 1))

    canvas = ["·"] * cells
    first, last = at(row.low), at(row.high)
    canvas[first : last + 1] = "─" * (last - first + 1)
    canvas[first], canvas[last] = ("├", "┤") if first < last else ("│", "│")
    canvas[at(row.clipped_value)] = "●"
    return "".join(canvas)
