"""A card that an owner can publish: what was audited, with which result, and what would have been found.

>>> from tacit.audit.statistical import AuditResult
>>> from tacit.audit.claim import Claim
>>> audited = AuditResult(Claim.epsilon(1), 0.93, 0.99, 10_000, "output >= 1", 7_000, 2_800, 9_800)
>>> card = make_audit_card("A noisy count", {"one row more": audited}, seed=0, date="2026-01-31")
>>> card.verdict, card.to_html()[:15]
('not refuted', '<!doctype html>')
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from tacit.audit.detection import Detection, largest_tried, measure_detection
from tacit.audit.statistical import AuditResult
from tacit.audit.training import TrainingAudit
from tacit.errors import ParameterError
from tacit.terminal import one_line

_STYLE = """
:root { color-scheme: light dark; --text: #26323d; --soft: #5c6770; --line: #d5dade; --back: #ffffff; --bad: #a3341c; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaed; --soft: #a5afb8; --line: #3b454e; --back: #15191d;
  --bad: #ff9d85; } }
body { background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; }
.soft { color: var(--soft); }
.verdict { font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .45rem .6rem; text-align: left; vertical-align: top; }
th { font-weight: 600; }
@media print { body { margin: 0; max-width: none; } tr { break-inside: avoid; } }
"""
_MEANING = (
    "Refuted is strong: it happens to a true claim with at most the probability that the confidence leaves, in each "
    "audit. Not refuted is no proof: these inputs and these events showed nothing beyond the claim. The last column "
    "says how large a breach the audit finds more often than four times in five, with confidence 95 %, measured by "
    "auditing a mechanism of known parameter in the same way; one that leaks as much by rarer events may be found less "
    "often. Anyone can write such a page: who has to be sure repeats the audits."
)


@dataclass(frozen=True)
class CardEntry:
    """One audit of a card: what was tested, the result, and what would have been found.

    Attributes
    ----------
    what : str
        What was tested, in words.
    result : AuditResult or TrainingAudit
        The result of the audit.
    detection : Detection
        The least breach that an audit of this size finds more often than four times in five.

    Examples
    --------
    >>> from tacit.audit.claim import Claim
    >>> audited = AuditResult(Claim.epsilon(1), 0.93, 0.99, 10_000, "output >= 1", 7_000, 2_800, 9_800)
    >>> CardEntry("a count", audited, Detection("randomized response", 1.1, 36, 36)).size
    '10,000 samples a side'
    """

    what: str
    result: AuditResult | TrainingAudit
    detection: Detection

    @property
    def size(self) -> str:
        """How much was drawn, in words."""
        if isinstance(self.result, TrainingAudit):
            return f"one run, {self.result.canaries:,} canaries"
        return f"{self.result.samples:,} samples a side"

    @property
    def detects(self) -> str:
        """What would have been found, in words."""
        found, name = self.detection, self.result.claim.name
        if not found.is_found:
            return f"no breach up to {_largest_in_words(self.result)}"
        return f"{name} {found.parameter:.3g} ({found.mechanism}, {found.refuted} of {found.runs} runs)"


@dataclass(frozen=True)
class AuditCard:
    """Audits of one mechanism, with all that someone needs to judge or to repeat them.

    Attributes
    ----------
    title : str
        What was audited, in words: the heading of the page.
    entries : tuple of CardEntry
        One for each audit, in the order in which they were given.
    date : str
        The day, as YYYY-MM-DD.
    seed : int or None
        The seed of the audits, where they had one.
    versions : dict
        The versions of what was used.
    note : str
        Anything else that a reader should know.

    Examples
    --------
    >>> AuditCard("A noisy count", (), "2026-01-31", 0, {"tacit": "0.2.0"}).verdict
    'nothing audited'
    """

    title: str
    entries: tuple[CardEntry, ...]
    date: str
    seed: int | None
    versions: dict[str, str]
    note: str = ""

    @property
    def verdict(self) -> str:
        """ "refuted" where any audit refutes its claim, "nothing audited" where there is none, else "not refuted"."""
        if not self.entries:
            return "nothing audited"
        return "refuted" if any(entry.result.is_refuted for entry in self.entries) else "not refuted"

    @property
    def summary(self) -> str:
        """One or two sentences: how many claims are refuted, and how many audits could hardly have refuted any."""
        if not self.entries:
            return "Nothing was audited."
        refuted = sum(entry.result.is_refuted for entry in self.entries)
        weak = [each.result for each in self.entries if not (each.result.is_refuted or each.detection.is_found)]
        told = f"{refuted} of {len(self.entries)} claims are refuted." if refuted else "No claim is refuted."
        if weak:
            largest = " or ".join(dict.fromkeys(map(_largest_in_words, weak)))
            told += f" {len(weak)} of {len(self.entries)} audits are too small to find a breach of {largest}."
        return told

    def to_dict(self) -> dict[str, object]:
        """Return the card as plain values, for JSON.

        Returns
        -------
        dict
            The title, the verdict, each audit with what it would have found, the date, the seed and the versions.
        """
        audits = []
        for entry in self.entries:
            found = entry.detection
            detects = {
                "mechanism": found.mechanism,
                "parameter": found.parameter if math.isfinite(found.parameter) else None,
                "refuted": found.refuted,
                "runs": found.runs,
            }
            audits.append({"what": entry.what, "size": entry.size, **entry.result.to_dict(), "detects": detects})
        return {
            "title": self.title,
            "verdict": self.verdict,
            "date": self.date,
            "seed": self.seed,
            "versions": dict(self.versions),
            "note": self.note,
            "audits": audits,
        }

    def to_html(self) -> str:
        """Return the card as one page of HTML, without scripts and without anything from elsewhere.

        Returns
        -------
        str
            The page, for light and dark screens and for paper.
        """
        rows = []
        for entry in self.entries:
            result = entry.result
            # what was not found is no merit of the mechanism's: it has the color of text
            shown = f'<span class="bad">{result.verdict}</span>' if result.is_refuted else result.verdict
            cells = [
                _show(entry.what),
                _show(str(result.claim)),
                shown,
                _show(f"{result.claim.name} at least {result.lower:.3g}, confidence {100 * result.confidence:g} %"),
                _show(entry.size),
                _show(entry.detects),
            ]
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        heads = ("tested", "claim", "verdict", "shown", "size", "would have been found")
        used = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        seed = _show("none" if self.seed is None else str(self.seed))
        kind = "" if self.verdict == "not refuted" else "bad"
        return "\n".join(
            [
                "<!doctype html>",
                '<html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{_show(self.title)}: audit</title><style>{_STYLE}</style></head><body>",
                f'<p class="soft">Privacy audit, {_show(self.date)}</p><h1>{_show(self.title)}</h1>',
                f'<p class="verdict {kind}">{_show(self.summary)}</p>',
                f"<p>{_show(self.note)}</p>" if self.note else "",
                '<h2>Audits</h2><div class="wide"><table>',
                f"<thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead>",
                f"<tbody>{''.join(rows)}</tbody></table></div>",
                f"<h2>What this means</h2><p>{escape(_MEANING)}</p>",
                f"<h2>To repeat it</h2><p>Seed: {seed}. {_show(used)}.</p>",
                "</body></html>",
                "",
            ]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the card to a file.

        Parameters
        ----------
        path : path
            Where to; it ends in .html or .json, which chooses the format.

        Raises
        ------
        ParameterError
            If it ends otherwise.
        """
        target = Path(path)
        if target.suffix not in {".html", ".json"}:
            raise ParameterError("path", f"{target.suffix!r:.20} is not a format of cards", fix='path="card.html"')
        told = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        target.write_text(self.to_html() if target.suffix == ".html" else told, encoding="utf-8")

    def __str__(self) -> str:
        lines = [f"{self.title}, {self.date}: {self.verdict}", self.summary]
        lines += [
            f"{entry.what}: {entry.result.claim}, {entry.result.verdict}, at least {entry.result.lower:.3g} "
            f"({entry.size}); would have been found: {entry.detects}"
            for entry in self.entries
        ]
        return "\n".join(map(one_line, lines))


def make_audit_card(
    title: str,
    results: Mapping[str, AuditResult | TrainingAudit],
    *,
    seed: int | None = None,
    date: str | None = None,
    note: str = "",
) -> AuditCard:
    """Make a card of audits for publication, and measure what each of them would have found.

    Parameters
    ----------
    title : str
        What was audited, in words: the heading of the page.
    results : mapping
        Results of `audit`, `audit_worst_pair`, `audit_command`, `audit_url`, `audit_training_run` or
        `audit_canary_scores`, by what was tested in words. Inputs, scores and coins are not on the card.
    seed : int, optional
        The seed that the audits had.
    date : str, optional
        The day, as YYYY-MM-DD; today by default.
    note : str
        Anything else that a reader should know.

    Returns
    -------
    AuditCard
        The card, with `save("card.html")` and `save("card.json")`.

    Raises
    ------
    ParameterError
        If there is no result, or one of another kind, the date is none, or a title, a name of a result or the note is
        no text.

    Examples
    --------
    >>> from tacit.audit.claim import Claim
    >>> audited = AuditResult(Claim.epsilon(1), 0.93, 0.99, 10_000, "output >= 1", 7_000, 2_800, 9_800)
    >>> print(make_audit_card("A count", {"a row more": audited}, date="2026-01-31").entries[0].size)
    10,000 samples a side
    """
    import tacit

    if not results or not all(isinstance(each, AuditResult | TrainingAudit) for each in results.values()):
        what = "needs results of audits, by what was tested"
        raise ParameterError("results", what, fix='results={"a row more": audit(mechanism, [1], [1, 1], claim)}')
    for name, text, fix in (
        ("title", title, 'title="A noisy count"'),
        *(("results", what, 'results={"a row more": ...}: say in words what was tested') for what in results),
        ("note", note, 'note="All data is made up."'),
    ):
        if not isinstance(text, str):
            raise ParameterError(name, f"needs a text, got {type(text).__name__}", fix=fix)
    try:
        day = datetime.date.today() if date is None else datetime.date.fromisoformat(date)
        if date is not None and day.isoformat() != date:  # 20260131 and 2026-W05-6 are days in ISO 8601 too
            raise ValueError(date)
    except (TypeError, ValueError) as problem:
        raise ParameterError("date", "is not a day as YYYY-MM-DD", fix='date="2026-01-31"') from problem
    versions = {"tacit": tacit.__version__, "python": platform.python_version(), "numpy": np.__version__}
    measured: dict[object, Detection] = {}
    for result in results.values():
        if _size_of(result) not in measured:  # audits of the same size find the same
            measured[_size_of(result)] = measure_detection(result)
    entries = tuple(CardEntry(what, result, measured[_size_of(result)]) for what, result in results.items())
    return AuditCard(title, entries, day.isoformat(), seed, versions, note)


def _largest_in_words(result: AuditResult | TrainingAudit) -> str:
    """The largest breach that is looked for; of a claim of zero there are no multiples."""
    return "ten times the claim" if result.claim.value else f"{result.claim.name} {largest_tried(result.claim):.3g}"


def _show(text: str) -> str:
    """Text for the page: no markup, no control characters and none that turn its direction."""
    return escape(one_line(text))


def _size_of(result: AuditResult | TrainingAudit) -> object:
    """Return all that what an audit can find depends on."""
    if isinstance(result, TrainingAudit):
        return result.claim, result.confidence, result.canaries, tuple(count.guesses for count in result.counts)
    return result.claim, result.confidence, result.samples
