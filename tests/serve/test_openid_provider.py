"""The provider as the server reads it: honest, changed, slow, huge, elsewhere, and down."""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.identity_provider import (
    CLIENT,
    SECRET,
    flood,
    public_jwk,
    redirect_to,
    rsa_key,
    run_identity_provider,
    send_json,
    sign_token,
    trickle,
)

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.serve.openid import provider as provider_module
from tacit.serve.openid.configuration import (
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    OpenIdConfiguration,
    is_safe_address,
)
from tacit.serve.openid.provider import OpenIdProvider
from tacit.serve.openid.sign_in_flow import MAX_SECONDS, SignInFlows, choose_return_path
from tacit.serve.server import ServerConfig

PUBLIC = "http://127.0.0.1:8080"
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture(scope="module")
def running():
    with run_identity_provider() as found:
        yield found


@pytest.fixture
def remote(running):
    """The provider, honest and not asked yet."""
    running.reset()
    running.asked.clear()
    return running


def connect(remote, **changed):
    return OpenIdProvider(OpenIdConfiguration(**{**_settings(remote), **changed}))


def _settings(remote):
    return {"issuer": remote.issuer, "client_id": CLIENT, "client_secret": SECRET, "public_url": PUBLIC}


def sign_in(remote, local, flow=None, issuer=None):
    """All of a sign-in but the pages."""
    flow = flow or SignInFlows().begin("")
    return local.redeem(obtain_code(remote, local, flow), flow, issuer)


def obtain_code(remote, local, flow):
    query = parse_qs(urlsplit(local.build_authorization_url(flow)).query)
    place = remote.authorize({name: one for name, (one,) in query.items()})
    return parse_qs(urlsplit(place).query)["code"][0]


@contextmanager
def refused(code):
    with pytest.raises(Refused) as caught:
        yield caught
    assert caught.value.code is code and caught.value.fix


def test_an_honest_provider_names_who_signed_in(remote):
    local = connect(remote)
    found = sign_in(remote, local)
    assert (found.issuer, found.subject, found.email) == (remote.issuer, "248289761001", "")
    sign_in(remote, local)
    assert remote.asked == {DISCOVERY: 1, "/keys": 1, "/token": 2}  # documents are read once


def test_a_code_works_with_its_own_verifier_only(remote):
    local, flows = connect(remote), SignInFlows()
    mine, theirs = flows.begin(""), flows.begin("")
    code = obtain_code(remote, local, theirs)
    with refused(ErrorCode.AUTHENTICATION):  # a stolen code, injected into a sign-in of the thief
        local.redeem(code, mine, None)


def test_without_pkce_at_the_provider_the_nonce_still_refuses_an_injected_code(remote):
    local, flows = connect(remote), SignInFlows()
    mine, theirs = flows.begin(""), flows.begin("")
    code = obtain_code(remote, local, theirs)
    remote.codes[code]["code_challenge"] = mine.challenge  # as if the provider did not look
    with refused(ErrorCode.AUTHENTICATION):
        local.redeem(code, mine, None)


def test_a_code_is_good_once(remote):
    local, flow = connect(remote), SignInFlows().begin("")
    code = obtain_code(remote, local, flow)
    assert local.redeem(code, flow, None).subject
    with refused(ErrorCode.AUTHENTICATION):
        local.redeem(code, flow, None)


def test_the_sender_of_a_response_must_be_the_issuer(remote):
    assert sign_in(remote, connect(remote), issuer=remote.issuer).subject
    with refused(ErrorCode.AUTHENTICATION):  # mix-up: another provider's response
        sign_in(remote, connect(remote), issuer="https://evil.example")
    remote.document["authorization_response_iss_parameter_supported"] = True
    before = remote.asked["/token"]
    with refused(ErrorCode.AUTHENTICATION):  # it always says who it is, and here nobody does
        sign_in(remote, connect(remote))
    assert remote.asked["/token"] == before  # the code was shown to nobody


def test_new_keys_are_read_when_a_token_names_one(remote, monkeypatch):
    local = connect(remote)
    sign_in(remote, local)
    remote.keys.append(public_jwk(rsa_key("other"), "second"))
    remote.make_token = lambda claims: sign_token(claims, rsa_key("other"), kid="second")
    with refused(ErrorCode.AUTHENTICATION):  # they were read a moment ago
        sign_in(remote, local)
    monkeypatch.setattr(provider_module, "KEY_SECONDS", 0.0)
    assert sign_in(remote, local).subject
    assert remote.asked["/keys"] == 2


