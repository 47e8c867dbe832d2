"""The local model: people randomize what they send, and the collector estimates. Nobody need be trusted.

>>> from tacit.local import FrequencySummary, recommend_protocol
>>> from tacit.sampling.bits import ReplayBits
>>> protocol = recommend_protocol(domain=3, epsilon=2, users=1000).protocol
>>> reports = protocol.encode([0] * 700 + [2] * 300, ReplayBits(b"example"))  # each on its sender's machine
>>> found = FrequencySummary.empty(protocol).add(reports).estimate(confidence=0.95)
>>> bool((found.low <= [0.7, 0, 0.3]).all() and (found.high >= [0.7, 0, 0.3]).all())
True
"""

from tacit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
