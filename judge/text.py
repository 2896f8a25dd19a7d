"""Text of unknown origin made safe for terminals, CSV and files.

Names and details can come from a submission: escape sequences could repaint the report, bidi
overrides could reverse it, a leading "=" would be run by a spreadsheet.
"""

from __future__ import annotations

import os
import re
import unicodedata

# Whole sequences go, else "[31m" would stay behind: CSI (ECMA-48 5.4), and OSC, DCS, SOS, PM and
# APC strings up to their terminator (BEL or ST). A string left open loses its introducer only.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
# The wide forms too: some spreadsheets fold them to ASCII.
_FORMULA_STARTS = tuple("=+-@＝＋－＠")
_CUT = "…"
_READ_AHEAD = 64  # characters looked at for one kept, so that a message of gigabytes costs nothing


def plain(text: str, limit: int = 300) -> str:
    """`text` as one line of at most `limit` characters, with "…" at its end where it was cut.

    White space of any kind becomes single spaces; escape sequences go whole, and so does every
    character of Unicode category C: controls, bidi and zero-width formats, lone surrogates
    (which no file could be written with), private and unassigned code points.
    """
    if len(text) <= limit and text.isprintable():  # then it has nothing of C, and only plain spaces
        return " ".join(text.split())
    head = text[: limit * _READ_AHEAD]
    spaced = " ".join(_ESCAPES.sub("", head).split())
    kept = "".join(c for c in spaced if not unicodedata.category(c).startswith("C"))
    line = " ".join(kept.split())
    if len(line) <= limit and len(head) == len(text):
        return line
    return line[: limit - 1].rstrip() + _CUT


def writable(name: str) -> str:
    """A file's name or path, its bytes that are not UTF-8 written out as \\xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def csv_cell(text: str) -> str:
    """`plain(text)` as a CSV cell that no spreadsheet takes for a formula.

    Cells that start with = + - @ get a leading apostrophe, except plain decimal numbers (−0.5
    stays a number). Quoting of commas and quotes is left to the csv module.
    """
    line = plain(text)
    if line.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(line):
        return "'" + line
    return line
