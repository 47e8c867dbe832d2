"""`tacit ledger`: what the owner sees of a ledger that is in order, and of each that is not."""

from __future__ import annotations

import json
import os
import pty
import shutil
from fractions import Fraction
from pathlib import Path

import apsw
import pytest

from tacit.ledger.budget import BudgetLimits
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import SigningKey
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise, encode

pytestmark = pytest.mark.slow

COUNT, SUM = "SELECT COUNT(*) AS n FROM t", "SELECT SUM(x) AS s FROM t"


@pytest.fixture
def owner(tacit, folder, asked):
    """The command in the folder of t.toml. Ada has asked COUNT and SUM at 0.25 each: five entries."""
    shutil.copytree(asked, folder, dirs_exist_ok=True)

    def run(*arguments, **more):
        return tacit(*arguments, "-p", "t.toml", cwd=folder, **more)

    return run


def ask(owner, sql="SELECT COUNT(*) FROM t WHERE x > 1", who="ada"):
    return owner("ask", "--as", who, sql, "--epsilon", "0.25")


def by_hand(folder, *statements):
    """Write to the ledger as an editor would who knows its locks, and puts them back afterwards."""
    with apsw.Connection(str(folder / "t.ledger")) as connection:
        locks = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
        for name, _ in locks:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in locks:
            connection.execute(sql)


# In order


def test_the_owner_verifies_the_ledger_and_reads_it(owner):
    owner("ask", "--as", "ada", COUNT, "--epsilon", "0.25")
    verified = owner("ledger", "verify")
    assert (verified.returncode, verified.stderr) == (0, "")  # no bar where there is no terminal
    assert "5 entries, all in order, head " in verified.stdout
    report = json.loads(owner("ledger", "verify", "--json").stdout)
    assert (report["ok"], report["entries"], report["problems"]) == (True, 5, [])
    shown = json.loads(owner("ledger", "history", "--json").stdout)
    assert [(row["entry"], row["kind"], row["who"], row["epsilon"]) for row in shown] == [
        (1, "open", "", "0"),
        (2, "reserve", "ada", "0.25"),
        (3, "commit", "ada", "0"),
        (4, "reserve", "ada", "0.25"),
        (5, "commit", "ada", "0"),  # the repeat was free, and is not written down
    ]
    assert shown[1]["question"] == shown[2]["question"] != shown[3]["question"]
    head, *lines = owner("ledger", "history", "--last", "2").stdout.splitlines()
    assert head.split() == ["entry", "time", "(UTC)", "kind", "who", "epsilon", "question", "request"]
    assert [line.split()[2] for line in lines] == ["reserve", "commit"]
    assert lines[1].index("commit") == head.index("kind")


def test_a_bar_is_drawn_on_a_terminal_and_leaves_the_output_alone(owner):
    terminal, end = pty.openpty()
    with open(end, "w") as stderr:
        shown = owner("ledger", "verify", stderr=stderr, TERM="xterm", COLUMNS="100")
    drawn = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert shown.stdout == owner("ledger", "verify").stdout
    assert "entries" in drawn and "0/5" in drawn


def test_the_bar_hears_of_every_five_hundredth_entry(tmp_path):
    one = (Fraction(1), Fraction(0))
    heard: list[int] = []
    with Ledger(tmp_path / "ledger", BudgetLimits.of(*one, {"ada": one})) as ledger:
        ledger.commit(ledger.reserve("ada", LaplaceNoise(Fraction(4), 1), "5eed"), b"41")
        with ledger._writing() as book:
            for _ in range(998):  # an opening, a charge, its answer, and these, which cost nothing
                book.append(EntryKind.REPEAT, analyst="ada", key="5eed", loss=encode(LaplaceNoise(Fraction(4), 1)))
        assert verify(ledger, progress=heard.append).entries == 1001
    assert heard == [500, 1000]


def test_reading_never_changes_the_ledger(owner, folder):
    before = (folder / "t.ledger").read_bytes()
    for command in ("verify", "history", "export", "price"):
        assert owner("ledger", command).returncode == 0
    assert (folder / "t.ledger").read_bytes() == before


