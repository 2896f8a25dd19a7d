"""Checking small submissions in the tests, with one compile cache for all of them."""

from __future__ import annotations

from pathlib import Path

from judge.case import Case
from judge.check import CheckPlan, check
from judge.check_report import CheckReport
from judge.check_session import CheckLimits
from judge.profiles import PROFILES
from judge.sandbox.kinds import choose_sandbox
from judge.submission import find_submission
from judge.suites import load_suite

SMOKE = Path(__file__).resolve().parents[1] / "cases" / "smoke.yaml"


class Silent:
    """Progress that nobody watches."""

    def message(self, message: str) -> None:
        """Say nothing."""


def smoke_cases() -> list[Case]:
    """The small cases: with and without an initial state."""
    return list(load_suite(SMOKE).cases)


def checked(
    path: Path,
    cases: list[Case] | None = None,
    profile: str = "h800-mig-1g.10gb",
    limits: CheckLimits | None = None,
) -> CheckReport:
    """Check the submission at `path` for some cases, by default one."""
    plan = CheckPlan(
        submission=find_submission(path),
        cases=[("smoke", case) for case in cases or smoke_cases()[:1]],
        profile=PROFILES[profile],
        limits=limits or CheckLimits(),
        sandbox=choose_sandbox("auto"),
    )
    return check(plan, Silent())
