"""Which cases kernels of public implementations are compiled for: an option of two scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from judge.case import Case
from judge.commands.run_options import CASES, usage_errors
from judge.suites import load_suites, select_cases


def suite_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --suite, given on as `suite_names`."""
    return click.option(
        "--suite",
        "suite_names",
        multiple=True,
        default=("public", "hidden"),
        show_default=True,
        help="A suite; repeatable.",
    )(command)


def wanted_cases(suite_names: Sequence[str]) -> list[Case]:
    """The cases of these suites. Raises click.UsageError where there is none of that name."""
    with usage_errors():
        suites = load_suites(sorted(CASES.glob("*.yaml")))
        return [case for _, case in select_cases(suites, suite_names)]
