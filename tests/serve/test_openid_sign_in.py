"""The console's sign-in with an identity provider, from the first link to the last cookie."""

from __future__ import annotations

import itertools
import json
import logging
import signal
import ssl
import threading
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.support.console import Page, Visitor
from tests.support.identity_provider import (
    CLIENT,
    SECRET,
    ec_key,
    public_jwk,
    public_pem,
    rsa_key,
    run_identity_provider,
    send_json,
    sign_token,
)
from tests.support.ports import find_free_port
from tests.support.server_process import run_server_process

from tacit.errors import ParameterError
from tacit.serve import credentials, limits
from tacit.serve.addresses import networks_of
from tacit.serve.credentials import IdentityClaim, LinkedIdentity
from tacit.serve.limits import FailedAttempts
from tacit.serve.openid import provider as provider_module
from tacit.serve.openid.configuration import CLIENT_ID, CLIENT_SECRET, ISSUER, OpenIdConfiguration

pytestmark = pytest.mark.slow

ADA, OLGA = "248289761001", "248289761002"
FLOW, SESSION = "__Host-tacit-oidc", "__Host-tacit"
ADDRESSES = (f"198.51.100.{n}" for n in itertools.count(1))  # each visitor's own, so that failures are counted apart


@pytest.fixture(scope="module")
def running():
    with run_identity_provider() as found:
        yield found


@pytest.fixture
def remote(running):
    running.reset()
    running.asked.clear()
    return running