@pytest.mark.slow
def test_many_unknown_keys_cause_one_read(remote):
    local = connect(remote)
    sign_in(remote, local)
    remote.make_token = lambda claims: sign_token(claims, rsa_key("other"), kid=f"unknown-{time.monotonic_ns()}")
    local._keys._tried -= provider_module.KEY_SECONDS + 1  # as if the first read was half a minute ago
    for _ in range(20):
        with refused(ErrorCode.AUTHENTICATION):
            sign_in(remote, local)
    assert remote.asked["/keys"] == 2


def test_keys_that_were_withdrawn_are_not_used_after_their_time(remote, monkeypatch):
    local = connect(remote)
    sign_in(remote, local)
    remote.keys[:] = [public_jwk(rsa_key("other"), "second")]
    monkeypatch.setattr(provider_module, "MAX_AGE", 0.0)
    with refused(ErrorCode.AUTHENTICATION):
        sign_in(remote, local)


@pytest.mark.slow
@pytest.mark.parametrize("path", [DISCOVERY, "/keys", "/token"])
@pytest.mark.parametrize("reply", [trickle, flood, lambda handler: time.sleep(60)], ids=["trickle", "flood", "silence"])
def test_a_slow_or_huge_answer_ends_in_time(remote, monkeypatch, path, reply):
    monkeypatch.setattr(provider_module, "TIMEOUT", 0.3)
    local = connect(remote)
    flow = SignInFlows().begin("")
    code = obtain_code(remote, connect(remote), flow)
    remote.replies[path] = reply
    began = time.monotonic()
    with refused(ErrorCode.IDENTITY_PROVIDER):
        local.redeem(code, flow, None)
    assert time.monotonic() - began < 15  # of the half minute or more that each of them takes


def test_redirects_are_not_followed(remote, caplog):
    for path in ("/token", "/keys"):
        remote.reset()
        remote.replies[path] = redirect_to(f"{remote.issuer}/elsewhere")
        with refused(ErrorCode.IDENTITY_PROVIDER):
            sign_in(remote, connect(remote))
    assert remote.asked["/elsewhere"] == 0
    assert "the code: status 302" in caplog.text and "the keys: status 302" in caplog.text


@pytest.mark.parametrize("value", [[], 7, None, {}, {"id_token": 7}, {"id_token": None}, "x", {"id_token": "a.b.c"}])
def test_nonsense_of_the_token_endpoint_is_refused(remote, value):
    remote.replies["/token"] = lambda handler: send_json(handler, value)
    with pytest.raises(Refused):
        sign_in(remote, connect(remote))


def test_a_document_above_the_limit_is_not_read_even_where_its_beginning_would_do(remote, caplog):
    def answer(size):
        def reply(handler):
            body = json.dumps({"keys": remote.keys}).encode()
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(body + b" " * (size - len(body)))

        return reply

    remote.replies["/keys"] = answer(provider_module.MAX_BYTES)
    assert sign_in(remote, connect(remote)).subject
    remote.replies["/keys"] = answer(provider_module.MAX_BYTES + 1)
    with refused(ErrorCode.IDENTITY_PROVIDER):
        sign_in(remote, connect(remote))
    assert "the keys: TooLarge" in caplog.text


@pytest.mark.parametrize("keys", [None, 7, {}, [7, None], [{}], [{"kty": "RSA"}] * 101])
def test_nonsense_for_keys_is_refused(remote, keys):
    remote.replies["/keys"] = lambda handler: send_json(handler, {"keys": keys})
    with pytest.raises(Refused):
        sign_in(remote, connect(remote))


def test_a_provider_that_is_down_is_not_asked_again_at_once(remote):
    remote.replies[DISCOVERY] = lambda handler: send_json(handler, {}, 503)
    local = connect(remote)
    for _ in range(5):
        with refused(ErrorCode.IDENTITY_PROVIDER):
            local.build_authorization_url(SignInFlows().begin(""))
    assert remote.asked[DISCOVERY] == 1
    remote.reset()
    local._metadata._tried -= provider_module.RETRY_SECONDS
    assert local.build_authorization_url(SignInFlows().begin("")).startswith(f"{remote.issuer}/authorize?")


