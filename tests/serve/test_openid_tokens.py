"""ID tokens, true and forged: the forger is `cryptography` alone."""

from __future__ import annotations

import base64
import json

import pytest
from tests.support.identity_provider import ec_key, encode, public_jwk, public_pem, rsa_key, sign_token

from tacit.serve.openid.id_token import SKEW, BadToken, TokenIdentity, UnknownKey, verify_id_token

ISSUER, CLIENT, NONCE = "https://login.example.org/realms/clinic", "tacit", "n-0S6_WzA2Mj"
KEYS = [public_jwk(rsa_key(), use="sig", alg="RS256")]
NOW = 1_800_000_000  # seconds; names of tests must not depend on the clock


def make_claims(**changed):
    claims = {"iss": ISSUER, "sub": "ada-1", "aud": CLIENT, "exp": NOW + 300, "iat": NOW, "nonce": NONCE, **changed}
    return {name: value for name, value in claims.items() if value is not None}


def verify(token, keys=KEYS):
    return verify_id_token(token, keys, issuer=ISSUER, client_id=CLIENT, nonce=NONCE, now=NOW)


def test_a_token_of_the_provider_names_its_subject():
    assert verify(sign_token(make_claims(), rsa_key())) == TokenIdentity(ISSUER, "ada-1", "")


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(rsa_key(), "RS256"), (rsa_key(), "PS256"), (ec_key(), "ES256")],
    ids=lambda each: str(each)[:5],
)
def test_asymmetric_signatures_are_verified(key, algorithm):
    token = sign_token(make_claims(), key, alg=algorithm)
    keys = [public_jwk(key)]
    assert verify(token, keys).subject == "ada-1"
    head, body, signature = token.split(".")
    raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
    raw[len(raw) // 2] ^= 1  # one bit
    with pytest.raises(BadToken, match="signature"):
        verify(f"{head}.{body}.{encode(bytes(raw))}", keys)
    other = encode(json.dumps(make_claims(sub="olga-1")).encode())  # another body under the same signature
    with pytest.raises(BadToken, match="signature"):
        verify(f"{head}.{other}.{signature}", keys)


@pytest.mark.parametrize("name", ["none", "None", "HS256", "HS384", "dir", "", None, ["RS256"], "RS1"])
def test_unsigned_and_symmetric_tokens_are_refused(name):
    with pytest.raises(BadToken, match="algorithm"):
        verify(sign_token(make_claims(), b"", alg=name) if name is not None else _without_algorithm())


def _without_algorithm():
    head, body = (encode(json.dumps(part).encode()) for part in ({"kid": "first"}, make_claims()))
    return f"{head}.{body}."


@pytest.mark.parametrize("secret", [public_pem(rsa_key()), KEYS[0]["n"].encode(), b"s3cret"])
def test_no_public_value_works_as_the_key_of_an_hmac(secret):
    with pytest.raises(BadToken, match="algorithm"):
        verify(sign_token(make_claims(), secret, alg="HS256"))


def test_a_symmetric_key_that_the_provider_publishes_is_never_used():
    keys = [{"kty": "oct", "k": encode(b"k" * 32), "kid": "first"}]
    with pytest.raises(BadToken, match="algorithm"):
        verify(sign_token(make_claims(), b"k" * 32, alg="HS256"), keys)
    with pytest.raises(UnknownKey):
        verify(sign_token(make_claims(), rsa_key()), keys)


def test_a_key_that_the_token_brings_is_not_used():
    other = rsa_key("other")
    for brought in ({"jwk": public_jwk(other)}, {"jku": "http://127.0.0.1:1/keys"}, {"x5u": "http://127.0.0.1:1/x"}):
        with pytest.raises(BadToken, match="signature"):
            verify(sign_token(make_claims(), other, **brought))
    with pytest.raises(UnknownKey):
        verify(sign_token(make_claims(), other, kid="other", jwk=public_jwk(other, "other")))


def test_what_is_critical_and_unknown_is_refused():
    assert verify(sign_token(make_claims(), rsa_key(), extra="harmless")).subject == "ada-1"
    with pytest.raises(BadToken):
        verify(sign_token(make_claims(), rsa_key(), crit=["extra"], extra="harmful"))


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": ISSUER + "/"},  # the issuer is compared to the letter
        {"iss": ISSUER.upper()},
        {"iss": [ISSUER]},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": ["another-client"]},
        {"aud": []},
        {"aud": None},
        {"aud": f"{CLIENT} "},
        {"aud": [CLIENT, "another-client"]},  # several, and nobody is said to be the one it is for
        {"aud": [CLIENT, "another-client"], "azp": "another-client"},
        {"azp": "another-client"},
        {"exp": NOW - SKEW},
        {"exp": None},
        {"exp": str(NOW + 300)},
        {"exp": float("nan")},
        {"exp": True},
        {"iat": NOW + SKEW + 1},
        {"iat": None},
        {"nbf": NOW + SKEW + 1},
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": [NONCE]},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["ada-1"]},
        {"sub": "ada-1\n"},
        {"sub": "a" * 501},
    ],
    ids=str,
)
def test_each_claim_must_be_right(changed):
    with pytest.raises(BadToken, match=r"claim|signature"):  # NaN is not JSON, so nothing was signed
        verify(sign_token(make_claims(**changed), rsa_key()))