def configure(remote, port):
    return OpenIdConfiguration(remote.issuer, CLIENT, SECRET, f"https://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def served(running, serving, make_clinic, tmp_path_factory):
    """A clinic whose ada and olga are linked by subject."""
    made, port = make_clinic(tmp_path_factory.mktemp("openid")), find_free_port()
    for name, subject in (("ada", ADA), ("olga", OLGA)):
        credentials.link_identity(made.people, name, LinkedIdentity(running.issuer, IdentityClaim.SUBJECT, subject))
    proxies = networks_of(["127.0.0.1"])
    with serving(made, http=port, postgres=None, openid=configure(running, port), proxies=proxies) as found:
        yield found


@pytest.fixture
def visitor(served):
    """Makes a visitor with an address of their own, who has not signed in."""
    opened = []

    def make(**headers):
        tls = ssl.create_default_context(cafile=served.cafile)
        own = {"X-Forwarded-For": next(ADDRESSES), **headers}
        opened.append(httpx.Client(timeout=60, base_url=served.http, verify=tls, headers=own))
        return Visitor(opened[-1])

    yield make
    for client in opened:
        client.close()


def start(visit, query=""):
    """Begin, and return where the provider is asked."""
    response = visit.get(f"/oidc/start{query}")
    assert response.status_code == 303, response.text
    return response.headers["location"]


def approve(place):
    """Sign in at the provider, and return where it leads back to."""
    return httpx.get(place).headers["location"]


def sign_in(visit, query=""):
    return visit.client.get(approve(start(visit, query)))


def assert_refused(visit, response, code, status):
    assert response.status_code == status and f"· {code}" in Page(response.text).text
    assert visit.get("/learn").status_code == 303  # nobody is signed in
    return Page(response.text)


def test_a_linked_account_opens_a_session(visitor, remote, served, caplog):
    visit = visitor()
    with caplog.at_level(logging.INFO, "tacit.serve"):
        place = start(visit)
        query = {name: one for name, (one,) in parse_qs(urlsplit(place).query).items()}
        assert place.startswith(f"{remote.issuer}/authorize?")
        assert query["redirect_uri"] == f"{served.http}/console/oidc/callback"
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        back = approve(place)
        response = visit.client.get(back)
    assert response.status_code == 200 and response.headers["referrer-policy"] == "no-referrer"
    assert Page(response.text).all("meta", content="0;url=/console")
    assert FLOW not in visit.client.cookies and SESSION in visit.client.cookies
    assert "ada" in Page(visit.get("/ask").text).text
    assert "ada signed in with OpenID Connect from 198.51.100." in caplog.text
    code = parse_qs(urlsplit(back).query)["code"][0]
    hidden = (code, query["state"], query["nonce"], SECRET, ADA, visit.client.cookies[SESSION], "unused-token")
    assert not any(secret in caplog.text for secret in hidden)


def test_cookies_are_as_narrow_as_their_use(visitor, remote):
    visit = visitor()
    begun = visit.get("/oidc/start")
    flow = begun.headers["set-cookie"].lower()
    assert flow.startswith(FLOW.lower())
    assert all(part in flow for part in ("httponly", "secure", "samesite=lax", "path=/", "max-age=600"))
    opened = visit.client.get(approve(begun.headers["location"]))
    (session,) = [each for each in opened.headers.get_list("set-cookie") if each.startswith(f"{SESSION}=")]
    assert all(part in session.lower() for part in ("httponly", "secure", "samesite=strict", "path=/"))
    assert "max-age" not in session.lower()


def test_a_response_cannot_be_replayed(visitor, remote):
    visit = visitor()
    place = start(visit)
    cookie = visit.client.cookies[FLOW]
    back = approve(place)
    assert visit.client.get(back).status_code == 200
    for cookies in ({}, {FLOW: cookie}):
        again = visitor()
        again.client.cookies.update(cookies)
        assert_refused(again, again.client.get(back), "forbidden", 403)
    assert remote.asked["/token"] == 1  # the provider was not even asked


def test_a_response_for_another_browser_is_refused(visitor, remote):
    victim, thief = visitor(), visitor()
    theirs = approve(start(thief))
    assert_refused(victim, victim.client.get(theirs), "forbidden", 403)  # login CSRF: no cookie
    mine = start(victim)
    assert_refused(victim, victim.client.get(theirs), "forbidden", 403)  # another cookie
    state = parse_qs(urlsplit(start(victim)).query)["state"][0]
    code = parse_qs(urlsplit(theirs).query)["code"][0]
    mixed = victim.get(f"/oidc/callback?code={code}&state={state}")  # a code of another session: PKCE
    assert_refused(victim, mixed, "authentication", 401)
    assert mine != theirs and remote.asked["/token"] == 1


def test_a_sign_in_begins_here_only(visitor, remote):
    for site in ("cross-site", "same-site"):
        response = visitor(**{"Sec-Fetch-Site": site}).get("/oidc/start")
        assert response.headers["location"] == "/console/sign-in" and "set-cookie" not in response.headers
    for site in ("same-origin", "none"):
        assert visitor(**{"Sec-Fetch-Site": site}).get("/oidc/start").headers["location"].startswith(remote.issuer)


def test_signing_in_makes_a_new_session(visitor, remote):
    visit = visitor()
    visit.client.cookies.set(SESSION, "chosen-by-somebody-else", domain="127.0.0.1")
    sign_in(visit)
    first = visit.client.cookies[SESSION]
    assert first != "chosen-by-somebody-else"
    sign_in(visit)
    second = visit.client.cookies[SESSION]
    assert first != second
    old = visitor()
    old.client.cookies.set(SESSION, first, domain="127.0.0.1")
    assert old.get("/learn").status_code == 303 and visit.get("/learn").status_code == 200


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("/console/budget", "/console/budget"),
        ("https://evil.example", "/console"),
        ("//evil.example", "/console"),
        ("/console/../..//evil.example", "/console"),
    ],
)
def test_the_way_back_leads_to_our_own_pages(visitor, remote, given, wanted):
    page = Page(sign_in(visitor(), f"?to={given}").text)
    assert page.all("meta", content=f"0;url={wanted}") and page.all("a", href=wanted)
    assert "evil" not in str(page.tags)