def test_many_who_wait_for_a_document_cause_one_read(remote):
    def answer(handler):
        time.sleep(0.2)
        send_json(handler, remote.discover())

    remote.replies[DISCOVERY] = answer
    local, found = connect(remote), []
    threads = [
        threading.Thread(target=lambda: found.append(local.build_authorization_url(SignInFlows().begin(""))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and remote.asked[DISCOVERY] == 1


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"issuer": "https://evil.example"}, "calls itself https://evil.example"),
        ({"issuer": None}, "does not say"),
        ({"issuer": ["x"]}, "does not say"),
        ({"token_endpoint": None}, "token_endpoint"),
        ({"token_endpoint": "http://login.example.org/token"}, "token_endpoint"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri"),
        ({"jwks_uri": "ftp://127.0.0.1/keys"}, "jwks_uri"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({"authorization_endpoint": "https://user:password@login.example.org/"}, "authorization_endpoint"),
        ({"response_types_supported": ["id_token"]}, "authorization code flow"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"id_token_signing_alg_values_supported": ["HS256", "none"]}, "RSA or elliptic curves"),
    ],
    ids=str,
)
def test_a_document_that_cannot_be_used_stops_the_start(remote, changed, what):
    remote.document = changed
    with pytest.raises(ParameterError, match=what) as caught:
        connect(remote).read_at_start()
    assert caught.value.name == ISSUER and caught.value.fix


def test_the_fix_for_another_spelling_of_the_issuer_works(remote):
    with pytest.raises(ParameterError) as caught:
        connect(remote, issuer=f"{remote.issuer}/").read_at_start()
    given = caught.value.fix.split()[0].removeprefix(f"{ISSUER}=")
    connect(remote, issuer=given).read_at_start()


def test_no_document_stops_the_start_and_no_answer_does_not(remote, caplog):
    remote.replies[DISCOVERY] = lambda handler: send_json(handler, {}, 404)
    with pytest.raises(ParameterError, match="status 404"):
        connect(remote).read_at_start()
    remote.replies[DISCOVERY] = redirect_to(f"{remote.issuer}/elsewhere")
    with pytest.raises(ParameterError, match="status 302"):
        connect(remote).read_at_start()
    with caplog.at_level(logging.WARNING):
        connect(remote, issuer="http://127.0.0.1:1").read_at_start()
    assert "is asked again at a sign-in: discovery: ConnectionRefusedError" in caplog.text


def test_an_https_provider_has_no_plain_endpoint():
    document = {
        "issuer": "https://login.example.org",
        "authorization_endpoint": "https://login.example.org/a",
        "token_endpoint": "http://127.0.0.1:9/token",
        "jwks_uri": "https://login.example.org/k",
    }
    with pytest.raises(provider_module.WrongDocument, match="token_endpoint"):
        provider_module._parse_metadata(document, "https://login.example.org")
    document["token_endpoint"] = "https://login.example.org/t"
    assert not provider_module._parse_metadata(document, "https://login.example.org").posts_secret
    document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    assert provider_module._parse_metadata(document, "https://login.example.org").posts_secret


def test_a_wrong_secret_is_for_the_log_and_appears_nowhere(remote, caplog):
    local = connect(remote, client_secret="a-wrong-secret")
    with refused(ErrorCode.IDENTITY_PROVIDER) as caught:
        sign_in(remote, local)
    assert "does not accept the client or its secret" in caplog.text
    assert "a-wrong-secret" not in caplog.text + str(caught.value) + repr(local.configuration)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"issuer": "http://login.example.org"}, ISSUER),
        ({"issuer": "login.example.org"}, ISSUER),
        ({"issuer": "https://login.example.org/?x=1"}, ISSUER),
        ({"issuer": "https://login.example.org/#x"}, ISSUER),
        ({"issuer": "https://user:password@login.example.org"}, ISSUER),
        ({"client_id": ""}, CLIENT_ID),
        ({"client_secret": ""}, CLIENT_SECRET),
        ({"client_secret": "a\nb"}, CLIENT_SECRET),
        ({"public_url": "http://tacit.example.org"}, "public-url"),
        ({"public_url": "https://tacit.example.org/prefix"}, "public-url"),
        ({"public_url": "https://tacit.example.org?x"}, "public-url"),
        ({"public_url": "tacit.example.org"}, "public-url"),
    ],
    ids=str,
)
def test_a_wrong_configuration_is_said_at_once(changed, name):
    right = {
        "issuer": "https://login.example.org/realms/clinic",
        "client_id": CLIENT,
        "client_secret": "do-not-show",
        "public_url": "https://tacit.example.org/",
    }
    assert OpenIdConfiguration(**right).redirect_uri == "https://tacit.example.org/console/oidc/callback"
    with pytest.raises(ParameterError) as caught:
        OpenIdConfiguration(**{**right, **changed})
    assert caught.value.name == name and caught.value.fix and "do-not-show" not in str(caught.value)


