"""One check of a submission as data, versioned: what the views show and a store may keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from judge.case import Case
from judge.occupancy import Occupancy
from judge.profiles import DeviceProfile
from judge.verdict import Rules

CHECK_SCHEMA_VERSION = 1


class CheckVerdict(StrEnum):
    """What became of one case, or of one kernel."""

    OK = "OK"
    NOT_CHECKED = "NOT_CHECKED"
    IMPORT_ERROR = "IMPORT_ERROR"
    SIGNATURE_ERROR = "SIGNATURE_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    CANNOT_LAUNCH = "CANNOT_LAUNCH"
    BAD_RESULT = "BAD_RESULT"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"


FAILURES = frozenset(CheckVerdict) - {CheckVerdict.OK, CheckVerdict.NOT_CHECKED}


@dataclass
class GridUse:
    """One grid, in blocks of x, y and z, and the cases that launch it."""

    grid: list[int]
    cases: list[str]


@dataclass
class KernelReport:
    """One CUDA kernel of a submission. Sizes are bytes; registers are of a thread.

    kernel: key of the TileLang kernel it belongs to. symbol: its CUDA name.
    shared_limit: of the device, for one block. occupancy: None where the kernel did not compile.
    units: which of wgmma, tma and mbarrier its code uses; code: read from SASS or PTX, or empty.
    compile_s: seconds of the compilation; cached: whether it was done before.
    verdict: OK, COMPILE_ERROR, CANNOT_LAUNCH, TIMEOUT or CRASH; detail: one line where not OK.
    warnings: spills, and what ptxas remarks on.
    """

    kernel: str
    symbol: str
    threads: int
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    static_shared: int
    dynamic_shared: int
    shared_limit: int
    occupancy: Occupancy | None
    units: list[str]
    code: str
    grids: list[GridUse]
    compile_s: float
    cached: bool
    verdict: CheckVerdict
    detail: str
    warnings: list[str]

    @property
    def cases(self) -> list[str]:
        """Names of the cases that launch it."""
        return list(dict.fromkeys(case for use in self.grids for case in use.cases))


@dataclass
class ReturnedTensor:
    """Shape and dtype of what a dry call returned."""

    shape: list[int]
    dtype: str


@dataclass
class CheckedCase:
    """One case: verdict, kernels by key, what came back, and launches that were not checked."""

    suite: str
    case: Case
    verdict: CheckVerdict
    detail: str
    kernels: list[str]
    outputs: list[ReturnedTensor]
    unchecked: list[str]


@dataclass
class CheckedSubmission:
    """What was checked. digest: SHA-256 over the names and bytes of its files."""

    name: str
    path: str
    digest: str
    rules: Rules
    rules_detail: str
    log: str


@dataclass
class CheckReport:
    """One check. created is UTC in ISO 8601; verdict is ok, warnings or failed.

    target and cache: what the kernels were compiled for, and TileLang's cache folder that holds
    them, valid wherever the same target is set.
    """

    schema_version: int
    judge_version: str
    created: str
    interrupted: bool
    submission: CheckedSubmission
    profile: DeviceProfile
    tilelang: str | None
    torch: str
    nvcc: str | None
    target: str
    cache: str
    kernels: list[KernelReport]
    cases: list[CheckedCase]
    verdict: str
    seconds: float


def check_to_json(report: CheckReport) -> str:
    """The report as indented JSON text."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def check_from_json(text: str | bytes) -> CheckReport:
    """The report that `check_to_json` wrote.

    Raises msgspec.ValidationError where a field is missing or of another type, and ValueError
    where it was written under another schema version.
    """
    report = msgspec.json.decode(text, type=CheckReport)
    if report.schema_version != CHECK_SCHEMA_VERSION:
        raise ValueError(
            f"report has schema version {report.schema_version}, "
            f"this judge reads {CHECK_SCHEMA_VERSION}"
        )
    return report
