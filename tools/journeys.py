"""The first private answer, for four kinds of people: python tools/journeys.py [owner|python|console|teacher] [CSV]

Runs what each of them would type, for real: in folders of their own, over tables that are made up here and are not
those of the tests, or over the files that are named. Of each journey it prints the commands with their output, and how
many steps it takes, how many values a human has to give (decisions), and how many steps fail. Ends with 1 where one
fails.
"""

from __future__ import annotations

import csv
import datetime
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_SHOWN = 12  # lines of an output
_CHROMIUM, _FLAGS = "/usr/bin/chromium", ["--headless", "--no-sandbox", "--disable-gpu"]


@dataclass
class Journey:
    """What one person did: `decisions` are the values that they had to give."""

    name: str
    folder: Path
    decisions: list[str] = field(default_factory=list)
    steps: int = 0
    failed: int = 0

    def decide(self, what: str, value: str) -> str:
        """Note a value that a human gives, and return it."""
        self.decisions.append(f"{what} = {value}")
        return value

    def run(self, *command: str, answers: str = "") -> str:
        """Run a command of theirs, print it with its output, and return that."""
        shown = shlex.join(command)
        print(f"$ {shown if len(shown) < 200 else shown[:197] + '...'}")
        program = [sys.executable, *command[1:]] if command[0] == "python" else [sys.executable, "-m", *command]
        done = subprocess.run(
            program, cwd=self.folder, input=answers, capture_output=True, text=True, timeout=300, check=False
        )
        self.note(done.returncode == 0, done.stdout + done.stderr)
        return done.stdout

    def note(self, is_right: bool, output: str) -> None:
        """Count a step, with what it printed."""
        self.steps += 1
        self.failed += not is_right
        lines = output.rstrip().splitlines()
        for line in lines[:_SHOWN]:
            print(f"  {line[:160]}")
        if len(lines) > _SHOWN:
            print(f"  ... {len(lines) - _SHOWN} more lines")
        if not is_right:
            print("  FAILED")

    def summarize(self) -> str:
        """The journey in a line."""
        decisions = f"{len(self.decisions)} decisions ({'; '.join(self.decisions)})"
        return f"{self.name}: {self.steps} steps, {decisions}, {self.failed} failing checks"


# What owners bring


def _write(path: Path, header: Sequence[str], rows: Iterator[list[object]], delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(header)
        out.writerows(rows)


def write_decimal_commas(path: Path) -> None:
    """Sales with semicolons and decimal commas, and names in German."""
    draw = random.Random(11)

    def rows() -> Iterator[list[object]]:
        for _ in range(6_000):
            amount = f"{draw.lognormvariate(3.5, 0.8):.2f}".replace(".", ",")
            day = f"2025-{draw.randrange(1, 13):02d}-{draw.randrange(1, 28):02d}"
            yield [draw.randrange(1_500), draw.choices(["ZH", "BE", "VD"], [5, 3, 2])[0], amount, day]

    _write(path, ["Kunde-ID", "Kanton", "Betrag (CHF)", "Datum"], rows(), ";")


def write_timestamps(path: Path) -> None:
    """Trips with the moment they began, and riders whose keys are texts."""
    draw = random.Random(12)
    begin = datetime.datetime(2025, 3, 1, tzinfo=datetime.UTC)

    def rows() -> Iterator[list[object]]:
        for number in range(8_000):
            moment = begin + datetime.timedelta(minutes=draw.randrange(40_000))
            started = moment.strftime("%Y-%m-%d %H:%M:%S")
            yield [number, f"R{draw.randrange(1_200):05d}", started, draw.randrange(1, 90), draw.choice("ABC")]

    _write(path, ["trip_id", "rider_id", "started_at", "minutes", "zone"], rows())


def write_orders(path: Path) -> None:
    """Orders of customers, with an address for mail in every row."""
    draw = random.Random(13)

    def rows() -> Iterator[list[object]]:
        for number in range(5_000):
            customer = draw.randrange(1_400)
            product = draw.choice(["tea", "coffee", "cake"])
            paid = draw.random() < 0.9
            yield [number, customer, f"c{customer}@example.org", product, round(draw.random() * 80, 2), paid]

    _write(path, ["order_id", "customer_id", "email", "product", "amount", "paid"], rows())


def write_messy_headers(path: Path) -> None:
    """Visits whose header has spaces, signs, letters beyond ASCII and a column without a name."""
    draw = random.Random(14)

    def rows() -> Iterator[list[object]]:
        for number in range(4_000):
            ward = draw.choice(["north", "south"])
            note = f"came at {draw.random():.6f} and left"
            yield [number, draw.randrange(1_100), round(draw.gauss(170, 10), 1), ward, note]

    _write(path, ["", " Patient No. ", "Größe (cm)", "Ward/Unit", "Notes: free"], rows())


def write_wide(path: Path) -> None:
    """Answers to a questionnaire of sixty questions, without a column that says whose they are."""
    draw = random.Random(15)

    def rows() -> Iterator[list[object]]:
        for _ in range(2_500):
            yield [draw.randrange(18, 90), draw.choice("FM"), *(draw.randrange(1, 6) for _ in range(60))]

    _write(path, ["age", "sex", *(f"q{number}" for number in range(1, 61))], rows())


FILES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "umsatz.csv": (write_decimal_commas, "Kunde-ID", "Kanton"),
    "trips.csv": (write_timestamps, "rider_id", "zone"),
    "orders.csv": (write_orders, "customer_id", "product"),
    "visits.csv": (write_messy_headers, " Patient No. ", "Ward/Unit"),
    "survey.csv": (write_wide, "row", "sex"),
}


