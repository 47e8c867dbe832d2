"""What a session was opened with, and whether it still lets in."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.serve.authentication import Authenticator
from tacit.serve.credentials import ScramVerifier
from tacit.serve.pgwire.sqlstate import FORBIDDEN, WireError


@dataclass(frozen=True)
class WireCredential:
    """A name, and the verifier that its password was checked against.

    It is the one that SCRAM ran with, not the one that is there afterwards: a login that was begun with an old password
    and ended after the rotation opens nothing.
    """

    authenticator: Authenticator
    name: str
    verifier: ScramVerifier

    def check(self) -> None:
        """End the session of someone who was let out, or whose password was changed, since they came in."""
        if self.authenticator.verifier(self.name) == self.verifier:
            return
        if self.authenticator.person(self.name) is None:
            raise WireError(FORBIDDEN, f"{self.name} is let in no longer", "ask the data owner", fatal=True)
        what = f"the password of {self.name} was changed"
        raise WireError(FORBIDDEN, what, "connect again with the new password", fatal=True)
