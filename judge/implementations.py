"""What a submission is compared with: public implementations that are installed, and the judge's.

Every one is run like a submission: a copy of one file of `reference/`, in a child of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge import __version__
from judge.child.arguments import InputForm
from judge.environment import installed_version
from judge.reference_run import baseline_submission
from judge.submission import Submission, submission_from

CORE, FULL = "core", "full_forward"
"""Scopes: from prepared inputs, as a submission is timed, or from raw ones."""

STUDENT = "student"
SIMPLE = "simple"
HOW_TO_GET = "pip install -e '.[baselines]'"

_FOLDER = Path(__file__).resolve().parents[1] / "reference" / "baselines"


@dataclass(frozen=True)
class Implementation:
    """Something to time beside a submission.

    name: as in the lab's table, or `simple`. version: of its package. inputs: what it takes.
    """

    name: str
    scope: str
    version: str
    submission: Submission
    inputs: InputForm


@dataclass(frozen=True)
class _Public:
    name: str
    scope: str
    package: str
    file: str
    inputs: InputForm


_PUBLIC = (
    _Public("flash_qla", FULL, "flash-qla", "flash_qla_full.py", InputForm.RAW),
    _Public("fla", FULL, "fla-core", "fla_triton.py", InputForm.RAW),
    _Public("flashinfer", FULL, "flashinfer-python", "flashinfer_prefill.py", InputForm.RAW),
    _Public("flash_qla", CORE, "flash-qla", "flash_qla_core.py", InputForm.OWN),
)
PACKAGES = tuple(dict.fromkeys(public.package for public in _PUBLIC))


def public_implementations() -> list[Implementation]:
    """The public implementations whose packages are installed, in both scopes; imports none."""
    found = []
    for public in _PUBLIC:
        version = installed_version(public.package)
        if version is not None:
            file = _FOLDER / public.file
            submission = submission_from(
                f"{public.name}-{public.scope}",
                str(file),
                file.name,
                {file.name: file.read_bytes()},
            )
            found.append(
                Implementation(public.name, public.scope, version, submission, public.inputs)
            )
    return found


def missing_packages() -> list[str]:
    """Packages of public implementations that are not installed."""
    return [package for package in PACKAGES if installed_version(package) is None]


def simple_implementation(device_type: str) -> Implementation:
    """The judge's own simple implementation for a device, whose time is t60."""
    submission = baseline_submission(device_type)
    return Implementation(SIMPLE, CORE, __version__, submission, InputForm.PREPARED)


def whole_student(submission: Submission) -> Implementation:
    """A submission with the judge's preprocessing timed too: the lab's `student`, full_forward."""
    return Implementation(
        STUDENT, FULL, "", replace(submission, name=f"{submission.name}-whole"), InputForm.WHOLE
    )


def versions_of(implementations: Sequence[Implementation]) -> dict[str, str]:
    """Versions by name."""
    return {one.name: one.version for one in implementations if one.version}