def test_whoever_is_not_signed_in_comes_back_to_the_page_they_wanted(visitor, remote):
    visit = visitor()
    place = visit.get("/budget").headers["location"]
    assert place == "/console/sign-in?to=%2Fconsole%2Fbudget"
    (link,) = Page(visit.client.get(place).text).of_class("button")
    assert link["href"] == "/console/oidc/start?to=/console/budget"
    response = visit.client.get(approve(visit.client.get(link["href"]).headers["location"]))
    assert Page(response.text).all("meta", content="0;url=/console/budget")


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "swapped"},
        {"nonce": None},
        {"aud": "another-client"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"azp": "another-client"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(visitor, remote, claims, caplog):
    remote.claims = claims
    visit = visitor()
    assert_refused(visit, sign_in(visit), "authentication", 401)
    assert f"not valid by its claim {next(iter(claims))}" in caplog.text


@pytest.mark.parametrize(
    "make",
    [
        lambda claims: sign_token(claims, b"", alg="none"),
        lambda claims: sign_token(claims, public_pem(rsa_key()), alg="HS256"),
        lambda claims: sign_token(claims, SECRET.encode(), alg="HS256"),
        lambda claims: sign_token(claims, rsa_key("other")),
        lambda claims: sign_token(claims, rsa_key("other"), kid="unknown"),
    ],
    ids=["none", "HS256 of the public key", "HS256 of the secret", "another key", "unknown key"],
)
def test_a_forged_token_is_refused(visitor, remote, make):
    remote.make_token = make
    visit = visitor()
    assert_refused(visit, sign_in(visit), "authentication", 401)


@pytest.mark.parametrize(
    "damaged", [{"crv": "bogus"}, {"crv": ["P-256"]}, {"crv": "P-521"}, {"x": "AA"}, {"y": {}}], ids=str
)
def test_a_damaged_key_of_the_provider_is_refused(visitor, remote, damaged, monkeypatch, caplog):
    monkeypatch.setattr(provider_module, "KEY_SECONDS", 0.0)
    kid = f"damaged {damaged}"
    remote.keys.append({**public_jwk(ec_key(), kid), **damaged})
    remote.make_token = lambda claims: sign_token(claims, ec_key(), alg="ES256", kid=kid)
    visit = visitor()
    assert_refused(visit, sign_in(visit), "authentication", 401)
    assert "not valid by a damaged key" in caplog.text
    remote.reset()
    assert sign_in(visit).status_code == 200


def test_a_response_of_another_issuer_is_refused(visitor, remote):
    visit = visitor()
    back = approve(start(visit))
    assert_refused(visit, visit.client.get(f"{back}&iss=https://evil.example"), "authentication", 401)
    assert remote.asked["/token"] == 0
    assert visit.client.get(f"{approve(start(visit))}&iss={remote.issuer}").status_code == 200


def test_a_parameter_that_comes_twice_is_refused(visitor, remote):
    visit = visitor()
    back = approve(start(visit))
    assert_refused(visit, visit.client.get(f"{back}&code=another"), "protocol", 400)


def test_what_the_provider_says_of_an_error_is_not_repeated(visitor, remote):
    visit = visitor()
    state = parse_qs(urlsplit(start(visit)).query)["state"][0]
    words = "<script>alert(1)</script>"
    query = {"error": "access_denied", "error_description": words, "state": state}
    response = visit.client.get("/console/oidc/callback", params=query)
    page = assert_refused(visit, response, "authentication", 401)
    assert "script>alert" not in response.text and page.of_class("button")


def test_an_account_that_nobody_linked_sees_what_to_send_to_the_owner(visitor, remote, served):
    remote.user = {"sub": "-x; rm $(y) <b>", "email": "eve@example.org", "email_verified": True}
    visit = visitor()
    page = assert_refused(visit, sign_in(visit), "unlinked-identity", 403)
    assert f"tacit analyst link NAME --issuer {remote.issuer} --subject='-x; rm $(y) <b>'" in page.text
    assert "eve@example.org" in page.text and "ada" not in page.text
    assert [link["href"] for link in page.all("a")[-2:]] == ["/console/oidc/start", "/console/oidc/start?again="]
    assert parse_qs(urlsplit(start(visit, "?again=")).query)["prompt"] == ["login"]


def test_an_address_counts_when_it_is_verified_and_for_analysts_only(visitor, remote, served):
    people, issuer = served.clinic.people, remote.issuer
    credentials.link_identity(people, "ben", LinkedIdentity(issuer, IdentityClaim.EMAIL, "ben@example.org"))
    try:
        remote.user = {"sub": "77", "email": "ben@example.org", "email_verified": True}
        visit = visitor()
        assert sign_in(visit).status_code == 200 and "ben" in Page(visit.get("/learn").text).text
        for verified in (False, "true", None):
            remote.user["email_verified"] = verified
            visit = visitor()
            page = assert_refused(visit, sign_in(visit), "unlinked-identity", 403)
            assert "ben" not in page.text  # nor is an address shown that is not theirs for sure
        remote.user = {"sub": "77", "email": "Ben@example.org", "email_verified": True}
        visit = visitor()
        assert_refused(visit, sign_in(visit), "unlinked-identity", 403)
    finally:
        credentials.unlink_identity(people, "ben")


def test_a_subject_of_another_issuer_is_somebody_else(visitor, remote, served):
    identity = LinkedIdentity("https://other.example.org", IdentityClaim.SUBJECT, "88")
    credentials.link_identity(served.clinic.people, "ben", identity)
    try:
        remote.user = {"sub": "88"}
        visit = visitor()
        assert_refused(visit, sign_in(visit), "unlinked-identity", 403)
    finally:
        credentials.unlink_identity(served.clinic.people, "ben")


def test_an_owner_comes_in_when_linked_by_subject(visitor, remote):
    remote.user = {"sub": OLGA}
    visit = visitor()
    assert sign_in(visit).status_code == 200 and visit.get("/owner").status_code == 200


@pytest.mark.parametrize("change", ["unlink", "link another", "unlink and link", "link again", "rotate"])
def test_a_session_ends_with_its_link_and_with_a_rotation(visitor, remote, served, change):
    people, own = served.clinic.people, LinkedIdentity(remote.issuer, IdentityClaim.SUBJECT, ADA)
    before = people.read_bytes()
    visit = visitor()
    assert sign_in(visit).status_code == 200 and visit.get("/learn").status_code == 200
    by_password = visitor()
    by_password.sign_in("ada", served.clinic.secrets["ada"].password)
    try:
        if change == "unlink":
            credentials.unlink_identity(people, "ada")
        elif change == "link another":
            credentials.link_identity(people, "ada", LinkedIdentity(remote.issuer, IdentityClaim.SUBJECT, "99"))
        elif change in {"unlink and link", "link again"}:  # the same account, with no request between
            if change == "unlink and link":
                credentials.unlink_identity(people, "ada")
            credentials.link_identity(people, "ada", own)
        else:
            credentials.rotate_credential(people, "ada")
            assert credentials.read_credentials(people).find("ada").identity == own  # the link stays
        assert visit.get("/learn").status_code == 303
        assert by_password.get("/learn").status_code == (303 if change == "rotate" else 200)
    finally:
        _put_back(people, before)


def test_a_link_of_an_older_file_stays_good(visitor, remote, served):
    people = served.clinic.people
    before = people.read_bytes()
    written = json.loads(before)
    del written["people"]["ada"]["identity"]["serial"]
    try:
        _put_back(people, json.dumps(written).encode())
        visit = visitor()
        assert sign_in(visit).status_code == 200 and visit.get("/learn").status_code == 200
        credentials.link_identity(people, "ada", LinkedIdentity(remote.issuer, IdentityClaim.SUBJECT, ADA))
        assert visit.get("/learn").status_code == 303
    finally:
        _put_back(people, before)


def _put_back(people, before):
    draft = people.with_name("draft")
    draft.touch(0o600)
    draft.write_bytes(before)
    draft.replace(people)


def test_signing_out_ends_the_session_and_says_how_to_end_the_other(visitor, remote):
    visit = visitor()
    sign_in(visit)
    token = visit.client.cookies[SESSION]
    visit.token = Page(visit.get("/learn").text).all("input", name="csrf")[0]["value"]
    response = visit.post("/sign-out")
    assert response.headers["location"] == "/console/sign-in?signed-out="
    page = Page(visit.client.get(response.headers["location"]).text)
    assert page.all("a", href=f"{remote.issuer}/logout?client_id={CLIENT}")
    old = visitor()
    old.client.cookies.set(SESSION, token, domain="127.0.0.1")
    assert old.get("/learn").status_code == 303


def test_passwords_and_keys_stay_beside_it(visitor, remote, served):
    visit = visitor()
    assert visit.sign_in("ada", served.clinic.secrets["ada"].password).status_code == 303
    assert visit.post("/sign-out").headers["location"] == "/console/sign-in"  # there is no other session to end
    headers = {"Authorization": f"Bearer {served.key('ada')}"}
    assert visit.client.get("/v1/budget", headers=headers).status_code == 200
    for token in (sign_token({"iss": remote.issuer, "aud": CLIENT, "sub": ADA}, rsa_key()), "unused-token"):
        wrong = visit.client.get("/v1/budget", headers={"Authorization": f"Bearer {token}"})
        assert wrong.status_code == 401  # a token of the provider is no key


def test_failures_wait_like_wrong_passwords(visitor, remote, monkeypatch):
    begin = FailedAttempts.begin  # at one moment: none is forgotten, however long the requests take
    monkeypatch.setattr(FailedAttempts, "begin", lambda self, account, group: begin(self, account, group, 0.0))
    visit = visitor()
    remote.user = {"sub": "nobody"}
    for _ in range(6):  # whom nobody linked is counted too
        assert sign_in(visit).status_code == 403
    remote.reset()
    spent = []
    for _ in range(7):
        state = parse_qs(urlsplit(start(visit)).query)["state"][0]
        began = time.monotonic()
        assert visit.get(f"/oidc/callback?code=x&state={state}").status_code == 401
        spent.append(time.monotonic() - began)
    assert spent[-1] > 0.9  # ten are free; then 0.25, 0.5 and 1 second
    assert sign_in(visitor()).status_code == 200  # from elsewhere


IMAGE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}


