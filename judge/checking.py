"""Comparing what a submission returned with the float64 reference."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from judge.case import HEAD_DIM, Case
from judge.record import TensorError
from judge.verdict import Verdict

_ELEMENTS_AT_ONCE = {"cuda": 1 << 23, "cpu": 1 << 18}
"""So many that a GPU is busy, and so few that a processor's cache holds them in float64."""


@dataclass
class Expected:
    """The reference's answer: output [B, T, Hv, 128], final_state [B, Hv, 128, 128], float64."""

    output: torch.Tensor
    final_state: torch.Tensor


@dataclass
class Finding:
    """Verdict on one returned pair; detail is one line, empty on PASS."""

    verdict: Verdict
    detail: str
    errors: list[TensorError]


def result_sizes(case: Case) -> tuple[int, int]:
    """Bytes of output (bfloat16) and final_state (float32) of a case."""
    state = case.batch * case.v_heads * HEAD_DIM * HEAD_DIM
    return case.batch * case.tokens * case.v_heads * HEAD_DIM * 2, state * 4


def as_tensors(
    output: memoryview, state: memoryview, expected: Expected
) -> tuple[torch.Tensor, torch.Tensor]:
    """The raw bytes as output and final_state, of the reference's shapes and on its device."""
    return tuple(
        torch.frombuffer(data, dtype=dtype).to(wanted.device).view(wanted.shape)
        for data, dtype, wanted in (
            (output, torch.bfloat16, expected.output),
            (state, torch.float32, expected.final_state),
        )
    )


def check_result(
    output: torch.Tensor, state: torch.Tensor, expected: Expected, tolerance: float
) -> Finding:
    """Judge output and final_state against the reference (docs/lab.md, judging).

    An element is wrong where |actual − expected| > tolerance · (1 + |expected|), that is outside
    rtol = atol = tolerance. NaN or Inf is BAD_RESULT.
    """
    errors = []
    for name, actual, wanted in (
        ("output", output, expected.output),
        ("final_state", state, expected.final_state),
    ):
        bad_values = _bad_values(name, actual)
        if bad_values:
            return Finding(Verdict.BAD_RESULT, bad_values, [])
        errors.append(tensor_error(name, actual, wanted, tolerance))
    wrong = [error for error in errors if error.share_wrong > 0]
    if not wrong:
        return Finding(Verdict.PASS, "", errors)
    return Finding(Verdict.WRONG, "; ".join(_wrong_line(error) for error in wrong), errors)


def tensor_error(
    name: str, actual: torch.Tensor, expected: torch.Tensor, tolerance: float
) -> TensorError:
    """Largest error of a finite tensor, its place, and the share of elements out of tolerance."""
    flat_actual, flat_expected = actual.reshape(-1), expected.reshape(-1)
    max_abs, max_ratio, place, wrong = 0.0, -1.0, 0, 0
    at_once = _ELEMENTS_AT_ONCE[expected.device.type]
    for start in range(0, flat_expected.numel(), at_once):
        wanted = flat_expected[start : start + at_once]
        part = flat_actual[start : start + at_once].to(torch.float64)
        difference = (part - wanted).abs_()
        max_abs = max(max_abs, float(difference.max()))
        ratio = difference.div_((wanted.abs() + 1).mul_(tolerance))
        largest, index = ratio.max(0)
        if float(largest) > max_ratio:
            max_ratio, place = float(largest), start + int(index)
        wrong += int((ratio > 1).sum())
    index = [int(i) for i in torch.unravel_index(torch.tensor(place), expected.shape)]
    return TensorError(name, max_abs, max_ratio, index, wrong / flat_expected.numel())


def worst_of(findings: list[Finding]) -> list[TensorError] | None:
    """Of each tensor the error with the largest ratio among several judged calls."""
    worst: dict[str, TensorError] = {}
    for finding in findings:
        for error in finding.errors:
            if error.tensor not in worst or error.max_ratio > worst[error.tensor].max_ratio:
                worst[error.tensor] = error
    return list(worst.values()) or None


def _bad_values(name: str, actual: torch.Tensor) -> str:
    flat = actual.reshape(-1)
    bad = 0
    first = None
    at_once = _ELEMENTS_AT_ONCE[actual.device.type]
    for start in range(0, flat.numel(), at_once):
        not_finite = ~torch.isfinite(flat[start : start + at_once])
        count = int(not_finite.sum())
        if count and first is None:
            place = torch.tensor(start + int(not_finite.to(torch.uint8).argmax()))
            first = [int(i) for i in torch.unravel_index(place, actual.shape)]
        bad += count
    if not bad:
        return ""
    return f"{name} holds {bad} NaN or Inf of {flat.numel()} values, the first at {first}"


def _wrong_line(error: TensorError) -> str:
    return (
        f"{error.tensor}: {error.share_wrong:.3%} of elements out of tolerance, largest error "
        f"{error.max_abs:.3g}, worst at {error.place} ({error.max_ratio:.3g} times the tolerance)"
    )
