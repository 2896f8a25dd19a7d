"""A YAML file read strictly, node by node; a complaint is one line with file, line and field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import yaml

from judge.hints import shown, suggestion

MAX_BYTES = 256 * 1024
MAX_DEPTH = 8

_WHOLE = re.compile(r"0|[+-]?[1-9]\d{0,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})([eE][+-]?\d{1,4})?")

T = TypeVar("T")


class CaseFileError(ValueError):
    """A case file, or a choice of cases, that cannot be used; its text is one printable line."""

    def __init__(self, path: Path | str, line: int | None, field: str, message: str) -> None:
        place = f"{path}:{line}" if line else str(path)
        text = ": ".join(part for part in (place, field, message) if part)
        super().__init__("".join(c if c.isprintable() else "?" for c in text))


class YamlFile:
    """One YAML document and the readers of its nodes; all of them raise CaseFileError.

    Scalars are taken as they are written instead of as YAML 1.1 resolves them: to that, 5e-3 is
    text, 010 is 8, 1:30 is 90 and no is false.
    """

    def __init__(self, path: Path) -> None:
        """Read and compose the file: `content` is its bytes, `root` its topmost node."""
        self.path = path
        self.content = self._read()
        self.root = self._compose()

    def fail(self, node: yaml.Node | int | None, field: str, message: str) -> CaseFileError:
        """The error to raise about a node or a line."""
        line = node.start_mark.line + 1 if isinstance(node, yaml.Node) else node
        return CaseFileError(self.path, line, field, message)

    def mapping(
        self, node: yaml.Node, field: str, known: Sequence[str], required: Sequence[str]
    ) -> dict[str, yaml.Node]:
        """The mapping's values by key: every key known, none twice, none of `required` missing."""
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, field, f"must be a mapping with the keys {', '.join(known)}")
        values: dict[str, yaml.Node] = {}
        lines: dict[str, int] = {}
        for key_node, value in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            place = joined(field, key[:40])
            if key not in known:
                raise self.fail(key_node, place, f"unknown key; {suggestion(key, known)}")
            if key in values:
                message = f"stands already on line {lines[key]}; keep one of the two"
                raise self.fail(key_node, place, message)
            values[key], lines[key] = value, key_node.start_mark.line + 1
        for key in required:
            if key not in values:
                message = f"missing; required here: {', '.join(required)}"
                raise self.fail(node, joined(field, key), message)
        return values

    def optional(
        self,
        keys: dict[str, yaml.Node],
        key: str,
        field: str,
        read: Callable[[yaml.Node, str], T],
        default: T,
    ) -> T:
        """The key's value as `read` has it, the default where the key is not given."""
        return read(keys[key], joined(field, key)) if key in keys else default

    def plain(self, node: yaml.Node, field: str, wanted: str) -> str:
        """The text of an unquoted scalar."""
        if not isinstance(node, yaml.ScalarNode) or node.style is not None:
            raise self.fail(node, field, f"must be {wanted}, without quotes")
        return node.value

    def text(self, node: yaml.Node, field: str, pattern: re.Pattern[str], wanted: str) -> str:
        """The text of a scalar, quoted or not, that the pattern matches in full."""
        if not isinstance(node, yaml.ScalarNode) or not pattern.fullmatch(node.value):
            raise self.fail(node, field, f"must be {wanted}")
        return node.value

    def whole(self, node: yaml.Node, field: str, low: int, high: int) -> int:
        """A whole number with low <= number <= high."""
        wanted = f"a whole number from {low} to {high}"
        text = self.plain(node, field, wanted)
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise self.fail(node, field, f"{shown(text)} is not {wanted}")
        return int(text)

    def number(self, node: yaml.Node, field: str, wanted: str, low: float, high: float) -> float:
        """A finite number with low <= number <= high."""
        text = self.plain(node, field, wanted)
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not low <= number <= high:
            raise self.fail(node, field, f"{shown(text)} is not {wanted}")
        return number

    def truth(self, node: yaml.Node, field: str) -> bool:
        """true or false, written so."""
        text = self.plain(node, field, "true or false")
        if text not in ("true", "false"):
            raise self.fail(node, field, f"{shown(text)} is neither true nor false; write one")
        return text == "true"

    def _read(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            reason = error.strerror or str(error)
            raise self.fail(None, "", f"cannot be read: {reason}; give a YAML file") from error
        if len(content) > MAX_BYTES:
            raise self.fail(None, "", f"is too large; at most {MAX_BYTES} bytes are read")
        return content

    def _compose(self) -> yaml.Node:
        """The root node; aliases (bombs) and deep nesting (recursion) are refused beforehand."""
        text = ""
        try:
            text = self.content.decode()
            depth = 0
            for event in yaml.parse(text, yaml.SafeLoader):
                line = event.start_mark.line + 1
                if getattr(event, "anchor", None):
                    raise self.fail(line, "", "anchors and aliases are not allowed; write it out")
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                if depth > MAX_DEPTH:
                    raise self.fail(line, "", f"is nested deeper than {MAX_DEPTH} levels")
            root = yaml.compose(text, yaml.SafeLoader)
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            raise self.fail(line, "", "is not UTF-8 text; save it as UTF-8") from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = ", ".join(filter(None, (error.context, error.problem)))
            line = mark.line + 1 if mark else None
            raise self.fail(line, "", f"is not valid YAML: {what}") from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise self.fail(line, "", f"is not valid YAML: {error.reason}") from error
        if root is None:
            raise self.fail(1, "", "is empty; write its keys, or give another file")
        return root


def joined(field: str, key: str) -> str:
    """The field's name with one more key: cases[0].name."""
    return f"{field}.{key}" if field else key
