"""`tacit audit`: look for evidence against claims of privacy, by samples. Exit code 7 where some is found."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption, find_policy_or_demo
from tacit.cli.output import format_table, show_progress
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.audit.claim import Claim
    from tacit.audit.statistical import AuditResult

REFUTED = 7
_FIX = 'name a function of a module in this folder, as in "examples.audit_peers:opendp_laplace"'

SamplesOption = Annotated[int, typer.Option("--samples", "-n", help="Outputs of each of the two databases.")]
AuditConfidenceOption = Annotated[
    float, typer.Option("--confidence", help="How often, at least, no true claim is refuted in a whole run.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed makes the same choices.", min=0)]

ProgramSamplesOption = Annotated[int, typer.Option("--samples", "-n", help="Calls for each of the two databases.")]
ClaimOption = Annotated[str, typer.Option("--claim", help="What it promises: epsilon=1, or rho=0.5, or mu=1.")]
OneOption = Annotated[str, typer.Option("--one", help="A database, as JSON.", metavar="JSON")]
OtherOption = Annotated[str, typer.Option("--other", help="A neighbor of it, as JSON.", metavar="JSON")]
TimeoutOption = Annotated[float, typer.Option("--timeout", help="Seconds after which a call is given up.")]
CardOption = Annotated[
    str | None,
    typer.Option("--card", help="Write a card of the audit: a file that ends in .html or .json.", metavar="FILE"),
]
TimeOption = Annotated[bool, typer.Option("--time/--no-time", help="Whether the time of a call is an outcome too.")]

app = typer.Typer(help="Look for evidence against claims of privacy, by samples.", no_args_is_help=True)


@app.command()
def policy(
    policy: PolicyOption = DEFAULT_POLICY,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The epsilon of each question.")] = 1.0,
    samples: SamplesOption = 10_000,
    confidence: AuditConfidenceOption = 0.99,
    seed: SeedOption = 0,
    units: Annotated[int, typer.Option("--units", help="How many units the made-up databases have.")] = 100,
    stored: Annotated[
        bool, typer.Option("--stored", help="Audit what the ledger stores, from which all that is shown follows.")
    ] = False,
    card: CardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit the answers that a policy allows: made-up neighbors through the real plan, engine and noise.

    No real data is read. Every aggregate and clause that the policy answers is asked about two databases that differ
    in one unit, as often as --samples says.
    """
    from tacit.trial.trial import PolicyAuditor

    _check_card(card)
    rows: list[dict[str, Any]] = []
    results: dict[str, AuditResult] = {}
    audited = find_policy_or_demo(policy)
    with PolicyAuditor(audited, units=units, seed=seed) as trial, show_progress() as tell:
        questions = trial.questions
        sure = _split_confidence(confidence, len(questions))
        for number, question in enumerate(questions):

            def report_share(share: float, number: int = number, question: str = question) -> None:
                tell((number + share) / len(questions), question)

            report_share(0)
            found = trial.audit(
                question, epsilon, samples=samples, confidence=sure, seed=seed, stored=stored, progress=report_share
            )
            rows.append({"question": question, **found.to_dict()})
            results[question] = found
    _save_card(
        card,
        f"The answers that {policy.name if audited == policy else 'the policy of the bundled clinic'} allows",
        results,
        seed,
        f"Made-up neighbors of {units:,} units, through the real plan, engine and noise. {_say_confidence(confidence)}",
    )
    if as_json:
        _print_json({"confidence": confidence, "questions": rows, "refuted": any(row["refuted"] for row in rows)})
    else:
        cells = [[row["question"], f"{row['lower']:.3f}", _format_claim(row["claim"]), row["verdict"]] for row in rows]
        typer.echo(format_table(["question", "at least", "claim", "verdict"], cells))
        typer.echo(_summarize(rows, confidence, samples))
    if any(row["refuted"] for row in rows):
        raise typer.Exit(REFUTED)


