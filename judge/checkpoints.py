"""Checkpoint files: published t100 and t60 of one device, as YAML."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from judge.record import Environment


class BaselineError(ValueError):
    """One line: which file or choice, which field, and what would be right."""


@dataclass(frozen=True)
class Checkpoint:
    """Times of one case in ms, and the B, T, Hq, Hv that they were taken at.

    The shape is stated so that another file's case of the same name is not scored by them.
    """

    shape: tuple[int, int, int, int]
    t100_ms: float
    t60_ms: float


@dataclass(frozen=True)
class CheckpointFile:
    """Published times of one device.

    device_pattern: shell pattern of the name that CUDA reports, any case; sms: its SM count.
    protocol, source: how the times were taken and where they were published.
    """

    name: str
    path: str
    device_pattern: str
    sms: int
    protocol: str
    source: str
    cases: dict[str, Checkpoint]

    def fits(self, environment: Environment) -> bool:
        """Whether the times hold for this device: its name matches and its SM count is equal."""
        return environment.sms == self.sms and fnmatch.fnmatchcase(
            environment.device_name.lower(), self.device_pattern.lower()
        )


def load_checkpoints(path: Path) -> CheckpointFile:
    """Read one checkpoint file.

    Raises BaselineError where it cannot be read, is not YAML, or a field is missing, unknown,
    given twice or wrong.
    """
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise BaselineError(f"{path}: cannot be read: {reason}") from error
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BaselineError(f"{path}: {line}{error.problem}") from error
    except yaml.YAMLError as error:
        raise BaselineError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error
    fields = _Fields(str(path), "", raw)
    fields.only("checkpoints", "device", "protocol", "source", "cases")
    device = fields.mapping("device")
    device.only("name", "sms")
    cases = fields.mapping("cases")
    return CheckpointFile(
        name=fields.text("checkpoints"),
        path=str(path),
        device_pattern=device.text("name"),
        sms=device.count("sms"),
        protocol=fields.text("protocol"),
        source=fields.text("source"),
        cases={name: _checkpoint(cases.mapping(name)) for name in cases.names()},
    )


def fitting_checkpoints(folder: Path, environment: Environment) -> list[CheckpointFile]:
    """The checkpoint files (*.yaml) of a folder that fit this device, by file name.

    Raises BaselineError where any of them is wrong.
    """
    files = [load_checkpoints(path) for path in sorted(folder.glob("*.yaml"))]
    return [file for file in files if file.fits(environment)]


def _checkpoint(fields: _Fields) -> Checkpoint:
    fields.only("shape", "t60", "t100")
    t100, t60 = fields.time("t100"), fields.time("t60")
    if t60 <= t100:
        raise fields.error("t60", f"{t60} is not above t100, {t100}: a slower time is needed")
    return Checkpoint(shape=fields.shape("shape"), t100_ms=t100, t60_ms=t60)


class _Fields:
    """One mapping of a file, with readers that name file and field where a value is wrong."""

    def __init__(self, path: str, place: str, raw: Any) -> None:
        self._path = path
        self._place = place
        if not isinstance(raw, dict) or not raw or not all(isinstance(key, str) for key in raw):
            raise BaselineError(f"{path}: {place or 'file'}: should be a mapping of named fields")
        self._raw: dict[str, Any] = raw

    def error(self, field: str, problem: str) -> BaselineError:
        place = f"{self._place}.{field}" if self._place else field
        return BaselineError(f"{self._path}: {place}: {problem}")

    def only(self, *names: str) -> None:
        """All of these fields and no others."""
        for name in self._raw:
            if name not in names:
                raise self.error(name, f"unknown field; known are {', '.join(names)}")
        for name in names:
            if name not in self._raw:
                raise self.error(name, "is missing")

    def names(self) -> list[str]:
        return list(self._raw)

    def mapping(self, field: str) -> _Fields:
        place = f"{self._place}.{field}" if self._place else field
        return _Fields(self._path, place, self._raw[field])

    def text(self, field: str) -> str:
        value = self._raw[field]
        if not isinstance(value, str) or not value.strip():
            raise self.error(field, f"{value!r} should be text")
        return value.strip()

    def count(self, field: str) -> int:
        value = self._raw[field]
        if type(value) is not int or value < 1:
            raise self.error(field, f"{value!r} should be a whole number above 0")
        return value

    def time(self, field: str) -> float:
        value = self._raw[field]
        if type(value) not in (int, float) or not (math.isfinite(value) and value > 0):
            raise self.error(field, f"{value!r} should be a time in ms, above 0")
        return float(value)

    def shape(self, field: str) -> tuple[int, int, int, int]:
        value = self._raw[field]
        if (
            not isinstance(value, list)
            or len(value) != 4
            or any(type(size) is not int or size < 1 for size in value)
        ):
            raise self.error(field, f"{value!r} should be [B, T, Hq, Hv], whole numbers above 0")
        return (value[0], value[1], value[2], value[3])


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe types, and no key twice in a mapping, where PyYAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else id(key_node)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
