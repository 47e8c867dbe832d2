"""`tacit serve`: the curator for psql, scripts and people."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, PolicyOption, complete_from
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.serve.tls import Certificate

_SIGN_IN = ("any", "oidc")


def serve(
    policy: PolicyOption = DEFAULT_POLICY,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    http: Annotated[int, typer.Option(help="HTTP; 0 takes any free port.", metavar="PORT")] = 8080,
    postgres: Annotated[int, typer.Option(help="PostgreSQL; the same.", metavar="PORT")] = 5433,
    no_http: Annotated[bool, typer.Option("--no-http", help="Do not speak HTTP.")] = False,
    no_postgres: Annotated[bool, typer.Option("--no-postgres", help="Do not speak PostgreSQL.")] = False,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate in PEM, with its chain.", metavar="FILE")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of that certificate.", metavar="FILE")] = None,
    tls_self: Annotated[bool, typer.Option("--tls-self", help="Make a certificate, beside the policy.")] = False,
    behind_proxy: Annotated[
        bool, typer.Option("--insecure-behind-proxy", help="Accept plain connections: a proxy in front speaks TLS.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Questions that run at a time.")] = 4,
    seats: Annotated[int, typer.Option(help="Questions that run or wait; more are refused as busy.")] = 64,
    rate: Annotated[float, typer.Option(help="Requests a second of one person.")] = 50.0,
    cells: Annotated[int, typer.Option(help="The most values of an answer, groups by columns.")] = 100_000,
    fit_rows: Annotated[
        int, typer.Option(help="Models are fitted to about so many rows: a public number.", metavar="ROWS")
    ] = 200_000,
    time_limit: Annotated[
        float, typer.Option(help="Seconds that the engine may work on a question.", metavar="SECONDS")
    ] = 300.0,
    postgres_programs: Annotated[
        Path | None,
        typer.Option(
            help="PostgreSQL's own programs, for statements about the catalog; otherwise those of the extra `catalog`.",
            metavar="FOLDER",
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="A proxy whose X-Forwarded-For is believed; may be given often.", metavar="ADDRESS"),
    ] = None,
    proxy_protocol: Annotated[
        bool, typer.Option("--proxy-protocol", help="These proxies speak the PROXY protocol before PostgreSQL's.")
    ] = False,
    alert_at: Annotated[
        list[float] | None,
        typer.Option(
            help="The share of a budget at whose spending the owner is alerted; may be given often. Else 0.8 and 0.95.",
            metavar="SHARE",
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(help="The address that browsers use; an identity provider sends them back to it.", metavar="URL"),
    ] = None,
    sign_in: Annotated[
        str,
        typer.Option(
            help="How people sign in to the console: any, or oidc for the identity provider alone.",
            metavar="HOW",
            autocompletion=complete_from(*_SIGN_IN),
        ),
    ] = "any",
) -> None:
    """Serve the curator over HTTP and the PostgreSQL wire, until Ctrl-C or SIGTERM."""
    from tacit.serve.addresses import networks_of
    from tacit.serve.alert_webhook import AlertWebhook
    from tacit.serve.budget_alerts import THRESHOLDS
    from tacit.serve.credentials import credentials_path, read_credentials
    from tacit.serve.openid.configuration import OpenIdConfiguration
    from tacit.serve.server import ListenAddresses, ServerConfig, run_server

    for name, value, least, most in (
        ("http", http, 0, 65535),
        ("postgres", postgres, 0, 65535),
        ("workers", workers, 1, 256),
        ("seats", seats, 1, 10**6),
        ("rate", rate, 0.001, 10**6),
        ("cells", cells, 1, 10**8),
        ("fit-rows", fit_rows, 1, 10**10),
        ("time-limit", time_limit, 0.1, 10**6),
        *(("alert-at", share, 0.01, 1) for share in alert_at or ()),
    ):
        if not least <= value <= most:
            fix = f"--{name} takes a number from {least:g} to {most:,}"
            raise ParameterError(name, f"{value:g} is out of range", fix=fix)
    if sign_in not in _SIGN_IN:
        raise ParameterError("sign-in", f"there is no sign-in {sign_in[:60]!r}", fix="--sign-in any, or --sign-in oidc")
    settings = ServerConfig(
        host=host,
        http=None if no_http else http,
        postgres=None if no_postgres else postgres,
        certificate=load_certificate(policy, host, tls_cert, tls_key, tls_self),
        proxied=behind_proxy,
        workers=workers,
        seats=max(workers, seats),
        rate=rate,
        cells=cells,
        fit_rows=fit_rows,
        limit=time_limit,
        proxies=networks_of(proxy or []),
        proxy_protocol=proxy_protocol,
        postgres_programs=postgres_programs,
        alert_at=tuple(sorted({Fraction(str(share)) for share in alert_at})) if alert_at else THRESHOLDS,
        webhook=AlertWebhook.from_environment(),
        openid=OpenIdConfiguration.from_environment(public_url),
        passwords=sign_in != "oidc",
    )

    def ready(listening: ListenAddresses) -> None:
        for place in (listening.http, listening.postgres):
            if place:
                typer.echo(f"Listening on {place}")
        if tls_self and settings.certificate is not None:
            made = settings.certificate
            typer.echo(f"Certificate {made.certificate}, SHA-256 {made.fingerprint}")
            typer.echo('Analysts need its file: cafile="..." in Python, --cafile, or sslrootcert=... in psql.')
        if settings.openid is not None and listening.http:
            typer.echo(f"Sign-in with {settings.openid.host}; its redirect URI is {settings.openid.redirect_uri}")
        if not read_credentials(credentials_path(policy.absolute())).records:
            typer.echo(f"Nobody may come in yet: tacit analyst add NAME -p {policy}")
        typer.echo("Stop with Ctrl-C.")

    run_server(policy, settings, ready)
    typer.echo("Stopped.")


def load_certificate(
    policy: Path, host: str, tls_cert: Path | None, tls_key: Path | None, tls_self: bool
) -> Certificate | None:
    """The certificate that the options name, or one made here; None without TLS."""
    from tacit.serve.tls import Certificate, load_self_signed

    if (tls_cert is None) != (tls_key is None):
        raise ParameterError("tls", "a certificate needs its key", fix="name both: --tls-cert FILE --tls-key FILE")
    if tls_cert is not None and tls_key is not None:
        if tls_self:
            raise ParameterError("tls", "there are two certificates", fix="leave out --tls-self")
        return Certificate(tls_cert, tls_key)
    return load_self_signed(policy.absolute(), host) if tls_self else None
