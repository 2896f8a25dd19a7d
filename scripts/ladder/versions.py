"""The versions of the ladder: where each lies, and what must become of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from judge.record import CaseResult, Record
from judge.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
FAILURES = (Verdict.WRONG, Verdict.BAD_RESULT)
PUBLIC_SUITE = "public"
FULL_SUITES = (PUBLIC_SUITE, "hidden", "correctness")


class Fate(StrEnum):
    """What a version's own docstring says of its results."""

    RIGHT = "right everywhere"
    WRONG = "wrong on every public case"
    SOMETIMES = "wrong on some cases"


@dataclass(frozen=True)
class Version:
    """A submission of the ladder. path: below the repository. kept: False for an experiment."""

    name: str
    path: str
    kept: bool
    fate: Fate

    @property
    def short(self) -> str:
        """What stands in pictures: v02b, scan."""
        return _SHORT.get(self.name, self.name.partition("_")[0])


FIRST, REFERENCE, SUBMITTED = "v01_gemm", "v07_gva_dv", "v14_cuda_graph"
_SHORT = {"champion": "champion", "w8a8_int8": "int8", "parallel_scan": "scan"}
_KEPT = (
    *(FIRST, "v02_tma", "v02b_tma_dv32", "v05_adaptive_dv", "v06_warp_specialized"),
    *(REFERENCE, SUBMITTED, "champion"),
)
_DROPPED = {
    "v03_qk_double_buffer": Fate.RIGHT,
    "v04_no_decay_A": Fate.WRONG,
    "v09_missing_barriers": Fate.SOMETIMES,
    "v09b_direct_store": Fate.RIGHT,
    "v11_merged_gates": Fate.RIGHT,
    "v15_three_stage": Fate.RIGHT,
    "v20_two_ctas": Fate.RIGHT,
    "v21_64_registers": Fate.RIGHT,
    "w8a8_int8": Fate.SOMETIMES,
    "parallel_scan": Fate.RIGHT,
}
VERSIONS: Mapping[str, Version] = {
    **{name: Version(name, f"submissions/{name}", True, Fate.RIGHT) for name in _KEPT},
    **{
        name: Version(name, f"submissions/experiments/{name}", False, fate)
        for name, fate in _DROPPED.items()
    },
}
"""By name, in the order of the report, the experiments after what was kept."""


def right() -> list[Version]:
    """What is right on every case: the report's main line, the champion, and most experiments."""
    return [version for version in VERSIONS.values() if version.fate is Fate.RIGHT]


def dropped() -> list[Version]:
    """The experiments."""
    return [version for version in VERSIONS.values() if not version.kept]


def surprise(version: Version, record: Record) -> str:
    """One line that says what of a record is not as the version's docstring says, else empty.

    What is expected to be wrong may fail with WRONG or BAD_RESULT only.
    """
    failed = [result for result in record.results if result.verdict is not Verdict.PASS]
    if not record.results:
        return "no case was judged"
    if version.fate is Fate.RIGHT:
        return _told(failed) if failed else ""
    others = [result for result in failed if result.verdict not in FAILURES]
    if others:
        return _told(others)
    public = [result for result in record.results if result.suite == PUBLIC_SUITE]
    if version.fate is Fate.WRONG:
        passed = [result.case.name for result in public if result.verdict is Verdict.PASS]
        return f"passes {', '.join(passed)}" if passed else ""
    return "" if failed else f"passes all {len(record.results)} cases"


def _told(results: list[CaseResult]) -> str:
    first, *others = results
    more = f" and {len(others)} more" if others else ""
    return f"{first.case.name}: {first.verdict}: {first.detail}{more}"
