from tacit.analyst import Analyst as Analyst
from tacit.answers.answer import Answer as Answer
from tacit.client.connect import connect as connect
from tacit.curator.curator import Curator as Curator
from tacit.curator.curator import open as open
from tacit.errors import DataError as DataError
from tacit.errors import Failed as Failed
from tacit.errors import LedgerError as LedgerError
from tacit.errors import ParameterError as ParameterError
from tacit.errors import PolicyError as PolicyError
from tacit.errors import Refused as Refused
from tacit.errors import TacitError as TacitError
from tacit.magic import load_ipython_extension as load_ipython_extension

__version__: str
