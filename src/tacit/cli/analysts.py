"""`tacit analyst`: who may come in to a served curator, and with which key."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import DEFAULT_POLICY, JsonOption, PolicyOption, complete_from
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.policy.model import Policy
    from tacit.serve.credentials import IssuedSecrets, Role

app = typer.Typer(help="Let people in to a served curator, and out again.", no_args_is_help=True)
_ROLES = ("analyst", "auditor", "owner")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Their name; an analyst's is the one in the policy.")]


@app.command()
def add(
    name: Name,
    role: Annotated[
        str,
        typer.Option(
            "--role", help="analyst, auditor or owner.", metavar="ROLE", autocompletion=complete_from(*_ROLES)
        ),
    ] = _ROLES[0],
    policy: PolicyOption = DEFAULT_POLICY,
    as_json: JsonOption = False,
) -> None:
    """Let someone in; prints their key and their password, once."""
    from tacit.serve import credentials

    loaded, path = _load(policy)
    chosen = _parse_role(role)
    if chosen is credentials.Role.ANALYST and loaded.analyst(name) is None:
        fix = f"give them a budget in {policy.name} first: [analysts.{name}]"
        raise ParameterError("name", f"the policy has no analyst {name}", fix=fix)
    _print_secrets(name, str(chosen), credentials.add_credential(path, name, chosen), as_json)


@app.command()
def rotate(name: Name, policy: PolicyOption = DEFAULT_POLICY, as_json: JsonOption = False) -> None:
    """Give someone a new key and a new password; the old ones open nothing from now on."""
    from tacit.serve import credentials

    _, path = _load(policy)
    made = credentials.rotate_credential(path, name)
    record = credentials.read_credentials(path).find(name)
    _print_secrets(name, str(record.role) if record else "", made, as_json)


@app.command()
def revoke(name: Name, policy: PolicyOption = DEFAULT_POLICY) -> None:
    """Let someone in no longer. What they spent stays in the ledger."""
    from tacit.serve import credentials

    credentials.revoke_credential(_load(policy)[1], name)
    typer.echo(f"{name} is let in no longer. A server that runs has noticed.")


@app.command()
def link(
    name: Name,
    subject: Annotated[
        str, typer.Option("--subject", help="Their `sub` at the provider, which never changes.", metavar="TEXT")
    ] = "",
    email: Annotated[
        str, typer.Option("--email", help="In its place, an address that the provider verifies.", metavar="TEXT")
    ] = "",
    issuer: Annotated[
        str, typer.Option("--issuer", help="The provider's issuer; else TACIT_OIDC_ISSUER.", metavar="URL")
    ] = "",
    policy: PolicyOption = DEFAULT_POLICY,
) -> None:
    """Let someone sign in to the console with their account at an identity provider."""
    from tacit.serve import credentials
    from tacit.serve.openid.configuration import ISSUER

    own = shlex.quote(name)
    if bool(subject) == bool(email):
        fix = f"tacit analyst link {own} --subject SUBJECT"
        raise ParameterError("subject", "exactly one of --subject and --email is needed", fix=fix)
    claim = credentials.IdentityClaim.SUBJECT if subject else credentials.IdentityClaim.EMAIL
    given = f"--subject={shlex.quote(subject)}" if subject else f"--email={shlex.quote(email)}"
    configured = os.environ.get(ISSUER, "")
    place = issuer or configured
    if configured and place != configured:
        what = f"{place} would never match, since {ISSUER} is {configured}, and issuers are compared to the letter"
        fix = f"tacit analyst link {own} --issuer {shlex.quote(configured)} {given}"
        if policy != DEFAULT_POLICY:
            fix += f" --policy {shlex.quote(str(policy))}"
        raise ParameterError("issuer", what, fix=fix)
    if not place:
        fix = f"tacit analyst link {own} --issuer https://login.example.org {given}"
        raise ParameterError("issuer", "is missing: a subject is one of its issuer only", fix=fix)
    identity = credentials.LinkedIdentity(place, claim, subject or email)
    credentials.link_identity(_load(policy)[1], name, identity)
    typer.echo(f"{name} signs in to the console as {identity}. A server that runs has noticed.")


@app.command()
def unlink(name: Name, policy: PolicyOption = DEFAULT_POLICY) -> None:
    """Let someone sign in with an identity provider no longer. Their key and their password stay."""
    from tacit.serve import credentials

    credentials.unlink_identity(_load(policy)[1], name)
    typer.echo(f"{name} is linked to no identity. Sessions that one opened are over.")


@app.command(name="list")
def list_credentials(policy: PolicyOption = DEFAULT_POLICY, as_json: JsonOption = False) -> None:
    """Show who is let in, as what, since when, and what they may name where that is not everything."""
    from tacit.serve import credentials

    loaded, path = _load(policy)
    rows = [
        {
            "name": record.name,
            "role": str(record.role),
            "key": f"{credentials.PREFIX}{record.key_id}_...",
            "since": record.since,
            "in_policy": loaded.analyst(record.name) is not None,
            "access": _access_to_dict(loaded, record.name),
            "identity": None if record.identity is None else str(record.identity),
        }
        for record in credentials.read_credentials(path).records
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for row in rows:
        missing = "" if row["in_policy"] or row["role"] != _ROLES[0] else "  not in the policy: not let in"
        declared = loaded.analyst(str(row["name"]))
        linked = "" if row["identity"] is None else f"  linked to {row['identity']}"
        named = "" if declared is None or declared.access is None else f"  may name {declared.access}"
        typer.echo(f"{row['name']:<16}  {row['role']:<8}  {row['key']}  since {row['since']}{missing}{named}{linked}")
    if not rows:
        typer.echo("Nobody is let in. tacit analyst add NAME")


def _access_to_dict(policy: Policy, name: str) -> dict[str, list[str]] | None:
    """The columns of each table that someone may name; None where it is all of them."""
    declared = policy.analyst(name)
    if declared is None or declared.access is None:
        return None
    return {table.name: [column.name for column in table.columns] for table in policy.asked_by(name).tables}


def _load(policy: Path) -> tuple[Policy, Path]:
    from tacit.policy.load import load
    from tacit.serve.credentials import credentials_path

    return load(policy), credentials_path(policy.absolute())


def _parse_role(role: str) -> Role:
    from tacit.serve.credentials import Role

    if role not in _ROLES:
        raise ParameterError("role", f"there is no role {role}", fix=f"choose {', '.join(_ROLES)}")
    return Role(role)


def _print_secrets(name: str, role: str, made: IssuedSecrets, as_json: bool) -> None:
    if as_json:
        values = {"name": name, "role": role, "key": made.key, "password": made.password}
        typer.echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{name} is let in, as {role}. This is shown once:")
    typer.echo(f"  key       {made.key}")
    typer.echo(f"  password  {made.password}")
    typer.echo("The key is for HTTP and tacit.connect, the password for psql and the console.")