# The journeys


def follow_owner(folder: Path, file: Path, person: str, column: str) -> Journey:
    """From a CSV file to the first answer: who is a person, how much may be learned, and who asks."""
    journey = Journey(f"owner with {file.name}", folder)
    print(f"\n== {journey.name}")
    unit, epsilon, analyst = (
        journey.decide("person", person),
        journey.decide("epsilon", "2"),
        journey.decide("analyst", "ada"),
    )
    journey.run("tacit", "init", file.name, "--unit", unit, "--epsilon", epsilon, "--analyst", analyst)
    journey.run("tacit", "check")
    named = f'"{column}", ' if column else ""
    sql = f'SELECT {named}COUNT(*) AS n FROM "{file.stem}"' + (f' GROUP BY "{column}"' if column else "")
    journey.run("tacit", "explain", "--as", analyst, "--epsilon", "0.5", sql)
    answered = journey.run("tacit", "ask", "--as", analyst, "--epsilon", "0.5", sql)
    rows = len(re.findall(r"\d to -?[\d,.]+\s*$", answered, re.MULTILINE))
    journey.note(rows > 0, f"rows with an interval: {rows}")
    return journey


def follow_guided_owner(folder: Path, file: Path) -> Journey:
    """The same by the questions of `--guided`, where Enter takes each proposal but the budget."""
    journey = Journey(f"owner, guided, with {file.name}", folder)
    print(f"\n== {journey.name}")
    epsilon = journey.decide("epsilon", "2")
    # person, columns that are left out, bounds of two numbers: Enter; then the budget, and Enter for ada
    journey.run("tacit", "init", file.name, "--guided", answers=f"\n\n\n{epsilon}\n\n")
    journey.run("tacit", "check")
    sql = "SELECT product, COUNT(*) AS n FROM orders GROUP BY product"
    journey.run("tacit", "ask", "--as", "ada", "--epsilon", "0.5", sql)
    return journey


