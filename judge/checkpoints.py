"""Checkpoint files: t100 and t60 of one device, published or calibrated.

Their form is described at the head of cases/checkpoints/h800-mig-1g.10gb.yaml.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from judge.record import Environment
from judge.yamlfile import CaseFileError, YamlFile

REQUIRED_KEYS = ("name", "device", "sms", "protocol", "source", "cases")
FILE_KEYS = (*REQUIRED_KEYS, "date", "versions", "samples", "samples_sha256")
SHAPE_KEYS = ("batch", "tokens", "qk_heads", "v_heads")
CASE_KEYS = ("name", *SHAPE_KEYS, "t60_ms", "t100_ms")
CALIBRATED_KEYS = ("t100_by", "t60_spread", "t100_spread")
VERSIONS = ("driver", "cuda", "torch", "tilelang", "flash_qla", "fla", "flashinfer")
"""What a file may say was installed when its times were taken."""

MAX_SIZE = 10_000_000
LEAST_MS, MOST_MS = 1e-6, 1e9

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TEXT = re.compile(r"\S.{0,499}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


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

    device: shell pattern of the name that CUDA reports, any case; sms: its SM count.
    protocol, source: how the times were taken and where they were published.
    versions: what was installed then, by a name of VERSIONS; empty where the file does not say.
    """

    name: str
    path: str
    device: str
    sms: int
    protocol: str
    source: str
    cases: dict[str, Checkpoint]
    versions: dict[str, str] = field(default_factory=dict)

    def fits(self, environment: Environment) -> bool:
        """Whether the times hold for this device: its name matches and its SM count is equal."""
        return environment.sms == self.sms and fnmatch.fnmatchcase(
            environment.device_name.lower(), self.device.lower()
        )


def load_checkpoints(path: Path) -> CheckpointFile:
    """Read one checkpoint file.

    Raises BaselineError with file, line and field where it cannot be read, is not YAML, or a
    field is missing, unknown, given twice or wrong.
    """
    try:
        return _read(YamlFile(path))
    except CaseFileError as error:
        raise BaselineError(str(error)) from error


def fitting_checkpoints(folder: Path, environment: Environment) -> list[CheckpointFile]:
    """The checkpoint files (*.yaml) of a folder that fit this device, by file name.

    Raises BaselineError where any of them is wrong.
    """
    files = [load_checkpoints(path) for path in sorted(folder.glob("*.yaml"))]
    return [file for file in files if file.fits(environment)]


def changed_versions(
    file: CheckpointFile, environment: Environment, present: Mapping[str, str]
) -> list[str]:
    """What was of another version when the file's times were taken: `torch 2.10, here 2.11`.

    present: versions of the public implementations installed here; one that is not is no change,
    since its time is in the file.
    """
    here = {name: getattr(environment, name) for name in VERSIONS[:4]} | dict(present)
    return [
        f"{name} {then}, here {now}"
        for name, then in file.versions.items()
        if (now := here.get(name)) is not None and now != then
    ]


def _read(file: YamlFile) -> CheckpointFile:
    if isinstance(file.root, yaml.MappingNode) and "suite" in [k.value for k, _ in file.root.value]:
        raise file.fail(None, "", "a suite file, not a checkpoint file (cases/checkpoints/)")
    keys = file.mapping(file.root, "", FILE_KEYS, REQUIRED_KEYS)
    node = keys["cases"]
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        raise file.fail(node, "cases", "must be a list of at least one case")
    cases: dict[str, Checkpoint] = {}
    for index, case_node in enumerate(node.value):
        place = f"cases[{index}]"
        case_keys = file.mapping(case_node, place, (*CASE_KEYS, *CALIBRATED_KEYS), CASE_KEYS)
        name = file.text(case_keys["name"], f"{place}.name", _NAME, "a case's name")
        if name in cases:
            raise file.fail(case_keys["name"], f"{place}.name", f"{name} stands already above")
        cases[name] = _checkpoint(file, case_keys, place)
    for key, pattern, wanted in (
        ("date", _TEXT, "a date"),
        ("samples", _TEXT, "a file's name"),
        ("samples_sha256", _SHA256, "64 hexadecimal digits"),
    ):
        if key in keys:
            file.text(keys[key], key, pattern, wanted)
    return CheckpointFile(
        name=file.text(keys["name"], "name", _NAME, "letters, digits, dot, dash, underscore"),
        path=str(file.path),
        device=file.text(keys["device"], "device", _TEXT, "a device's name or a pattern of it"),
        sms=file.whole(keys["sms"], "sms", 1, 10_000),
        protocol=file.text(keys["protocol"], "protocol", _TEXT, "text"),
        source=file.text(keys["source"], "source", _TEXT, "text"),
        cases=cases,
        versions=_versions(file, keys["versions"]) if "versions" in keys else {},
    )


def _versions(file: YamlFile, node: yaml.Node) -> dict[str, str]:
    keys = file.mapping(node, "versions", VERSIONS, ())
    return {
        name: file.text(value, f"versions.{name}", _TEXT, "a version")
        for name, value in keys.items()
    }


def _checkpoint(file: YamlFile, keys: dict[str, yaml.Node], field: str) -> Checkpoint:
    batch, tokens, qk_heads, v_heads = (
        file.whole(keys[key], f"{field}.{key}", 1, MAX_SIZE) for key in SHAPE_KEYS
    )
    t100_ms, t60_ms = (
        file.number(keys[key], f"{field}.{key}", "a time in ms above 0", LEAST_MS, MOST_MS)
        for key in ("t100_ms", "t60_ms")
    )
    if t60_ms <= t100_ms:
        message = f"{t60_ms:g} must be above t100_ms, which is {t100_ms:g}"
        raise file.fail(keys["t60_ms"], f"{field}.t60_ms", message)
    if "t100_by" in keys:
        file.text(keys["t100_by"], f"{field}.t100_by", _NAME, "an implementation's name")
    for key in ("t60_spread", "t100_spread"):
        if key in keys:
            file.number(keys[key], f"{field}.{key}", "a share of the median", 0.0, MOST_MS)
    return Checkpoint((batch, tokens, qk_heads, v_heads), t100_ms, t60_ms)
