"""Optional dependencies: the name under which Tacit is installed, and the error where an extra is missing.

The distribution is called `tacit-dp`; `tacit` on the package index is another project. Import and command are `tacit`.

>>> print(install_command("serve"))
pip install 'tacit-dp[serve]'
"""

from __future__ import annotations

from tacit.errors import ParameterError

DISTRIBUTION = "tacit-dp"


def install_command(extra: str) -> str:
    """Return the command that installs Tacit with an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing_extra(extra: str, feature: str, package: str) -> ParameterError:
    """Return the error of a feature whose package is not installed."""
    return ParameterError(extra, f"{feature} needs {package}, which is not installed", fix=install_command(extra))