def test_what_is_exported_says_nothing_of_the_questions(owner, folder):
    entry = json.loads(owner("ledger", "export").stdout)
    assert (entry["epsilon"], entry["delta"], entry["spent"]["epsilon"]) == ("2", 1e-6, "0.5")
    assert (entry["relation"], entry["unit"], entry["mechanisms"]) == ("add-remove", {"t": "row"}, ["discrete Laplace"])
    assert (entry["analysts"], entry["answers"], entry["repeats"], entry["entries"]) == (2, 2, 0, 5)
    assert entry["public_key"] == SigningKey.at(folder / "t.key", create=False).public
    assert entry["head"] == json.loads(owner("ledger", "verify", "--json").stdout)["head"]


def test_what_is_exported_is_promised_where_more_is_spent_than_the_cap(owner, folder):
    policy = (folder / "t.toml").read_text()
    lowered = policy.replace("epsilon = 2", "epsilon = 0.4").replace("epsilon = 1", "epsilon = 0.4")
    (folder / "t.toml").write_text(lowered)
    entry = json.loads(owner("ledger", "export").stdout)
    assert (entry["epsilon"], entry["spent"]["epsilon"]) == ("0.5", "0.5")


@pytest.mark.parametrize("by", ["basic", "advanced", "optimal", "zcdp", "renyi", "pld"])
def test_the_price_of_the_history_by_each_accountant_is_labelled_as_if(owner, by):
    shown = owner("ledger", "price", "--by", by, "--delta", "1e-9")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("as if the 2 charged questions had been fixed beforehand: epsilon ")
    assert f"at delta 1e-09 by {by}\n" in shown.stdout
    assert "what decides are the filters" in shown.stdout
    assert shown.stdout.endswith("epsilon 0.5 of 2\n")


def test_the_price_of_two_questions_by_hand(owner):
    plain = json.loads(owner("ledger", "price", "--by", "basic", "--json").stdout)
    # 0.25 and 0.25, at the delta of the policy
    assert plain == {
        "as_if": "the questions had been fixed beforehand",
        "charges": 2,
        "epsilon": 0.5,
        "delta": 1e-6,
        "by": "basic",
        "by_the_filters": {"spent": "0.5", "cap": "2"},
    }
    assert owner("ledger", "price", "--by", "guess").returncode == 2
    assert owner("ledger", "price", "--delta", "-1").returncode == 2


# Receipts


def test_a_receipt_of_this_ledger(owner):
    shown = owner("ledger", "verify", "--receipt", "answer.json")
    assert shown.returncode == 0
    assert shown.stdout.endswith("The receipt is this ledger's, and the ledger still holds what it says.\n")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("signature", "00" * 64, "the receipt is not signed by this ledger"),
        ("signature", "", "the receipt is not signed by this ledger"),
        ("head", "00" * 32, "the receipt is not signed by this ledger"),
        ("charged_epsilon", "0.125", "its charged_epsilon is not what the ledger says"),
        ("who", "ben", "its who is not what the ledger says"),
        ("key", "00" * 32, "its key is not what the ledger says"),
        ("time", "2030-01-01T00:00:00+00:00", "its time is not what the ledger says"),
        ("repeat", True, "its repeat is not what the ledger says"),
        ("entry", 4, "its entry is not what the ledger says"),
        ("entry", 99, "its entry is not what the ledger says"),
    ],
)
def test_an_altered_receipt(owner, folder, field, value, said):
    answer = json.loads((folder / "answer.json").read_text())
    assert answer["receipt"][field] != value
    answer["receipt"][field] = value
    (folder / "answer.json").write_text(json.dumps(answer))
    shown = owner("ledger", "verify", "--receipt", "answer.json")
    assert shown.returncode == 6
    assert shown.stdout.splitlines()[1:] == [f"· {said}"]


def test_a_receipt_proves_that_an_older_copy_lost_its_entry(owner, folder):
    shutil.copy(folder / "t.ledger", folder / "older")
    (folder / "answer.json").write_text(owner("ask", "--as", "ben", COUNT, "--epsilon", "0.5", "--json").stdout)
    shutil.copy(folder / "older", folder / "t.ledger")
    found = json.loads(owner("ledger", "verify", "--receipt", "answer.json", "--json").stdout)["problems"]
    assert found == [
        "the witness saw 2 entries that are not there, up to entry 7",
        "the receipt is signed by this ledger, which no longer holds what it says",
    ]


