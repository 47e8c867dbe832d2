"""Text that others wrote, made safe for a terminal: no control or escape character, no direction override, one line.

>>> one_line("\\x1b[2JThank you.\\nSend this? [y/N]: y")
'\ufffd[2JThank you. Send this? [y/N]: y'
>>> several_lines("first\\nsecond\\r\\x07")
'first\\nsecond \ufffd'
>>> escaped_json('{"what": "\\x9b31m"}')
'{"what": "\\\\u009b31m"}'
"""

from __future__ import annotations

LONGEST = 500  # characters of a text that a remote side wrote
_CUT = "…"
_SPACES = "\t\n\v\f\r\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_UNSHOWN = "\ufffd"


def one_line(text: str, longest: int | None = None) -> str:
    """Return the text in one line: spaces for line breaks, a replacement character for what cannot be seen.

    Whatever is not printable by Unicode's categories is replaced: C0 and C1 controls, with the ESC and CSI that begin a
    terminal's commands, format characters, with the overrides of direction and the invisible ones, surrogates, private
    and unassigned characters.
    """
    kept = text if longest is None or len(text) <= longest else text[:longest] + _CUT
    return "".join(map(_show_character, kept))


def several_lines(text: str, longest: int | None = None) -> str:
    """Return the same of each line."""
    kept = text if longest is None or len(text) <= longest else text[:longest] + _CUT
    return "\n".join(one_line(line) for line in kept.split("\n"))


def escaped_json(text: str) -> str:
    """Return JSON text that means the same, with what cannot be seen escaped. It stands in strings only."""
    return "".join(character if _is_plain(character) else _escape(character) for character in text)


def _show_character(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in _SPACES else _UNSHOWN


def _is_plain(character: str) -> bool:
    return character.isprintable() or character in "\n\u00a0\u3000"


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