@pytest.mark.parametrize(
    "changed",
    [{"aud": [CLIENT]}, {"aud": [CLIENT, "another"], "azp": CLIENT}, {"exp": NOW - SKEW + 1}, {"iat": NOW + SKEW}],
    ids=str,
)
def test_what_the_standard_and_the_skew_allow_is_taken(changed):
    assert verify(sign_token(make_claims(**changed), rsa_key())).subject == "ada-1"


@pytest.mark.parametrize("verified", [False, None, "true", 1, [True]])
def test_an_address_that_is_not_verified_is_no_address(verified):
    token = sign_token(make_claims(email="ada@example.org", email_verified=verified), rsa_key())
    assert verify(token).email == ""
    token = sign_token(make_claims(email="ada@example.org", email_verified=True), rsa_key())
    assert verify(token).email == "ada@example.org"


def test_keys_are_chosen_by_identifier_and_purpose():
    first, other = public_jwk(rsa_key(), "a"), public_jwk(rsa_key("other"), "b")
    token = sign_token(make_claims(), rsa_key("other"), kid="b")
    assert verify(token, [first, other]).subject == "ada-1"
    for wrong in ({"use": "enc"}, {"alg": "RS512"}, {"kty": "EC"}):
        with pytest.raises(UnknownKey):
            verify(token, [first, {**other, **wrong}])
    with pytest.raises(BadToken, match="ambiguous"):  # two keys of one name
        verify(token, [{**first, "kid": "b"}, other])
    unnamed = sign_token(make_claims(), rsa_key("other"), kid=None)
    assert verify(unnamed, [other]).subject == "ada-1"
    with pytest.raises(BadToken, match="ambiguous"):  # none is tried out
        verify(unnamed, [first, other])


def test_short_and_damaged_keys_are_refused():
    weak = rsa_key("weak", 1024)
    with pytest.raises(BadToken, match="key"):
        verify(sign_token(make_claims(), weak), [public_jwk(weak)])
    for damaged in ({"n": ""}, {"n": "%%"}, {"e": "AA"}):
        with pytest.raises(BadToken, match=r"key|signature"):
            verify(sign_token(make_claims(), rsa_key()), [{**public_jwk(rsa_key()), **damaged}])


@pytest.mark.parametrize("key", [rsa_key(), ec_key()], ids=["RSA", "EC"])
@pytest.mark.parametrize(
    "value", ["", "bogus", "AA", "%%", "\ud800", "\N{SNOWMAN}", "A" * 5000, None, 7, True, [1], {}]
)
def test_no_value_in_a_key_is_more_than_a_refusal(key, value):
    algorithm, good = ("ES256" if key is ec_key() else "RS256"), public_jwk(key)
    token = sign_token(make_claims(), key, alg=algorithm)
    for name in set(good) - {"kty", "kid"}:
        with pytest.raises(BadToken, match=r"key|signature"):
            verify(token, [{**good, name: value}])
        with pytest.raises(BadToken, match=r"key|signature"):
            verify(token, [{other: good[other] for other in good if other != name}])
    for name in ("kty", "kid", "use", "alg"):
        with pytest.raises(UnknownKey):
            verify(token, [{**good, name: value}])


def test_a_curve_belongs_to_its_algorithm():
    token = sign_token(make_claims(), ec_key(), alg="ES256")
    for curve in ("P-384", "P-521", "secp256k1", "p-256"):
        with pytest.raises(BadToken, match="damaged key"):
            verify(token, [{**public_jwk(ec_key()), "crv": curve}])
    for algorithm in ("ES384", "ES512"):
        with pytest.raises(BadToken, match="damaged key"):
            verify(sign_token(make_claims(), ec_key(), alg=algorithm), [public_jwk(ec_key())])


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "e30.e30.",
        "\N{SNOWMAN}.a.b",
        "a" * 70_000,
        f"{encode(b'[' * 5000)}.e30.e30",  # deeper than a parser goes
        f"{encode(b'7')}.e30.e30",
    ],
    ids=lambda each: each[:12],
)
def test_what_is_no_token_is_refused(token):
    with pytest.raises(BadToken):
        verify(token)


def test_a_reason_repeats_nothing_of_a_token():
    for changed in ({"iss": "https://evil.example"}, {"nonce": "stolen"}, {"aud": "elsewhere"}):
        with pytest.raises(BadToken) as caught:
            verify(sign_token(make_claims(**changed), rsa_key()))
        assert caught.value.reason == f"its claim {next(iter(changed))}"