def follow_owner_on_page(folder: Path, file: Path) -> Journey:
    """The same on the page of `--browser`: who is a person, how much may be learned, and which keys are public."""
    from playwright.sync_api import sync_playwright

    journey = Journey(f"owner, in a browser, with {file.name}", folder)
    print(f"\n== {journey.name}\n$ tacit init {file.name} --browser")
    command = [sys.executable, "-u", "-m", "tacit", "init", file.name, "--browser"]
    with (
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout is not None
        server.stdout.readline()
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        page = browser.new_page()
        page.goto(server.stdout.readline().strip())
        journey.note(True, page.locator("#preview").inner_text())
        page.get_by_role("radio", name=journey.decide("person", "customer_id")).check()
        page.get_by_label("Overall epsilon").fill(journey.decide("epsilon", "2"))
        for key in journey.decide("public keys of product", "tea, coffee, cake").split(", "):
            page.get_by_role("checkbox", name=re.compile(f"^{key} ")).check()
        page.get_by_role("checkbox", name="Everything in it may be public").check()
        page.get_by_role("button", name="Write tacit.toml").click()
        page.get_by_role("heading", name="The policy is written").wait_for()
        pasted = page.locator("pre", has_text="tacit ask").inner_text()
        browser.close()
        journey.note(server.wait(60) == 0, server.stdout.read())
    journey.run("tacit", "check")
    journey.run(*shlex.split(pasted))
    return journey


_PYTHON = """
import tacit
ben = tacit.open("clinic/clinic.toml").analyst("ben")
print(ben.explain({sql!r}, epsilon={epsilon}).columns[0])
answer = ben.ask({sql!r}, epsilon={epsilon})
print(answer)
assert answer.interval("n")[0][0] < answer.value < answer.interval("n")[0][1]
print(ben.budget.remaining)
"""


def follow_analyst_in_python(folder: Path) -> Journey:
    """From nothing to an answer in Python, with the bundled clinic."""
    journey = Journey("analyst in Python", folder)
    print(f"\n== {journey.name}")
    journey.run("tacit", "demo", "--keep", "clinic")
    sql = journey.decide("question", "SELECT COUNT(*) AS n FROM visits WHERE age >= 65")
    journey.run("python", "-c", _PYTHON.format(sql=sql, epsilon=journey.decide("epsilon", "0.2")))
    return journey


@contextmanager
def _serve_demo(folder: Path) -> Iterator[dict[str, str]]:
    """The demo, served: its address, and the password of ada."""
    command = [sys.executable, "-u", "-m", "tacit", "demo", "--serve", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
        found: dict[str, str] = {}
        try:
            assert server.stdout is not None
            for line in server.stdout:
                print(f"  {line.rstrip()}")
                if place := re.search(r"http://\S+", line):
                    found["http"] = place[0]
                if password := re.search(r"name ada\s+password (\S+)", line):
                    found["password"] = password[1]
                if "Stop with" in line:
                    break
            yield found
        finally:
            server.terminate()


def follow_analyst_in_console(folder: Path) -> Journey:
    """From an address and a password to an answer in a browser."""
    from playwright.sync_api import sync_playwright

    journey = Journey("analyst in the console", folder)
    print(f"\n== {journey.name}\n$ tacit demo --serve")
    with _serve_demo(folder) as served, sync_playwright() as playwright:
        journey.note("http" in served and "password" in served, "")
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        page = browser.new_page(base_url=served["http"])
        page.goto("/")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(served["password"])
        page.get_by_role("button", name="Sign in").click()
        page.locator(".cm-content").wait_for()
        journey.note(True, "signed in, by the name and the password that were printed")
        page.locator(".cm-content").fill(
            journey.decide("question", "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward")
        )
        page.locator("#epsilon").fill(journey.decide("epsilon", "0.2"))
        page.locator("#price", has_text="Costs epsilon 0.2").wait_for()
        journey.note(True, page.locator("#price .facts").inner_text())
        page.get_by_role("button", name="Ask", exact=True).click()
        page.locator(".answer").wait_for()
        rows = page.locator(".answer tbody tr").count()
        journey.note(rows == 6, f"{rows} wards, each with its interval")
        browser.close()
    return journey


def follow_teacher(folder: Path) -> Journey:
    """An attack that works, the noise that stops it, and a first private answer to show."""
    journey = Journey("teacher", folder)
    print(f"\n== {journey.name}")
    journey.run("tacit", "attack")
    journey.run("tacit", "demo", "--keep", "clinic")
    sql = journey.decide("question", "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward")
    epsilon = journey.decide("epsilon", "0.2")
    journey.run("tacit", "ask", "-p", "clinic/clinic.toml", "--as", "ben", "--epsilon", epsilon, sql)
    return journey


def main(arguments: Sequence[str]) -> int:
    """Follow the journeys that are named, or all of them."""
    files = [Path(each).resolve() for each in arguments if each.endswith(".csv")]
    kinds = [each for each in arguments if not each.endswith(".csv")] or ["owner", "python", "console", "teacher"]
    with tempfile.TemporaryDirectory() as top:
        count = 0

        def make_folder() -> Path:
            nonlocal count
            count += 1
            made = Path(top) / str(count)
            made.mkdir()
            return made

        journeys = []
        if "owner" in kinds:
            for given in files:
                folder = make_folder()
                (folder / given.name).write_bytes(given.read_bytes())
                journeys.append(follow_owner(folder, folder / given.name, "row", ""))
            for name, (write, person, column) in FILES.items() if not files else ():
                folder = make_folder()
                write(folder / name)
                journeys.append(follow_owner(folder, folder / name, person, column))
            if not files:
                folder = make_folder()
                write_orders(folder / "orders.csv")
                journeys.append(follow_guided_owner(folder, folder / "orders.csv"))
                folder = make_folder()
                write_orders(folder / "orders.csv")
                journeys.append(follow_owner_on_page(folder, folder / "orders.csv"))
        if "python" in kinds:
            journeys.append(follow_analyst_in_python(make_folder()))
        if "console" in kinds:
            journeys.append(follow_analyst_in_console(make_folder()))
        if "teacher" in kinds:
            journeys.append(follow_teacher(make_folder()))
    print("\n== Summary")
    for journey in journeys:
        print(journey.summarize())
    return min(1, sum(journey.failed for journey in journeys))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
