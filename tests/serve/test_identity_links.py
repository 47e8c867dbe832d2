"""Accounts at an identity provider, linked to names in the list of people."""

from __future__ import annotations

import json
import shlex

import pytest
from tests.support.command import invoke_command

from tacit.errors import ParameterError
from tacit.policy.load import load
from tacit.serve import credentials
from tacit.serve.authentication import Authenticator, User
from tacit.serve.credentials import IdentityClaim, LinkedIdentity, Role
from tacit.serve.openid.configuration import ISSUER

LOGIN = "https://login.example.org/realms/clinic"
POLICY = (
    '[privacy]\nepsilon = 10\n[tables.flats]\nunit = "row"\n'
    'columns.rent = { type = "int", lower = 0, upper = 9 }\n[analysts.ada]\nepsilon = 5\n[analysts.ben]\nepsilon = 5\n'
)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "flats.people"
    for name, role in (("ada", Role.ANALYST), ("ben", Role.ANALYST), ("olga", Role.OWNER), ("zoe", Role.ANALYST)):
        credentials.add_credential(path, name, role)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, known):
    (tmp_path / "flats.toml").write_text(POLICY)
    people = tmp_path / "flats.people"
    people.touch(0o600)
    people.write_bytes(known)
    return people


@pytest.fixture
def opened(path):
    return Authenticator(path, load(path.with_suffix(".toml")))


def by_subject(value, issuer=LOGIN):
    return LinkedIdentity(issuer, IdentityClaim.SUBJECT, value)


def by_email(value, issuer=LOGIN):
    return LinkedIdentity(issuer, IdentityClaim.EMAIL, value)


def test_an_identity_opens_the_name_that_it_is_linked_to(path, opened):
    assert opened.by_identity(LOGIN, "1") is None
    credentials.link_identity(path, "ada", by_subject("1"))
    credentials.link_identity(path, "olga", by_subject("2"))
    assert opened.by_identity(LOGIN, "1") == User("ada", Role.ANALYST)
    assert opened.by_identity(LOGIN, "2") == User("olga", Role.OWNER)
    assert opened.by_identity(f"{LOGIN}/", "1") is None  # another issuer
    assert opened.by_identity(LOGIN, "1 ") is opened.by_identity(LOGIN, "") is None
    assert opened.by_identity(LOGIN, "x", "1") is None  # a subject is no address
    credentials.unlink_identity(path, "ada")
    assert opened.by_identity(LOGIN, "1") is None and opened.person("ada") is not None


def test_an_address_opens_an_analyst_and_the_subject_goes_first(path, opened):
    credentials.link_identity(path, "ada", by_email("a@example.org"))
    credentials.link_identity(path, "ben", by_subject("7"))
    assert opened.by_identity(LOGIN, "9", "a@example.org") == User("ada", Role.ANALYST)
    assert opened.by_identity(LOGIN, "7", "a@example.org") == User("ben", Role.ANALYST)
    assert opened.by_identity(LOGIN, "9", "A@example.org") is None
    assert opened.by_identity(LOGIN, "a@example.org") is None  # an address is no subject


def test_no_address_opens_an_owner_even_where_the_file_says_so(path, opened):
    with pytest.raises(ParameterError, match="may pass to someone else"):
        credentials.link_identity(path, "olga", by_email("o@example.org"))
    written = json.loads(path.read_text())
    written["people"]["olga"]["identity"] = {"issuer": LOGIN, "claim": "email", "value": "o@example.org"}
    path.write_text(json.dumps(written))
    assert credentials.read_credentials(path).find("olga").identity == by_email("o@example.org")
    assert opened.by_identity(LOGIN, "9", "o@example.org") is None


def test_whom_the_policy_does_not_know_is_not_let_in(path, opened):
    credentials.link_identity(path, "zoe", by_subject("3"))
    assert opened.by_identity(LOGIN, "3") is None


def test_an_identity_has_one_name_and_a_name_one_identity(path):
    credentials.link_identity(path, "ada", by_subject("1"))
    with pytest.raises(ParameterError, match="linked to ada") as caught:
        credentials.link_identity(path, "ben", by_subject("1"))
    assert caught.value.fix == "tacit analyst unlink ada"
    credentials.link_identity(path, "ada", by_subject("2"))
    credentials.link_identity(path, "ben", by_subject("1"))  # it is free now


@pytest.mark.parametrize("value", ["", " 1", "1\n", "x" * 501])
def test_what_is_no_identity_is_refused(path, value):
    before = path.read_bytes()
    with pytest.raises(ParameterError):
        credentials.link_identity(path, "ada", by_subject(value))
    with pytest.raises(ParameterError):
        credentials.link_identity(path, "ada", by_subject("1", value))
    assert path.read_bytes() == before


