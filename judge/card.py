"""What a participant says of themselves: the name and the notes in a submission.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from judge.hints import shown
from judge.roster import MAX_NAME
from judge.text import plain
from judge.yamlfile import MAX_BYTES, CaseFileError, YamlFile

CARD = "submission.yaml"
_MAX_NOTES = 500


@dataclass(frozen=True)
class Card:
    """What a participant's submission.yaml says. problem: one line, why nothing of it is used."""

    name: str = ""
    notes: str = ""
    problem: str = ""


def read_card(content: bytes) -> Card:
    """A participant's own words: keys name and notes, any other makes the file void."""
    try:
        card = _CardFile(content)
        keys = card.mapping(card.root, "", ("name", "notes"), ())
        return Card(
            name=card.optional(keys, "name", "", card.words, "")[:MAX_NAME],
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