@pytest.mark.parametrize("headers", [{}, IMAGE], ids=["no headers", "image"])
def test_a_page_elsewhere_slows_nobody_down(visitor, remote, headers, monkeypatch):
    monkeypatch.setattr(limits, "LONGEST", 20.0)
    visit = visitor()
    back = approve(start(visit))
    address = visit.client.headers["X-Forwarded-For"]
    elsewhere = visitor(**{"X-Forwarded-For": address})  # the same browser, which sends no cookie from there
    for query in ("", "?code=x&state=y", f"?{urlsplit(back).query}", "?state=a&state=b") * 6:
        response = elsewhere.client.get(f"/console/oidc/callback{query}", headers=headers)
        assert_refused(elsewhere, response, "forbidden", 403)
        assert not any(each.startswith(FLOW) for each in response.headers.get_list("set-cookie"))
    began = time.monotonic()
    assert visit.client.get(back).status_code == 200
    assert time.monotonic() - began < 10  # a try after 24 failures waits for twenty seconds here


def test_a_flow_that_was_begun_is_spoiled_by_no_other_response(visitor, remote):
    visit = visitor()
    back = approve(start(visit))
    for query in ("", "?code=x&state=y", "?error=access_denied"):  # a link elsewhere comes with the cookie
        response = visit.get(f"/oidc/callback{query}")
        assert response.status_code == 403 and FLOW in visit.client.cookies
    assert visit.client.get(back).status_code == 200 and FLOW not in visit.client.cookies


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Dest": "empty"},
    ],
    ids=str,
)
def test_a_response_is_taken_from_a_navigation_only(visitor, remote, headers):
    visit = visitor()
    back = approve(start(visit))
    response = visit.client.get(back, headers=headers)
    assert response.status_code == 403 and FLOW in visit.client.cookies and remote.asked["/token"] == 0
    whole = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert visit.client.get(back, headers=whole).status_code == 200


