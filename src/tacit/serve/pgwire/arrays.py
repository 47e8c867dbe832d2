"""PostgreSQL's arrays as clients send them: the bytes of their items, in text and in binary.

>>> read_text_array(b'{a, "b, c",NULL,"NULL"}')
[b'a', b'b, c', None, b'NULL']
>>> read_text_array(b"{}")
[]
"""

from __future__ import annotations

import struct

from tacit.serve.pgwire.sqlstate import BAD_TEXT, TOO_MUCH, WireError

_MOST_ITEMS = 10_000
_SPACES = b" \t\n\r\v\f"
_WRONG = "a parameter is not an array of one dimension"
_HINT = "give a list: '{a,b}'"


def read_binary_array(data: bytes, element: int) -> list[bytes | None]:
    """The items of an array of one dimension, or of none, in binary."""
    try:
        dimensions, _, kind = struct.unpack_from(">iiI", data)
        if dimensions == 0 and len(data) == 12:
            return []
        count, _ = struct.unpack_from(">ii", data, 12)
        if dimensions != 1 or kind != element or not 0 <= count <= len(data):
            raise _array_error()
        _check_count(count)
        items: list[bytes | None] = []
        at = 20
        for _ in range(count):
            (size,) = struct.unpack_from(">i", data, at)
            at += 4
            if size < 0:
                items.append(None)
                continue
            if at + size > len(data):
                raise _array_error()
            items.append(data[at : at + size])
            at += size
    except struct.error:
        raise _array_error() from None
    if at != len(data):
        raise _array_error()
    return items


def read_text_array(data: bytes) -> list[bytes | None]:
    """The items of an array of one dimension as text: items with commas, in quotes where they need them."""
    text = data.strip(_SPACES)
    if text[:1] != b"{" or text[-1:] != b"}" or len(text) < 2:
        raise _array_error()
    inner = text[1:-1].strip(_SPACES)
    items: list[bytes | None] = []
    at = 0
    while inner:
        item, at = _read_item(inner, at)
        items.append(item)
        _check_count(len(items))
        if at == len(inner):
            break
        at += 1  # the comma
    return items


def _read_item(text: bytes, at: int) -> tuple[bytes | None, int]:
    """The item that starts at a place, and where the comma behind it is, or the end."""
    while at < len(text) and text[at] in _SPACES:
        at += 1
    if text[at : at + 1] == b'"':
        return _read_quoted(text, at + 1)
    item = bytearray()
    last = 0  # where the item ends without spaces behind it
    while at < len(text) and text[at] != ord(","):
        if text[at] in b'{}"':
            raise _array_error()
        escaped = text[at] == ord("\\")
        at += escaped
        if at == len(text):
            raise _array_error()
        item.append(text[at])
        if escaped or text[at] not in _SPACES:
            last = len(item)
        at += 1
    if not last:
        raise _array_error()
    found = bytes(item[:last])
    return (None if found.upper() == b"NULL" else found), at


def _read_quoted(text: bytes, at: int) -> tuple[bytes, int]:
    item = bytearray()
    while at < len(text) and text[at] != ord('"'):
        at += text[at] == ord("\\")
        item += text[at : at + 1]
        at += 1
    at += 1
    while at < len(text) and text[at] in _SPACES:
        at += 1
    if at > len(text) or (at < len(text) and text[at] != ord(",")):
        raise _array_error()
    return bytes(item), at


def _check_count(count: int) -> None:
    if count > _MOST_ITEMS:
        raise WireError(TOO_MUCH, f"a list has more than {_MOST_ITEMS:,} items", "give a shorter one")


def _array_error() -> WireError:
    return WireError(BAD_TEXT, _WRONG, _HINT)
