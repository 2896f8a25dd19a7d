"""Who takes part: the roster, which the lab writes, and what participants say of themselves."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import yaml

from judge.text import plain
from judge.yamlfile import MAX_BYTES, CaseFileError, YamlFile, shown

CARD = "submission.yaml"
_COLUMNS = ("id", "name", "group")
_MAX_BYTES = 4 * 2**20
_MAX_NAME = 60
_MAX_NOTES = 500


class RosterError(ValueError):
    """A roster that cannot be used; the text is one line with file and line."""


@dataclass(frozen=True)
class Participant:
    """One line of a roster, or, where there is none, an upload's name alone."""

    id: str
    name: str = ""
    group: str = ""


@dataclass(frozen=True)
class Card:
    """What a participant's submission.yaml says. problem: one line, why nothing of it is used."""

    name: str = ""
    notes: str = ""
    problem: str = ""


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
            roster[normal(one)] = Participant(normal(one), plain(name, _MAX_NAME), plain(group, 60))
    except csv.Error as error:
        raise RosterError(f"{path}:{reader.line_num}: {error}") from None
    return roster


def read_card(content: bytes) -> Card:
    """A participant's own words: keys name and notes, any other makes the file void."""
    try:
        card = _CardFile(content)
        keys = card.mapping(card.root, "", ("name", "notes"), ())
        return Card(
            name=card.optional(keys, "name", "", card.words, "")[:_MAX_NAME],
            notes=card.optional(keys, "notes", "", card.words, "")[:_MAX_NOTES],
        )
    except CaseFileError as error:
        return Card(problem=f"{error}; nothing of it is used")


class _CardFile(YamlFile):
    """A submission.yaml that has been read already."""

    def __init__(self, content: bytes) -> None:
        self._given = content
        super().__init__(Path(CARD))

    def words(self, node: yaml.Node, field: str) -> str:
        """The scalar's text as one line."""
        if not isinstance(node, yaml.ScalarNode):
            raise self.fail(node, field, f"{shown(str(node.value))} is no text")
        return plain(node.value, _MAX_NOTES)

    def _read(self) -> bytes:
        if len(self._given) > MAX_BYTES:
            raise self.fail(None, "", f"is too large; at most {MAX_BYTES} bytes are read")
        return self._given