def test_a_damaged_link_lets_nobody_in(path, opened):
    written = json.loads(path.read_text())
    written["people"]["ada"]["identity"] = {"issuer": LOGIN, "claim": "name", "value": "ada"}
    path.write_text(json.dumps(written))
    with pytest.raises(ParameterError, match="damaged"):
        credentials.read_credentials(path)
    assert opened.person("ben") is None


@pytest.mark.slow
def test_the_commands_link_list_and_unlink(path, opened, monkeypatch):
    monkeypatch.delenv(ISSUER, raising=False)
    place = ["-p", str(path.with_suffix(".toml"))]

    def run(*words):
        done = invoke_command("analyst", *words, *place)
        assert done.exit_code == 0, done.output
        return done.output

    digest = load(path.with_suffix(".toml")).digest
    assert "signs in to the console as sub -1 of" in run("link", "ada", "--issuer", LOGIN, "--subject=-1")
    assert f"linked to sub -1 of {LOGIN}" in run("list")
    rows = {row["name"]: row["identity"] for row in json.loads(run("list", "--json"))}
    assert rows["ada"] == f"sub -1 of {LOGIN}" and rows["ben"] is None
    assert opened.by_identity(LOGIN, "-1") == User("ada", Role.ANALYST)
    with pytest.raises(ParameterError, match="issuer: is missing") as caught:
        run("link", "ben", "--email", "ben@example.org")
    run(*shlex.split(caught.value.fix)[2:])  # the fix works as it is written
    assert opened.by_identity("https://login.example.org", "", "ben@example.org") == User("ben", Role.ANALYST)
    monkeypatch.setenv(ISSUER, LOGIN)
    run("link", "ben", "--subject", "5")
    assert opened.by_identity(LOGIN, "5") == User("ben", Role.ANALYST)
    run("unlink", "ben")
    assert opened.by_identity(LOGIN, "5") is None
    assert load(path.with_suffix(".toml")).digest == digest  # no question costs again
    for wrong in (["link", "ada"], ["link", "ada", "--subject", "1", "--email", "a@b"], ["unlink", "eve"]):
        with pytest.raises(ParameterError):
            run(*wrong)


def test_a_link_is_another_one_each_time(path, opened):
    serials = set()
    for _ in range(3):
        credentials.link_identity(path, "ada", by_subject("1"))
        serials.add(opened.identity("ada").serial)
        assert opened.by_identity(LOGIN, "1") == User("ada", Role.ANALYST)
        assert opened.identity("ada") == by_subject("1")  # the account is the same
    credentials.unlink_identity(path, "ada")
    credentials.link_identity(path, "ada", by_subject("1"))
    assert len({*serials, opened.identity("ada").serial}) == 4 and min(map(len, serials)) == 32
    linked = opened.identity("ada")
    credentials.rotate_credential(path, "ada")
    assert opened.identity("ada").serial == linked.serial  # no new link


def test_a_link_without_a_serial_is_read(path, opened):
    written = json.loads(path.read_text())
    written["people"]["ada"]["identity"] = {"issuer": LOGIN, "claim": "sub", "value": "1"}
    path.write_text(json.dumps(written))
    assert opened.by_identity(LOGIN, "1") == User("ada", Role.ANALYST) and opened.identity("ada").serial == ""
    with pytest.raises(ParameterError, match="linked to ada"):
        credentials.link_identity(path, "ben", by_subject("1"))
    credentials.link_identity(path, "ben", by_subject("2"))
    assert opened.by_identity(LOGIN, "1") == User("ada", Role.ANALYST)  # another's link changes nothing


@pytest.mark.parametrize("given", [f"{LOGIN}/", LOGIN.upper(), "https://other.example.org"])
@pytest.mark.parametrize("account", [("--subject", "-1 $x"), ("--email", "a@example.org")], ids=lambda each: each[0])
def test_an_issuer_that_is_not_the_servers_is_refused(path, opened, monkeypatch, given, account):
    monkeypatch.setenv(ISSUER, LOGIN)
    option, value = account
    before, policy = path.read_bytes(), str(path.with_suffix(".toml"))

    words = ["analyst", "link", "ada", f"{option}={value}", "-p", policy]
    with pytest.raises(ParameterError, match=f"issuer: .*{ISSUER} is {LOGIN}") as caught:
        invoke_command(*words, "--issuer", given)
    assert path.read_bytes() == before
    done = invoke_command(*shlex.split(caught.value.fix)[1:])  # the fix works as it is written
    assert done.exit_code == 0 and f"{value} of {LOGIN}." in done.output
    assert opened.identity("ada").issuer == LOGIN
    assert invoke_command(*words, "--issuer", LOGIN).exit_code == 0  # the same one may be said
    monkeypatch.delenv(ISSUER)
    done = invoke_command(*words, "--issuer", "https://other.example.org")
    assert done.exit_code == 0  # nothing says that it is wrong
