"""What a session was opened with, and whether it still lets in."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.serve.door import Door
from tacit.serve.people import Verifier
from tacit.serve.pgwire.words import FORBIDDEN, Complaint


@dataclass(frozen=True)
class Credential:
    """A name, and the verifier that its password was checked against.

    It is the one that SCRAM ran with, not the one that is there afterwards: a login that was begun with an old password
    and ended after the rotation opens nothing.
    """

    door: Door
    name: str
    verifier: Verifier

    def check(self) -> None:
        """End the session of someone who was let out, or whose password was changed, since they came in."""
        if self.door.person(self.name) is None:
            raise Complaint(FORBIDDEN, f"{self.name} is let in no longer", "ask the data owner", fatal=True)
        if self.door.verifier(self.name) != self.verifier:
            what = f"the password of {self.name} was changed"
            raise Complaint(FORBIDDEN, what, "connect again with the new password", fatal=True)
