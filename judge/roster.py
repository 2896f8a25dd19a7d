"""Who takes part: the roster, which the lab writes."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from judge.hints import shown
from judge.text import plain

_COLUMNS = ("id", "name", "group")
_MAX_BYTES = 4 * 2**20
MAX_NAME = 60


class RosterError(ValueError):
    """A roster that cannot be used; the text is one line with file and line."""


@dataclass(frozen=True)
class Participant:
    """One line of a roster, or, where there is none, an upload's name alone."""

    id: str
    name: str = ""
    group: str = ""


def normal(name: str) -> str:
    """A name in the one form in which names are compared: NFC, as file systems differ."""
    return unicodedata.normalize("NFC", name)


def load_roster(path: Path) -> dict[str, Participant]:
    """Participants by id, from a CSV whose header names id and, where wanted, name and group.

    A participant is a line with as many fields as the header. Other columns are passed over where
    those three are there; else one of them may be misspelt. Raises RosterError.
    """
    try:
        content = path.read_bytes()[: _MAX_BYTES + 1]
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise RosterError(f"{path}: {error.strerror}; give a CSV file") from None
    except UnicodeDecodeError:
        raise RosterError(f"{path}: not UTF-8; save it as CSV UTF-8") from None
    if len(content) > _MAX_BYTES:
        raise RosterError(f"{path}: more than {_MAX_BYTES >> 20} MiB")
    lines = enumerate(io.StringIO(text, newline=None), start=1)
    header = _header(path, next(lines, (1, ""))[1])
    roster: dict[str, Participant] = {}
    for number, line in lines:
        fields = _fields(path, number, line)
        if not any(fields):
            continue
        if len(fields) != len(header):
            what = f"{len(fields)} fields for the {len(header)} columns {','.join(header)}"
            raise RosterError(f"{path}:{number}: {what}; leave one empty between its commas")
        row = dict(zip(header, fields, strict=True))
        one = normal(row["id"])
        if not one or one in roster:
            what = "an id that stands there already" if one else "no id"
            raise RosterError(f"{path}:{number}: {what}; give each line its own")
        name, group = row.get("name", ""), row.get("group", "")
        roster[one] = Participant(one, plain(name, MAX_NAME), plain(group, MAX_NAME))
    return roster


def _header(path: Path, line: str) -> list[str]:
    """The columns. Raises RosterError."""
    header = _fields(path, 1, line)
    if "id" not in header:
        raise RosterError(f"{path}:1: no column id; the header should be {','.join(_COLUMNS)}")
    missing = [column for column in _COLUMNS if column not in header]
    for place, column in enumerate(header):
        if column in _COLUMNS and column in header[:place]:
            raise RosterError(f"{path}:1: {shown(column)} stands there twice; leave one out")
        if column not in _COLUMNS and missing:
            what = f"is no column of a roster, and there is no {missing[0]}"
            raise RosterError(f"{path}:1: {shown(column)} {what}; is it misspelt?")
    return header


def _fields(path: Path, number: int, line: str) -> list[str]:
    """The fields of a line, which no quote leads out of. Raises RosterError."""
    try:
        rows = list(csv.reader([line], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise RosterError(f"{path}:{number}: {error}; look at its quotes") from None
    return [field.strip() for row in rows for field in row]
