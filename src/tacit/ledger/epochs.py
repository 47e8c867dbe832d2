"""Which data an epoch is: the ledger remembers it by a MAC, so that an epoch stays one state of the data.

**Rule.** For each table, an opening has an epoch that no earlier one exceeds, and a copy has the data that the first
copy of that epoch had. So all charges over copies under one epoch are about the same rows, and so are the answers that
are repeated. Of a table that is read live nothing is known: an answer of its epoch is repeated until the owner raises
that, whether it came from a server or from a copy.

The MAC is keyed with the ledger's own key: whoever reads the ledger cannot test guesses about the data with it. Where
the owner goes on with a new key (`ledger/recovery.py`), nothing can be compared with the MACs of before; the epochs are
known still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tacit.errors import ErrorCode, LedgerError


@dataclass(frozen=True)
class EpochSource:
    """The data of an opening: the owner's epoch, for each table the MAC of its source, and the policy's digest.

    A MAC is empty where the data is read from a server whenever it is asked about, and under another key: nothing is
    known of it. The digest
    is that of what questions mean (`Policy.digest`), and is empty in ledgers from before it was written down.
    """

    epoch: int = 0
    macs: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""

    @property
    def plain(self) -> dict[str, object]:
        """As plain values; nothing where no table is named."""
        if not self.macs:
            return {}
        return {"epoch": self.epoch, "sources": dict(self.macs), **({"policy": self.policy} if self.policy else {})}

    @property
    def without_macs(self) -> EpochSource:
        """What is known of it under another key: the tables and their epoch."""
        return replace(self, macs=dict.fromkeys(self.macs, ""))


NO_SOURCE = EpochSource()


def check_epoch(known: Iterable[EpochSource], now: EpochSource) -> None:
    """Raise LedgerError where an opening is of an epoch that is over, or is not of the epoch's data."""
    macs = _by_lower_name(now)
    shared = [
        (earlier.epoch, table, before)
        for earlier in known
        for table, before in _by_lower_name(earlier).items()
        if table in macs
    ]
    for epoch, table, _ in sorted(shared, reverse=True):
        if epoch > now.epoch:
            what = f"epoch {now.epoch} of {table} is over: it was opened with epoch {epoch}"
            fix = f"epochs only rise: write epoch = {epoch} under [data], or a larger one for other data"
            fix += "; if the policy was edited meanwhile, open it again"
            raise LedgerError(ErrorCode.LEDGER_EPOCH, what, fix=fix)
    for epoch, table, before in shared:
        if epoch == now.epoch and before and macs[table] and before != macs[table]:
            what = f"the data of {table} is not the data with which epoch {epoch} began"
            fix = f"write epoch = {epoch + 1} under [data], or put the former data back"
            raise LedgerError(ErrorCode.LEDGER_EPOCH, what, fix=fix)


def _by_lower_name(source: EpochSource) -> dict[str, str]:
    """The tables as SQL reads their names, in upper and lower case alike."""
    return {table.lower(): mac for table, mac in source.macs.items()}
