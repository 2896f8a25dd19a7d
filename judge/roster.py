"""Who takes part: the roster, which the lab writes."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import dataclass
from pathlib import Path

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

    Further columns are passed over. Raises RosterError.
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
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    roster: dict[str, Participant] = {}
    try:
        if "id" not in (reader.fieldnames or ()):
            raise RosterError(f"{path}:1: no column id; the header should be {','.join(_COLUMNS)}")
        for row in reader:
            one, name, group = ((row.get(column) or "").strip() for column in _COLUMNS)
            if not one and not name:
                continue
            if not one or normal(one) in roster:
                what = "an id that stands there already" if one else "no id"
                raise RosterError(f"{path}:{reader.line_num}: {what}; give each line its own")
            roster[normal(one)] = Participant(normal(one), plain(name, MAX_NAME), plain(group, 60))
    except csv.Error as error:
        raise RosterError(f"{path}:{reader.line_num}: {error}") from None
    return roster
