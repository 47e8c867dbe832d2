"""SCRAM, against the example of RFC 7677 and against those who cheat."""

from __future__ import annotations

import base64
import hmac

import pytest

from tacit.serve.credentials import ScramVerifier
from tacit.serve.pgwire.scram import SCRAM, SCRAM_PLUS, ScramExchange
from tacit.serve.pgwire.sqlstate import WireError

# RFC 7677, section 3: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
ANSWER = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
UNPROVED = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
PROOF = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def exchange(binding: bytes | None = None) -> ScramExchange:
    verifier = ScramVerifier.of("pencil", SALT, 4096)
    return ScramExchange(verifier, binding, nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")


def test_the_example_of_rfc_7677_comes_out():
    login = exchange()
    assert login.first(SCRAM, FIRST) == ANSWER
    assert login.final(UNPROVED + b",p=" + PROOF) == SIGNATURE


def test_another_proof_is_wrong():
    login = exchange()
    login.first(SCRAM, FIRST)
    other = base64.b64encode(bytes([base64.b64decode(PROOF)[0] ^ 1]) + base64.b64decode(PROOF)[1:])
    assert login.final(UNPROVED + b",p=" + other) is None


@pytest.mark.parametrize("proof", [b"", b"AA==", base64.b64encode(b"\0" * 64)])
def test_a_proof_of_another_length_is_wrong(proof):
    login = exchange()
    login.first(SCRAM, FIRST)
    assert login.final(UNPROVED + b",p=" + proof) is None


@pytest.mark.parametrize(
    "message",
    [b"", b"n", b"n,,", b"n,,n=,r=", b"n,a=eve,n=,r=abcdefghijkl", b"p=tls-unique,,n=,r=abcdefghijkl", b"\xff"],
)
def test_a_first_message_that_cannot_be_read_ends_it(message):
    with pytest.raises(WireError) as error:
        exchange().first(SCRAM, message)
    assert error.value.fatal


def test_the_nonce_must_be_that_of_both():
    login = exchange()
    login.first(SCRAM, FIRST)
    with pytest.raises(WireError):
        login.final(b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=" + PROOF)


def test_channel_binding_is_offered_with_a_certificate_and_checked():
    login = exchange(binding=b"hash")
    assert login.mechanisms == (SCRAM_PLUS, SCRAM)
    login.first(SCRAM_PLUS, b"p=tls-server-end-point,," + FIRST[3:])
    right = base64.b64encode(b"p=tls-server-end-point,,hash")
    other = base64.b64encode(b"p=tls-server-end-point,,hush")
    nonce = UNPROVED.removeprefix(b"c=biws")
    assert login.final(b"c=" + right + nonce + b",p=" + PROOF) is None  # bound to the channel, so another proof is due
    with pytest.raises(WireError):
        login.final(b"c=" + other + nonce + b",p=" + PROOF)


def test_somebody_who_takes_the_offer_of_binding_away_is_noticed():
    # "y" says: I could bind, and the server did not offer it
    with pytest.raises(WireError, match="binding"):
        exchange(binding=b"hash").first(SCRAM, b"y" + FIRST[1:])
    assert exchange().first(SCRAM, b"y" + FIRST[1:]) == ANSWER


def test_the_same_work_is_done_for_the_right_password_a_wrong_one_and_nobody(monkeypatch):
    work = []
    for name in ("digest", "compare_digest"):
        real = getattr(hmac, name)
        monkeypatch.setattr(hmac, name, lambda *given, name=name, real=real: (work.append(name), real(*given))[1])
    done = []
    made_up = ScramExchange(
        ScramVerifier(SALT, 4096, b"\0" * 32, b"\0" * 32), nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    for login, proof in ((exchange(), PROOF), (exchange(), base64.b64encode(b"\0" * 32)), (made_up, PROOF)):
        work.clear()
        login.first(SCRAM, FIRST)
        login.final(UNPROVED + b",p=" + proof)
        done.append(tuple(work))
    assert done[0] == done[1] == done[2] == ("digest", "compare_digest", "digest")
