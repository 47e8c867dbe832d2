"""Sign-in with an identity provider in a browser, against a provider that others wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import httpx
import pytest
from tests.support.browser import NARROW, WIDE, chromium, least_contrast, watch
from tests.support.counts import some
from tests.support.ports import find_free_port

from tacit.serve import credentials
from tacit.serve.credentials import IdentityClaim, LinkedIdentity
from tacit.serve.openid.configuration import OpenIdConfiguration

pytestmark = pytest.mark.slow


USERS = (
    {"sub": "ada-at-work", "email": "ada@example.org", "email_verified": True},
    {"sub": "ben-at-work", "email": "ben@example.org", "email_verified": True},
    {"sub": "eve-at-work", "email": "ben@example.org", "email_verified": False},
)


@pytest.fixture(scope="module")
def issuer():
    """The provider as a process of its own, on another site than the console: localhost."""
    port = find_free_port()
    claims = [part for user in USERS for part in ("--user-claims", json.dumps(user))]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true", *claims]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        place = f"http://localhost:{port}"
        for _ in range(300):
            assert child.poll() is None
            try:
                httpx.get(f"{place}/jwks")
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield place
    finally:
        child.terminate()
        child.wait(30)


@pytest.fixture(scope="module")
def served(issuer, serving, make_clinic, tmp_path_factory):
    made = make_clinic(tmp_path_factory.mktemp("openid"))
    linked = {"ada": (IdentityClaim.SUBJECT, "ada-at-work"), "ben": (IdentityClaim.EMAIL, "ben@example.org")}
    for name, (claim, value) in linked.items():
        credentials.link_identity(made.people, name, LinkedIdentity(issuer, claim, value))
    port = find_free_port()
    openid = OpenIdConfiguration(issuer, "tacit", "any secret", f"https://127.0.0.1:{port}")
    with serving(made, http=port, postgres=None, openid=openid) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    elsewhere = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"  # the provider's styles
    with chromium("--ignore-certificate-errors", elsewhere) as opened:
        yield opened


@pytest.fixture(scope="module")
def window(browser, served):
    """The page of those who come one after the other: to start a browser anew is what takes longest."""
    context = browser.new_context(base_url=served.http, ignore_https_errors=True, viewport=WIDE)
    context.set_default_timeout(60_000)
    made = context.new_page()
    watch(made)
    yield made
    context.close()


@pytest.fixture
def page(window):
    """A page of someone who was not there before: a console and a provider know somebody by their cookies alone."""
    window.context.clear_cookies()
    window.set_viewport_size(WIDE)
    yield window
    window.emulate_media(color_scheme="null")
    window.goto("about:blank")
    assert not window.complaints


def sign_in(page, user):
    page.goto("/console/budget")
    page.get_by_role("link", name=re.compile("Sign in with localhost")).click()
    page.get_by_role("button", name=user).click()


@pytest.mark.parametrize(("user", "name"), some([("ada-at-work", "ada"), ("ben-at-work", "ben")], 2, first=1))
def test_a_linked_account_comes_back_to_the_page_it_wanted(page, served, user, name):
    sign_in(page, user)
    page.get_by_role("button", name="Sign out").wait_for()
    assert page.url == f"{served.http}/console/budget" and page.locator(".who").inner_text().startswith(name)
    cookies = {each["name"]: each for each in page.context.cookies()}
    assert cookies["__Host-tacit"]["sameSite"] == "Strict" and "__Host-tacit-oidc" not in cookies
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign out there too").wait_for()
    page.goto("/console/budget")
    assert "/console/sign-in" in page.url
    page.goto("/console/sign-in?signed-out=")
    page.get_by_role("link", name="Sign out there too").click()
    page.wait_for_url(re.compile("end_session"))


def test_it_works_without_scripts(browser, served):
    context = browser.new_context(base_url=served.http, ignore_https_errors=True, java_script_enabled=False)
    context.set_default_timeout(60_000)
    page = context.new_page()
    sign_in(page, "ada-at-work")
    page.get_by_role("button", name="Sign out").wait_for()
    context.close()


def test_an_account_that_is_not_linked_is_told_whom_to_ask(page, issuer, served):
    sign_in(page, "eve-at-work")
    page.get_by_role("heading", name="Not linked yet").wait_for()
    command = page.locator(".command").inner_text()
    assert command == f"tacit analyst link NAME --issuer {issuer} --subject=eve-at-work"
    assert "ben@example.org" not in page.content()  # an address that the provider did not verify
    assert least_contrast(page, "main *", skip_hidden=True) >= 4.5
    page.set_viewport_size(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_sign_in_that_is_denied_or_stale_offers_another(page, served):
    page.goto("/console/sign-in")
    page.get_by_role("link", name=re.compile("Sign in with localhost")).click()
    page.get_by_role("button", name=re.compile("deny", re.IGNORECASE)).click()
    page.locator(".refusal").wait_for()
    assert page.get_by_role("link", name=re.compile("Sign in with localhost")).is_visible()
    page.goto("/console/oidc/callback?code=x&state=y")
    assert "not begun in this browser" in page.locator(".refusal").inner_text()
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(served.clinic.secrets["ada"].password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_fits_and_can_be_read(page, size, scheme):
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)
    page.goto("/console/sign-in")
    assert least_contrast(page, "body *", skip_hidden=True) >= 4.5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("a.button").bounding_box()["height"] >= 44  # a finger's width
