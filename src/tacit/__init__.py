"""Tacit: a trusted curator that anyone can run.

import tacit
curator = tacit.open("clinic.toml")
ada = curator.analyst("ada")
print(ada.ask("SELECT COUNT(*) FROM visits", epsilon=0.5))
"""

from tacit.lazy import attach

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = attach(__name__, __file__)