def test_a_provider_that_is_slow_delays_nobody_else(visitor, remote, served, monkeypatch):
    monkeypatch.setattr(provider_module, "TIMEOUT", 60.0)
    answers = threading.Event()

    def answer_late(handler):
        answers.wait(50)
        send_json(handler, {"error": "temporarily_unavailable"}, 503)

    remote.replies["/token"] = answer_late
    late, found = [visitor() for _ in range(4)], []
    backs = [(visit, approve(start(visit))) for visit in late]
    threads = [threading.Thread(target=lambda v=v, b=b: found.append(v.client.get(b))) for v, b in backs]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 40
    while remote.asked["/token"] < 4 and time.monotonic() < end:
        time.sleep(0.01)
    visit, spent = visitor(), []
    for _ in range(5):
        began = time.monotonic()
        headers = {"Authorization": f"Bearer {served.key('ben')}"}
        assert visit.client.get("/v1/budget", headers=headers).status_code == 200
        spent.append(time.monotonic() - began)
    assert not found and max(spent) < 30  # all four still wait
    answers.set()
    for thread in threads:
        thread.join()
    assert {response.status_code for response in found} == {503}
    assert "· identity-provider" in Page(found[0].text).text


def test_a_provider_that_is_down_is_said_to_be(visitor, remote, served):
    remote.replies["/token"] = lambda handler: send_json(handler, {"error": "temporarily_unavailable"}, 503)
    visit = visitor()
    page = assert_refused(visit, sign_in(visit), "identity-provider", 503)
    assert page.forms  # a password still works


