"""A corpus of hostile data: files and frames that must end in a documented reading or in the owner's error.

Each case writes its data into a folder; `tests/curator/test_hostile_files.py` puts it through the public API. The cases
are in `tests/support/hostile`, a module for each subject.
"""

from __future__ import annotations

from tests.support.hostile.broken import broken_files, changed_while_open, wrong_statistics
from tests.support.hostile.case import Case
from tests.support.hostile.databases import macros, views_and_tables_of_duckdb
from tests.support.hostile.folders import matched_keys, paths, units_of_unlike_types, unlike_files
from tests.support.hostile.frames import frames
from tests.support.hostile.names import names
from tests.support.hostile.stored_types import stored_types
from tests.support.hostile.texts import texts, unreadable_texts
from tests.support.hostile.values import dates, many_rows_of_a_unit, numbers, zero_rows

_SUBJECTS = (
    unreadable_texts,
    texts,
    unlike_files,
    units_of_unlike_types,
    matched_keys,
    paths,
    views_and_tables_of_duckdb,
    macros,
    numbers,
    dates,
    many_rows_of_a_unit,
    zero_rows,
    names,
    broken_files,
    wrong_statistics,
    changed_while_open,
    frames,
    stored_types,
)

# One or a few of each rule: what is quick enough for every run.
_EVERY_DAY = """
    parquet-byte-dictionary-first-group-column
    parquet-byte-plain-later-group-column
    parquet-byte-unit parquet-byte-undeclared parquet-byte-through
    parquet-name-not-utf8 csv-bad-text-late-row csv-utf16
    texts-parquet texts-as-unit-duckdb
    folder-text-second folder-missing-second folder-zero-rows-text-second
    folder-empty-file folder-hive
    one-person-int-text one-person-decimal-scales
    path-partition-key-parquet path-partition-unit-csv path-brackets
    view-cast view-error view-division view-valid
    collation-nocase-key collation-nocase-unit collation-nocase-undeclared collation-nocase-unique-public
    generated-virtual macro-floor
    floats-parquet floats-csv floats-never-missing integers-duckdb integers-csv
    dates-parquet dates-infinite many-rows-parquet
    zero-rows-parquet zero-columns
    name-quote-parquet name-newline-csv name-hash-unit name-semicolon-duckdb
    names-twice-parquet names-cased-unit-parquet names-twice-pandas names-empty-csv
    parquet-truncated-half parquet-damaged-50 duckdb-truncated-half duckdb-truncated-end duckdb-damaged-65
    empty-file-parquet empty-file-duckdb no-such-file csv-named-parquet
    csv-late-short-row csv-late-long-row csv-late-unclosed-quote csv-nul-in-text
    csv-header-twice csv-late-bad-number csv-dates-and-bools
    statistics-of-a-number
    parquet-replaced-while-open parquet-deleted-while-open csv-deleted-while-open
    duckdb-truncated-while-open view-overwritten-while-open
    frame-objects-surrogates frame-categorical-text frame-nullable-uint frame-arrow-chunked
    frame-arrow-sliced frame-arrow-dictionary frame-arrow-dictionary-beyond frame-arrow-dictionary-bad-text
    frame-arrow-bad-text frame-arrow-null-type
    types-together times-together unit-types-together
"""


def corpus(full: bool) -> list[Case]:
    """All cases, or those of every day."""
    cases = {case.name: case for subject in _SUBJECTS for case in subject()}
    return list(cases.values()) if full else [cases[name] for name in _EVERY_DAY.split()]