@app.command()
def mechanisms(
    names: Annotated[
        list[str] | None, typer.Argument(help="Specimens by name, or by a word of it such as laplace; all by default.")
    ] = None,
    samples: SamplesOption = 100_000,
    confidence: AuditConfidenceOption = 0.99,
    seed: SeedOption = 0,
    card: CardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit a zoo of mechanisms, sound ones and broken ones whose true epsilon is known.

    This audits the auditor: exit code 7 if any verdict is not the expected one.
    """
    from tacit.audit.statistical import audit
    from tacit.audit.zoo import ZOO, find_specimens

    _check_card(card)
    some = [each for name in names for each in find_specimens(name)] if names else list(ZOO)
    sure = _split_confidence(confidence, len(some))
    rows: list[dict[str, Any]] = []
    results: dict[str, AuditResult] = {}
    with show_progress() as tell:
        for number, each in enumerate(some):

            def report_share(share: float, number: int = number, name: str = each.name) -> None:
                tell((number + share) / len(some), name)

            report_share(0)
            found = audit(
                each.mechanism,
                each.one,
                each.other,
                each.claim,
                samples=samples,
                confidence=sure,
                seed=seed,
                progress=report_share,
            )
            expected = "not refuted" if each.sound or _is_beyond_sampling(each) else "refuted"
            rows.append(
                {
                    "name": each.name,
                    "says": each.says,
                    "why": each.why,
                    "sound": each.sound,
                    "true": each.true if math.isfinite(each.true) else "infinite",
                    "expected": expected,
                    "as_expected": found.verdict == expected,
                    **found.to_dict(),
                }
            )
            true = f"{each.true:.4g}" if math.isfinite(each.true) else "infinite"
            results[f"{each.name}: {'sound' if each.sound else f'broken, {each.claim.name} is {true}'}"] = found
    wrong = [row["name"] for row in rows if not row["as_expected"]]
    told = f"Not as expected: {', '.join(wrong)}." if wrong else "Every verdict is as expected."
    note = f"This audits the auditor: broken mechanisms are there to be refuted. {told} {_say_confidence(confidence)}"
    _save_card(card, "The zoo of mechanisms", results, seed, note)
    if as_json:
        _print_json({"confidence": confidence, "mechanisms": rows, "as_expected": all(r["as_expected"] for r in rows)})
    else:
        heads = ["mechanism", "true", "claim", "at least", "verdict", "expected"]
        cells = [
            [
                row["name"],
                row["true"] if isinstance(row["true"], str) else f"{row['true']:.4g}",
                _format_claim(row["claim"]),
                f"{row['lower']:.3f}",
                row["verdict"],
                "as expected" if row["as_expected"] else f"WRONG: {row['expected']}",
            ]
            for row in rows
        ]
        typer.echo(format_table(heads, cells))
        told_all = f"not as expected: {', '.join(wrong)}" if wrong else "every verdict is as expected"
        typer.echo(f"\n{len(rows)} mechanisms, {samples:,} samples a side: {told_all}.")
    if not all(row["as_expected"] for row in rows):
        raise typer.Exit(REFUTED)


@app.command("callable")
def any_callable(
    place: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="A function of the data, in this folder.")],
    claim: Annotated[str, typer.Option("--claim", help="What it promises: epsilon=1, or rho=0.5, or mu=1.")],
    one: Annotated[str | None, typer.Option("--one", help="A database, as JSON.", metavar="JSON")] = None,
    other: Annotated[str | None, typer.Option("--other", help="A neighbor of it, as JSON.", metavar="JSON")] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Search for neighbors instead: count, sum, mean, median or top-k.")
    ] = None,
    lower: Annotated[float, typer.Option("--lower", help="The least value of a row.")] = 0.0,
    upper: Annotated[float, typer.Option("--upper", help="The largest.")] = 1.0,
    rows: Annotated[int, typer.Option("--rows", help="How many rows.", min=1)] = 10,
    neighbors: Annotated[str, typer.Option("--neighbors", help="add-remove or replace.")] = "add-remove",
    samples: SamplesOption = 100_000,
    confidence: AuditConfidenceOption = 0.99,
    seed: SeedOption = 0,
    card: CardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit any Python function of the data, of any library: one database and a neighbor of it, or a shape.

    The function takes the data and returns an output. With a parameter `size` it returns that many at once, which is
    quicker; with a parameter `rng` it is given a numpy generator.
    """
    from tacit.audit.claim import Claim
    from tacit.audit.search import audit_worst_pair
    from tacit.audit.statistical import audit
    from tacit.privacy.unit import Neighbors

    promised = Claim.parse(claim)
    if (one is None) != (other is None) or (one is None) == (shape is None):
        fix = "--one '[1, 0]' --other '[1]', or --shape count"
        raise ParameterError("one", "name two databases by --one and --other, or a --shape to search", fix=fix)
    _check_card(card)
    mechanism = _import_callable(place)
    with show_progress() as tell:

        def report_share(share: float) -> None:
            tell(share, place)

        found: AuditResult
        if one is not None and other is not None:
            sides = _parse_json("one", one), _parse_json("other", other)
            found = audit(
                mechanism, *sides, promised, samples=samples, confidence=confidence, seed=seed, progress=report_share
            )
        else:
            if neighbors not in set(Neighbors):
                raise ParameterError(
                    "neighbors", f"{neighbors!r} is not a neighbor relation", fix="add-remove, or replace"
                )
            found = audit_worst_pair(
                mechanism,
                str(shape),
                promised,
                neighbors=Neighbors(neighbors),
                lower=lower,
                upper=upper,
                rows=rows,
                samples=samples,
                confidence=confidence,
                seed=seed,
                progress=report_share,
            )
    _save_card(card, place, {found.pair or "the two databases": found}, seed)
    if as_json:
        _print_json({"callable": place, **found.to_dict()})
    else:
        typer.echo(f"{place}\n{found}")
    if found.is_refuted:
        raise typer.Exit(REFUTED)


@app.command("command")
def any_command(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM ARGUMENTS", help="After --; {} is the database.")],
    claim: ClaimOption,
    one: OneOption,
    other: OtherOption,
    samples: ProgramSamplesOption = 500,
    confidence: AuditConfidenceOption = 0.99,
    seed: SeedOption = 0,
    timeout: TimeoutOption = 60.0,
    uses_time: TimeOption = True,
    card: CardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit a program: what it prints, its exit status, whether it writes errors, and its time.

    The database takes the place of {} in the arguments, as JSON; where there is none, the program reads it from
    standard input. No shell reads the command.
    """
    from tacit.audit.programs import audit_command

    _report_program(
        "command",
        " ".join(command),
        Path(command[0]).name,  # an argument may be a password, and a card is published
        lambda progress: audit_command(
            command,
            _parse_json("one", one),
            _parse_json("other", other),
            _parse_claim(claim),
            samples=samples,
            confidence=confidence,
            seed=seed,
            uses_time=uses_time,
            timeout=timeout,
            progress=progress,
        ),
        "output[0] is the time, output[1] the exit status, output[2] whether it writes errors, "
        "output[3] a fingerprint of what it prints, output[4] a hash of the errors, the rest what it prints",
        as_json,
        card,
        seed,
    )


@app.command("url")
def any_url(
    url: Annotated[str, typer.Argument(help="An http or https address; {} in it is the database, else it is posted.")],
    claim: ClaimOption,
    one: OneOption,
    other: OtherOption,
    samples: ProgramSamplesOption = 500,
    confidence: AuditConfidenceOption = 0.99,
    seed: SeedOption = 0,
    timeout: TimeoutOption = 60.0,
    uses_time: TimeOption = True,
    card: CardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Audit an address: the body of its response, its status and its time.

    The database takes the place of {} in the address, quoted; where there is none, it is posted as JSON.
    """
    from tacit.audit.programs import audit_url

    _report_program(
        "url",
        url,
        _strip_secrets(url),
        lambda progress: audit_url(
            url,
            _parse_json("one", one),
            _parse_json("other", other),
            _parse_claim(claim),
            samples=samples,
            confidence=confidence,
            seed=seed,
            uses_time=uses_time,
            timeout=timeout,
            progress=progress,
        ),
        "output[0] is the time, output[1] the status, output[2] whether it is an error, "
        "output[3] a fingerprint of the body, the rest the body",
        as_json,
        card,
        seed,
    )


def _report_program(
    kind: str,
    name: str,
    title: str,
    run: Callable[[Callable[[float], None]], AuditResult],
    places: str,
    as_json: bool,
    card: str | None,
    seed: int,
) -> None:
    """Run an audit of a program or an address, print what was found, and exit with 7 where the claim is refuted."""
    _check_card(card)
    with show_progress() as tell:
        found = run(lambda share: tell(share, name))
    _save_card(card, title, {found.pair or "the two databases": found}, seed)
    if as_json:
        _print_json({kind: name, **found.to_dict(), "places": places})
    else:
        typer.echo(f"{name}\n{found}\n({places})")
    if found.is_refuted:
        raise typer.Exit(REFUTED)


def _strip_secrets(url: str) -> str:
    """An address as it may be published: without a user, a password and what stands behind the path."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address"  # which the audit refuses with an error of its own
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _check_card(path: str | None) -> None:
    """Nothing is audited for a card that could not be saved."""
    if path is None:
        return
    target = Path(path)
    if target.suffix not in {".html", ".json"}:
        raise ParameterError("card", f"{target.suffix!r:.20} is not a format of cards", fix="--card card.html")
    if not target.absolute().parent.is_dir():
        raise ParameterError("card", f"there is no folder {target.parent}", fix="make it first")


def _save_card(path: str | None, title: str, results: dict[str, AuditResult], seed: int, note: str = "") -> None:
    """Write a card of audits, where a file is named."""
    if path is not None:
        from tacit.audit.card import make_audit_card

        make_audit_card(title, results, seed=seed, note=note).save(path)


def _say_confidence(confidence: float) -> str:
    return f"The confidence of each audit is such that all of them together have {100 * confidence:g} %."


def _parse_claim(text: str) -> Claim:
    from tacit.audit.claim import Claim

    return Claim.parse(text)


def _split_confidence(confidence: float, count: int) -> float:
    """The confidence of each of so many audits, such that all of them together have this one."""
    if not 0 < confidence < 1:
        what = f"must be between 0 and 1, both excluded, got {confidence}"
        raise ParameterError("confidence", what, fix="--confidence 0.99")
    return 1 - (1 - confidence) / max(1, count)


def _is_beyond_sampling(specimen: Any) -> bool:
    """Whether a broken specimen is too fine for samples: an exact audit tells, and samples cannot."""
    return getattr(specimen, "evidence", "samples") == "exact"


def _format_claim(claim: dict[str, Any]) -> str:
    delta = f", delta {claim['delta']:g}" if claim["delta"] else ""
    return f"{claim['name']} {claim['value']:g}{delta}"


def _summarize(rows: list[dict[str, Any]], confidence: float, samples: int) -> str:
    refuted = [row["question"] for row in rows if row["refuted"]]
    sure = f"{samples:,} samples a side, confidence {100 * confidence:g} % for all questions together"
    if refuted:
        return f"\n{len(refuted)} of {len(rows)} claims are refuted ({sure})."
    nothing = "No claim is refuted, which proves none: another pair of neighbors or more samples may tell more."
    return f"\n{len(rows)} questions, {sure}. {nothing}"


def _import_callable(place: str) -> Callable[..., Any]:
    """The function that MODULE:FUNCTION names, found from the current folder first."""
    from importlib import import_module

    module, colon, name = place.partition(":")
    if not colon or not module or not name:
        raise ParameterError("callable", f"{place!r} is no MODULE:FUNCTION", fix=_FIX)
    sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name is not None and not module.startswith(problem.name):
            what = f"{module} needs {problem.name}, which is not installed"
            raise ParameterError("callable", what, fix=f"pip install {problem.name}") from problem
        raise ParameterError("callable", f"there is no module {module}", fix=_FIX) from problem
    except Exception as problem:
        what = f"{module} cannot be imported: {type(problem).__name__}: {problem!s:.200}"
        raise ParameterError("callable", what, fix="mend it, and try: python -c 'import ...'") from problem
    finally:
        sys.path.remove("")
    for part in name.split("."):
        if not hasattr(found, part):
            raise ParameterError("callable", f"{module} has no {name}", fix=_FIX)
        found = getattr(found, part)
    if not callable(found):
        raise ParameterError("callable", f"{place} is a {type(found).__name__}, not a function", fix=_FIX)
    function: Callable[..., Any] = found
    return function


def _parse_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ParameterError(name, f"{text!r:.60} is no JSON", fix=f"--{name} '[1, 0, 1]'") from problem


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