def test_nothing_of_it_is_in_the_openapi_or_the_metrics(visitor, remote, served):
    visit = visitor()
    sign_in(visit)
    metrics = visit.client.get("/metrics", headers={"Authorization": f"Bearer {served.key('otto')}"}).text
    document = visit.client.get("/openapi.json").text
    assert 'route="/console/oidc/callback"' in metrics
    assert not any(each in metrics + document for each in (SECRET, ADA, CLIENT + ":", remote.issuer))
    assert "oidc" not in document


def test_the_provider_can_be_the_only_way_in(running, serving, make_clinic, tmp_path):
    running.reset()
    made, port = make_clinic(tmp_path), find_free_port()
    settings = {"http": port, "postgres": None, "openid": configure(running, port), "passwords": False}
    with serving(made, **settings) as found:
        tls = ssl.create_default_context(cafile=found.cafile)
        with httpx.Client(base_url=found.http, verify=tls) as client:
            page = Page(client.get("/console/sign-in").text)
            assert not page.forms and page.of_class("button")
            fields = {"name": "ada", "password": made.secrets["ada"].password, "csrf": ""}
            response = client.post("/console/sign-in", data=fields)
            assert response.status_code == 403 and "passwords do not open this console" in Page(response.text).text
            headers = {"Authorization": f"Bearer {found.key('ada')}"}
            assert client.get("/v1/budget", headers=headers).status_code == 200


def test_the_command_reads_the_environment_and_checks_the_provider(running, clinic, monkeypatch):
    running.reset()
    port = find_free_port()
    for name, value in ((ISSUER, running.issuer), (CLIENT_ID, CLIENT), (CLIENT_SECRET, SECRET)):
        monkeypatch.setenv(name, value)
    options = ("--no-postgres", "--public-url", f"https://127.0.0.1:{port}", "--http", str(port))
    with run_server_process(clinic.policy, *options) as process:
        assert f"its redirect URI is https://127.0.0.1:{port}/console/oidc/callback" in process.said
        tls = ssl.create_default_context(cafile=process.cafile)
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=tls) as client:
            visit = Visitor(client)
            assert_refused(visit, sign_in(visit), "unlinked-identity", 403)
        process.end(signal.SIGTERM)
        logged = clinic.policy.with_suffix(".log").read_text() + process.said
    assert "the identity is not linked to anyone" in logged and "/console/oidc/callback 403 - from" in logged
    assert not any(secret in logged for secret in (SECRET, ADA, "code=", "state="))


def test_a_server_does_not_start_with_a_wrong_issuer(running, serving, clinic):
    running.reset()
    port = find_free_port()
    wrong = OpenIdConfiguration(f"{running.issuer}/", CLIENT, SECRET, f"https://127.0.0.1:{port}")
    with (
        pytest.raises(ParameterError, match=f"calls itself {running.issuer}") as caught,
        serving(clinic, http=port, postgres=None, openid=wrong),
    ):
        pass
    assert caught.value.fix == f"{ISSUER}={running.issuer} tacit serve" and SECRET not in str(caught.value)