def test_the_environment_is_read_whole_or_not_at_all(monkeypatch):
    for name in (ISSUER, CLIENT_ID, CLIENT_SECRET):
        monkeypatch.delenv(name, raising=False)
    assert OpenIdConfiguration.from_environment(None) is None
    assert OpenIdConfiguration.from_environment(PUBLIC) is None
    monkeypatch.setenv(CLIENT_SECRET, "do-not-show")
    with pytest.raises(ParameterError, match=f"{CLIENT_SECRET} is set"):
        OpenIdConfiguration.from_environment(PUBLIC)
    monkeypatch.setenv(ISSUER, "https://login.example.org")
    with pytest.raises(ParameterError, match="public-url"):
        OpenIdConfiguration.from_environment(None)
    with pytest.raises(ParameterError, match=CLIENT_ID):
        OpenIdConfiguration.from_environment(PUBLIC)
    monkeypatch.setenv(CLIENT_ID, CLIENT)
    found = OpenIdConfiguration.from_environment(PUBLIC)
    assert found is not None and found.host == "login.example.org" and "do-not-show" not in repr(found)


def test_the_public_address_agrees_with_how_the_server_is_reached():
    plain = OpenIdConfiguration("https://login.example.org", CLIENT, SECRET, PUBLIC)
    safe = OpenIdConfiguration("https://login.example.org", CLIENT, SECRET, "https://tacit.example.org")
    assert ServerConfig(openid=plain).openid is plain
    assert ServerConfig(openid=safe, proxied=True).openid is safe
    with pytest.raises(ParameterError, match="public-url: is https"):
        ServerConfig(openid=safe)
    with pytest.raises(ParameterError, match="public-url: is http,"):
        ServerConfig(openid=plain, proxied=True)
    with pytest.raises(ParameterError, match="nobody could sign in"):
        ServerConfig(passwords=False)


def test_a_flow_is_for_its_own_cookie_and_state_once_and_for_a_while():
    flows, others = SignInFlows(), SignInFlows()
    one, two = flows.begin("/console/ask", 1000.0), flows.begin("", 1000.0)
    assert len({one.state, one.nonce, one.verifier, two.state, two.nonce, two.verifier}) == 6
    assert len(one.verifier) == len(one.challenge) == 43  # RFC 7636 wants 43 to 128 characters
    assert not any(part in one.cookie for part in (one.state, one.nonce, one.verifier))
    assert flows.finish(one.cookie, two.state, 1001.0) is None  # another browser's state
    assert flows.finish("", one.state, 1001.0) is None
    assert flows.finish(one.cookie, "", 1001.0) is None
    assert others.finish(one.cookie, one.state, 1001.0) is None  # another process
    assert flows.finish(one.cookie, one.state, 1000.0 + MAX_SECONDS + 2) is None  # too late
    assert flows.finish(one.cookie, one.state, 998.0) is None  # a cookie of the future
    moved = one.cookie.replace("1000.", "1500.", 1)
    assert flows.finish(moved, one.state, 1600.0) is None  # its time is under the signature
    found = flows.finish(one.cookie, one.state, 1001.0)
    assert found == one and found.return_path == "/console/ask"
    assert flows.finish(one.cookie, one.state, 1002.0) is None  # replayed
    assert flows.finish(two.cookie, two.state, 1000.0 + MAX_SECONDS) == two
    assert flows.finish("\ud800.x", "\ud800", 1001.0) is None


def test_beginning_many_pushes_out_none_and_used_ones_are_forgotten_in_time():
    flows = SignInFlows()
    first = flows.begin("", 0.0)
    for _ in range(2000):
        flows.begin("", 1.0)
    assert not flows._used and flows.finish(first.cookie, first.state, 2.0) == first
    later = flows.begin("", 1000.0)
    assert flows.finish(later.cookie, later.state, 1001.0) == later and len(flows._used) == 1


@pytest.mark.parametrize(
    "given",
    [
        "https://evil.example/console",
        "//evil.example",
        "/\\evil.example",
        "/console//evil.example",
        "/console/../../evil",
        "/console/%2e%2e/x",
        "/console/ask?x=1",
        "/console/ask#x",
        "/console/ask\n",
        "/consoles",
        "/v1/ask",
        "javascript:alert(1)",
        "/console/sign-out",
        "/console/oidc/start",
        "/console/" + "a" * 300,
    ],
)
def test_a_place_to_return_to_is_a_page_of_our_own(given):
    assert choose_return_path(given) == "/console"


def test_pages_of_our_own_are_returned_to():
    for page in ("/console", "/console/ask", "/console/budget", "/console/answers/17"):
        assert choose_return_path(page) == page


def test_addresses_that_a_browser_reads_otherwise_are_not_safe():
    wrong = ("https://", "https:///x", "https://a b", "https://a\\@b", "https://a:0", "https://[::1", "http://10.0.0.1")
    assert not any(is_safe_address(each) for each in wrong)
    assert is_safe_address("http://[::1]:9000/x") and is_safe_address("http://localhost:9000")
    assert not is_safe_address("http://localhost:9000", loopback=False)