@pytest.mark.parametrize("text", ["{", "[1]", "7", "\udcff"])
def test_what_is_no_receipt(owner, folder, text):
    (folder / "answer.json").write_text(text, errors="surrogateescape")
    shown = owner("ledger", "verify", "--receipt", "answer.json")
    assert (shown.returncode, "tacit ask --json" in shown.stderr) == (2, True)
    assert owner("ledger", "verify", "--receipt", "none.json").returncode == 2


# Not in order: what was done to the ledger, the code of the refusal, words of its text, and what verify says.

NOBODY = "does not exist"
DAMAGE = {
    "deleted": (lambda f: (f / "t.ledger").unlink(), "ledger-missing", "its witness has seen entries", NOBODY),
    "emptied": (lambda f: (f / "t.ledger").write_bytes(b""), "ledger-missing", "is empty", "is empty"),
    "another file": (
        lambda f: shutil.copy(f / "t.parquet", f / "t.ledger"),
        "ledger",
        "is not a ledger",
        "is not a ledger",
    ),
    "a newer version": (
        lambda f: by_hand(f, "PRAGMA user_version = 99"),
        "ledger",
        "has version 99",
        "has version 99",
    ),
    "cut in half": (
        lambda f: os.truncate(f / "t.ledger", (f / "t.ledger").stat().st_size // 2),
        "ledger-tampered",
        "is damaged",
        "is damaged",
    ),
    "an edited charge": (
        lambda f: by_hand(f, "UPDATE entries SET charge_epsilon = 1 WHERE sequence = 2"),
        "ledger-tampered",
        "entry 2 was altered",
        "entry 2: it was altered",
    ),
    "an edited total": (
        lambda f: by_hand(f, "UPDATE totals SET epsilon = 1 WHERE who = 'ada'"),
        "ledger-tampered",
        "a total is not what the entries say",
        "the total of 'ada' is not the sum of its charges",
    ),
    "a raised cap": (
        lambda f: by_hand(f, "UPDATE totals SET cap_epsilon = 9000000000000"),
        None,  # the policy's own cap binds all the same, and the answer is within it
        "",
        "has a cap that was never recorded",
    ),
    "an edited answer": (
        lambda f: by_hand(f, "UPDATE answers SET answer = x'00'"),
        None,  # found where it is used: see below
        "",
        "the answer of entry 3 was altered",
    ),
    "a lock removed": (
        lambda f: apsw.Connection(str(f / "t.ledger")).execute("DROP TRIGGER entries_stay"),
        "ledger-tampered",
        "the tables or their locks were altered",
        "the tables or their locks were altered",
    ),
    "a row removed": (
        lambda f: by_hand(f, "DELETE FROM answers", "DELETE FROM entries WHERE sequence = 3"),
        "ledger-order",
        "entry 4 does not follow",
        "so that one is missing",
    ),
    "rows reordered": (
        lambda f: by_hand(
            f,
            "DELETE FROM answers",
            "UPDATE entries SET sequence = 99 WHERE sequence = 2",
            "UPDATE entries SET sequence = 2 WHERE sequence = 3",
            "UPDATE entries SET sequence = 3 WHERE sequence = 99",
        ),
        "ledger-order",
        "entry 2 does not follow",
        "entry 2: it does not follow from the entry before it",
    ),
    "the end removed": (
        lambda f: by_hand(
            f,
            "DELETE FROM answers",
            "DELETE FROM entries WHERE sequence > 3",
            "UPDATE head SET sequence = 3, hash = (SELECT hash FROM entries WHERE sequence = 3)",
            "UPDATE totals SET epsilon = 250000000000, rho = (SELECT spent_rho FROM entries WHERE sequence = 3)",
        ),
        "ledger-older",
        "it ends at entry 3, and its witness has seen entry 5",
        "the witness saw 2 entries that are not there, up to entry 5",
    ),
    "the witness lost": (
        lambda f: (f / "t.witness").unlink(),
        "ledger-witness",
        "is missing",
        "t.witness is missing",
    ),
    "the witness overwritten": (
        lambda f: (f / "t.witness").write_text("nothing was ever seen"),
        "ledger-witness",
        "is not a witness",
        "is not a witness",
    ),
    "the key lost": (lambda f: (f / "t.key").unlink(), "ledger-key", "the ledger was signed with it", None),
    "another key": (
        lambda f: ((f / "t.key").unlink(), SigningKey.at(f / "t.key", create=True)),
        "ledger-key",
        "it was signed with another key",
        None,
    ),
    "another relation": (
        lambda f: (f / "t.toml").write_text((f / "t.toml").read_text().replace("[privacy]", PRIVACY)),
        "ledger-scope",
        "with neighbors 'add-remove', and now it is 'replace'",
        None,
    ),
    "no folder": (
        lambda f: (f / "t.toml").write_text('[ledger]\nstore = "none/t.ledger"\n' + (f / "t.toml").read_text()),
        "ledger-key",
        "cannot be made",
        "has no folder to lie in",
    ),
    "no server": (
        lambda f: (f / "t.toml").write_text(f'[ledger]\nstore = "{NOWHERE}"\n' + (f / "t.toml").read_text()),
        "ledger-unreachable",
        "the ledger tacit_t at 127.0.0.1/office cannot be reached",
        "the ledger tacit_t at 127.0.0.1/office cannot be reached",
    ),
}
PRIVACY = '[privacy]\nneighbors = "replace"'
NOWHERE = "postgresql://ada:s3cret@127.0.0.1:1/office?connect_timeout=2#t"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_ledger_that_is_not_in_order_answers_nothing_and_verify_says_why(owner, folder, damage):
    harm, code, said, found = DAMAGE[damage]
    harm(folder)
    verified = owner("ledger", "verify")
    assert verified.returncode == (6 if found else 0)
    assert (found or "all in order") in verified.stdout + verified.stderr
    shown = ask(owner, who="ben")
    if code is None:
        assert shown.returncode == 0, shown.stderr
        return
    assert (shown.returncode, shown.stdout) == (6, "")
    assert shown.stderr.startswith(f"ledger [{code}]: ")
    assert said in shown.stderr and "\n  fix: " in shown.stderr
    assert "s3cret" not in shown.stderr
    error = json.loads(owner("budget", "--as", "ada", "--json").stdout)["error"]
    assert (error["code"], said in error["what"]) == (code, True)


def test_an_edited_answer_is_refused_where_it_is_used(owner, folder):
    by_hand(folder, "UPDATE answers SET answer = x'00'")
    shown = owner("ask", "--as", "ada", COUNT, "--epsilon", "0.25")
    assert (shown.returncode, "a stored answer was altered" in shown.stderr) == (6, True)


def test_another_ledger_in_its_place_is_refused(owner, tacit, folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    for name in ("t.toml", "t.parquet"):
        shutil.copy(folder / name, other)
    for sql in (COUNT, SUM, COUNT):
        tacit("ask", "-p", other / "t.toml", "--as", "ada", sql, "--epsilon", "0.125")
    shutil.copy(other / "t.ledger", folder / "t.ledger")
    shown = ask(owner)
    assert (shown.returncode, "[ledger-older]" in shown.stderr) == (6, True)
    assert "its entry 5 is not the one that its witness saw" in shown.stderr
    assert "entry 1: the witness saw another in its place" in owner("ledger", "verify").stdout


# The way on


@pytest.fixture
def older(owner, folder):
    """The same after an older copy was put back: of 0.25, 0.25 and ben's 0.5, the last is missing."""
    shutil.copy(folder / "t.ledger", folder / "older")
    assert owner("ask", "--as", "ben", COUNT, "--epsilon", "0.5").returncode == 0
    shutil.copy(folder / "older", folder / "t.ledger")
    return owner


def test_the_owner_accepts_a_loss_and_all_that_may_be_missing_is_charged(older, folder):
    refused = ask(older)
    assert (refused.returncode, "tacit ledger accept-loss" in refused.stderr) == (6, True)
    shown = older("ledger", "accept-loss", "--because", "a backup was restored", "--yes")
    assert shown.returncode == 0, shown.stderr
    # the 0.5 may have been anybody's, so everybody is charged it, and so is the owner's account
    assert shown.stdout.splitlines() == [
        "charged to all together: epsilon 0.5",
        "charged to (owner): epsilon 0.5",
        "charged to ada: epsilon 0.5",
        "charged to ben: epsilon 0.5",
        f"the old witness is kept as {folder / 't.witness.1'}",
    ]
    assert "all in order" in older("ledger", "verify").stdout
    # 0.25 + 0.25 + 0.5 of 1
    said = older("budget", "--as", "ada").stdout
    assert said.startswith("ada has spent epsilon 1 of 1, with 0 left; all analysts together epsilon 1 of 2 and")
    assert ask(older).returncode == 3
    assert ask(older, who="ben").returncode == 0
    entry = json.loads(older("ledger", "export").stdout)
    assert (entry["accepted_losses"], entry["analysts"]) == (4, 2)


def test_another_host_s_witness_knows_what_is_missing(older, folder):
    seen = (folder / "t.witness").read_bytes()
    (folder / "second.witness").write_bytes(seen)
    (folder / "t.witness").write_bytes(seen[: -2 * 80])  # without the records of the charge and its answer
    accept = ("ledger", "accept-loss", "--because", "a failover", "--yes")
    whole = older(*accept)
    assert (whole.returncode, "nothing is missing from it" in whole.stderr) == (2, True)
    shown = older(*accept, "--witness", str(folder / "second.witness"))
    assert shown.returncode == 0, shown.stderr
    assert "charged to all together: epsilon 0.5" in shown.stdout
    assert "all in order" in older("ledger", "verify").stdout


def test_the_owner_is_asked_first(older, folder):
    before = (folder / "t.ledger").read_bytes(), (folder / "t.witness").read_bytes()
    shown = older("ledger", "accept-loss", "--because", "a backup was restored", stdin="n\n")
    assert shown.returncode == 1
    assert "to everyone and for good? [y/N]" in shown.stderr
    assert before == ((folder / "t.ledger").read_bytes(), (folder / "t.witness").read_bytes())
    accepted = older("ledger", "accept-loss", "--because", "a backup was restored", "--json", stdin="y\n")
    assert json.loads(accepted.stdout) == {
        "charged_epsilon": {"all": "0.5", "(owner)": "0.5", "ada": "0.5", "ben": "0.5"},
        "failed": 0,
        "old_witness": str(folder / "t.witness.1"),
    }


def test_a_loss_needs_a_reason_and_a_loss(owner):
    assert owner("ledger", "accept-loss", "--yes").returncode == 2
    blank = owner("ledger", "accept-loss", "--because", " ", "--yes")
    assert (blank.returncode, "because: no reason is given" in blank.stderr) == (2, True)
    whole = owner("ledger", "accept-loss", "--because", "to be sure", "--yes")
    assert (whole.returncode, "nothing is missing from it" in whole.stderr) == (2, True)


@pytest.mark.parametrize(
    ("lost", "ada", "ben"),
    [
        (["t.ledger"], "0.5", "0.5"),  # the witness saw 0.25 and 0.25, and not whose they were
        (["t.witness"], "1", "1"),  # nothing is known, so every cap is spent
        (["t.ledger", "t.witness", "t.key"], "0", "0"),  # a new ledger: nothing says that there was another
        (["t.key"], "0.5", "0"),  # nothing is missing, and a new key signs from here on
    ],
)
def test_what_is_charged_for_what_is_lost(owner, folder, lost: list[str], ada, ben):
    for name in lost:
        (folder / name).unlink()
    if len(lost) < 3:
        shown = owner("ledger", "accept-loss", "--because", "a disk died", "--yes")
        assert shown.returncode == 0, shown.stderr
    spent = [json.loads(owner("budget", "--as", who, "--json").stdout)["own"]["spent"] for who in ("ada", "ben")]
    assert spent == [ada, ben]
    assert "all in order" in owner("ledger", "verify").stdout


def test_nothing_is_read_where_there_is_no_ledger_yet(tacit, folder: Path):
    for command in ("verify", "history", "export", "price"):
        shown = tacit("ledger", command, "-p", "t.toml", cwd=folder)
        assert (shown.returncode, "[ledger-missing]" in shown.stderr) == (6, True)
    assert sorted(path.name for path in folder.iterdir()) == ["t.parquet", "t.toml"]
