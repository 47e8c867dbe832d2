"""The learn page: the game of guessing who took part, and an attack that reads secrets out of counts."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from tacit.accounting.interpretation import min_guessing_error
from tacit.errors import ParameterError
from tacit.serve.console import charts
from tacit.serve.console.charts import ChartLine, ChartMark, PercentScale
from tacit.serve.console.distinguishing_game import COUNT_WITH, COUNT_WITHOUT, EPSILONS, DistinguishingGame
from tacit.serve.console.requests import PageRequest

PEOPLE = 100
QUESTIONS = ("50", "100", "200", "400", "600")
_ROUNDED = 5  # the multiples to which the second release is rounded
_SEED = 1998


@dataclass(frozen=True)
class AttackPanel:
    """One release and what the attack made of it."""

    title: str
    about: str
    share: int
    people: Markup
    blatant: bool


async def show_learn_page(visit: PageRequest) -> Response:
    """Both, to play with."""
    return visit.page("learn.html", **_game(visit), **_attack())


async def play_game(visit: PageRequest) -> Response:
    """A guess, a thousand guesses of the best guesser, or a new game."""
    move, played = visit.form.get("move", ""), visit.session.game
    if played is None or move == "new":
        visit.session.game = DistinguishingGame(visit.form.get("epsilon", "1"))
    elif move in {"with", "without"}:
        played.guess(move == "with")
    elif move == "best":
        await visit.console.service.look(visit.user, played.play)
    if visit.part:
        return visit.page("game.html", **_game(visit))
    return visit.page("learn.html", **_game(visit), **_attack())


async def show_attack(visit: PageRequest) -> Response:
    """The same secrets, asked about so often, from three releases."""
    questions = visit.form.get("questions", "")
    if questions not in QUESTIONS:
        raise ParameterError("questions", "is none of those offered", fix="choose one from the list")
    visit.session.attacks += 1
    run = visit.session.attacks
    visit.console.service.admit(visit.user)
    async with visit.console.playing.place(visit.user):  # in no thread that others look up budgets and the ledger in
        found = await asyncio.to_thread(run_attacks, int(questions), run)
    if visit.part:
        return visit.page("attack.html", **_attack(questions, found))
    return visit.page("learn.html", **_game(visit), **_attack(questions, found))


def run_attacks(questions: int, seed: int) -> list[AttackPanel]:
    """A made-up secret of a hundred people, and counts over random subsets of them: true, rounded, and private."""
    import numpy as np

    from tacit.attacks.counting_oracles import ExactOracle, LaplaceNoiseOracle, RoundingOracle
    from tacit.attacks.linear import reconstruct
    from tacit.attacks.oracle import Oracle

    rng = np.random.default_rng([_SEED, seed])
    secret = rng.random(PEOPLE) < 0.5
    noisy = LaplaceNoiseOracle(secret, float(questions), rng)  # epsilon 1 in all: 1/questions for each
    releases: list[tuple[str, str, Oracle]] = [
        ("True counts", "Nothing is added.", ExactOracle(secret)),
        (f"Rounded to {_ROUNDED}s", "It looks harmless.", RoundingOracle(secret, to=_ROUNDED)),
        ("Private: epsilon 1 in all", f"At most {max_guessed_share(1.0):.0%} can be right, on average.", noisy),
    ]
    found = []
    for title, about, oracle in releases:
        got = reconstruct(oracle, PEOPLE, questions, seed=seed, truth=secret)
        right = (got.guess == secret).tolist()
        found.append(AttackPanel(title, about, sum(right), charts.draw_guessed_secrets(right), got.blatant))
    return found


def max_guessed_share(epsilon: float) -> float:
    """The largest share of fair bits that anyone guesses right, where changing a bit is one neighbor step."""
    return 1 - min_guessing_error(epsilon)


def _game(visit: PageRequest) -> dict[str, Any]:
    played = visit.session.game
    if played is None:
        played = visit.session.game = DistinguishingGame()
    marks = []
    here = float(played.epsilon)
    for tally, kind, aside in ((played.yours, "first", -0.06), (played.best, "second", 0.06)):
        if tally.rounds:
            marks.append(ChartMark(here + aside, tally.error, *tally.interval, kind))
    points = [(step / 20, min_guessing_error(step / 20)) for step in range(0, 121)]
    curve = charts.draw_plot(
        PercentScale(0, 6, left=9, right=98),
        PercentScale(0, 0.6, count=3),
        [ChartLine(points, "bound"), ChartLine([(here, 0.0), (here, played.least)], "guide")],
        marks,
        title="The least error of anyone who guesses falls as epsilon grows",
        across="Share of wrong guesses, by epsilon. Nobody is below the curve in the long run.",
        percent=True,
        height=260,
    )
    return {
        "game": played,
        "epsilons": EPSILONS,
        "curve": curve,
        "sides": (COUNT_WITHOUT, COUNT_WITH),
        "odds": f"{math.exp(float(played.epsilon)):.3g}",
    }


def _attack(questions: str = "400", found: list[AttackPanel] | None = None) -> dict[str, Any]:
    return {"attacks": found, "questions": questions, "offered": QUESTIONS, "people": PEOPLE}
