"""Which t100 and t60 a run is scored by: stored checkpoints, or what is timed in the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from judge.case import Case
from judge.checkpoints import (
    BaselineError,
    CheckpointFile,
    changed_versions,
    fitting_checkpoints,
    load_checkpoints,
)
from judge.implementations import HOW_TO_GET, PACKAGES
from judge.record import Baseline, Environment, RivalResult, Timing
from judge.rivals import T60, T100

CHOICES = ("auto", "checkpoints", "live", "reference", "none")
LEAST_RATIO = 1.25
"""t60 is never below this multiple of t100, so that the curve between them is never a cliff."""

REFERENCE_RATIO = 4.0
"""t60 / t100 where only one of them is measured."""

REFERENCE_NAMES = {
    "cuda": "reference/simple_tilelang.py, timed in this run, is t60; t100 = t60 / 4",
    "cpu": "float32 PyTorch of reference/, timed in this run, is t100; t60 = 4 · t100",
}


class Measure(Enum):
    """What is to be timed in the run itself."""

    NOTHING = "nothing"
    LIVE = "live"
    REFERENCE = "reference"


@dataclass(frozen=True)
class Choice:
    """What `choose` decided: a baseline that is ready, or None and what is to be measured.

    reason: one line that says why, for the report's notes; empty where nothing needs saying.
    """

    baseline: Baseline | None
    reason: str
    measure: Measure = Measure.NOTHING


def choose(
    kind: str,
    cases: Sequence[Case],
    environment: Environment,
    folders: Sequence[Path],
    present: Mapping[str, str],
) -> Choice:
    """Decide on the baseline of a run from `--baseline` and the cases asked for.

    kind: auto (checkpoints that fit, else live, else reference), checkpoints, live, reference, none
        (no scores, and nothing runs beside the submission, as a profiler wants it), or the path of
        a checkpoint file.
    cases: all cases of the run; those not timed need no baseline, and without a timed one nothing
        is measured. folders: of the checkpoint files that auto and checkpoints try, in their order.
    present: versions of the public implementations that are installed, by name.

    Raises BaselineError where the choice cannot be met or a checkpoint file is wrong.
    """
    if kind == "none":
        return Choice(no_baseline("none asked for"), "")
    timed = [case for case in cases if case.timed]
    if kind not in CHOICES:
        return _from_file(kind, timed, environment, present)
    if kind == "live" and (problem := _no_live(environment, present)):
        raise BaselineError(f"--baseline live: {problem}; use --baseline reference")
    if not timed:
        return Choice(no_baseline("no case of this run is timed"), "")
    if kind == "live":
        return Choice(None, "", Measure.LIVE)
    if kind == "reference":
        return Choice(None, "", Measure.REFERENCE)
    problems = []
    for folder in folders:
        for file in fitting_checkpoints(folder, environment):
            try:
                return _from_checkpoints(file, timed, environment, present)
            except BaselineError as error:
                problems.append(str(error))
    problem = problems[0] if problems else f"no checkpoint file fits {_device(environment)}"
    if kind == "checkpoints":
        raise BaselineError(f"--baseline checkpoints: {problem}; use --baseline reference")
    measure = Measure.REFERENCE if _no_live(environment, present) else Measure.LIVE
    return Choice(None, f"baseline measured in this run: {problem}", measure)


def _from_file(
    path: str, timed: Sequence[Case], environment: Environment, present: Mapping[str, str]
) -> Choice:
    if not Path(path).is_file():
        raise BaselineError(
            f"--baseline {path}: should be {', '.join(CHOICES)} or a checkpoint file"
        )
    file = load_checkpoints(Path(path))
    if not file.fits(environment):
        raise BaselineError(
            f"{file.path}: is for {file.device} with {file.sms} SMs, "
            f"this device is {_device(environment)}"
        )
    return _from_checkpoints(file, timed, environment, present)


def _from_checkpoints(
    file: CheckpointFile,
    timed: Sequence[Case],
    environment: Environment,
    present: Mapping[str, str],
) -> Choice:
    changes = changed_versions(file, environment, present)
    reason = ""
    if changes:
        reason = f"checkpoints {file.name} were taken with {'; '.join(changes)}: calibrate again"
    return Choice(checkpoint_baseline(file, timed), reason)


def _no_live(environment: Environment, present: Mapping[str, str]) -> str:
    """Why no public implementation can be timed; empty where one can."""
    if environment.sms is None:
        return "public implementations need a CUDA device"
    if not present:
        return f"none of {', '.join(PACKAGES)} is installed ({HOW_TO_GET})"
    return ""


def checkpoint_baseline(file: CheckpointFile, cases: Sequence[Case]) -> Baseline:
    """The file's times for these timed cases, which it must all hold: one total, one source.

    Raises BaselineError at the first case that it does not hold, or holds at another shape.
    """
    t100_ms: dict[str, float] = {}
    t60_ms: dict[str, float] = {}
    for case in cases:
        shape = (case.batch, case.tokens, case.qk_heads, case.v_heads)
        held = file.cases.get(case.name)
        if held is None:
            raise BaselineError(f"{file.path}: has no times for the timed case {case.name}")
        if held.shape != shape:
            raise BaselineError(
                f"{file.path}: times of {case.name} are for B T Hq Hv {_sizes(held.shape)}, "
                f"the case has {_sizes(shape)}"
            )
        t100_ms[case.name] = held.t100_ms
        t60_ms[case.name] = max(held.t60_ms, LEAST_RATIO * held.t100_ms)
    return Baseline("checkpoints", file.name, t100_ms, t60_ms, timings={})


def reference_baseline(device_kind: str, timings: Mapping[str, Timing]) -> Baseline:
    """The baseline from a reference implementation's timings, by case name, of the same run.

    device_kind: on cuda the simple TileLang kernel was timed and is t60; on cpu the float32
        PyTorch implementation was timed and is t100. The other is a factor of 4 away.
    """
    scale = 1.0 / REFERENCE_RATIO if device_kind == "cuda" else 1.0
    t100_ms = {name: timing.median_ms * scale for name, timing in timings.items()}
    t60_ms = {name: REFERENCE_RATIO * t100 for name, t100 in t100_ms.items()}
    return Baseline(
        "reference", REFERENCE_NAMES[device_kind], t100_ms, t60_ms, timings=dict(timings)
    )


def live_baseline(results: Sequence[RivalResult]) -> Baseline:
    """The baseline from what was timed in turns with the submission, where both times are there.

    t60 is kept at LEAST_RATIO times t100 or above.
    """
    timed = [one for one in results if one.timing is not None]
    t100_ms = {one.case: one.timing.median_ms for one in timed if one.role == T100}
    t60 = {one.case: one.timing.median_ms for one in timed if one.role == T60}
    t60_ms = {name: max(t60[name], LEAST_RATIO * t100_ms[name]) for name in t100_ms if name in t60}
    used = {f"{one.implementation} {one.version}" for one in timed if one.role == T100}
    name = (
        f"fastest public whole forward ({', '.join(sorted(used)) or 'none was right'}) is t100, "
        "reference/simple_tilelang.py is t60, in turns with the submission"
    )
    return Baseline("live", name, {case: t100_ms[case] for case in t60_ms}, t60_ms, timings={})


def no_baseline(reason: str) -> Baseline:
    """A baseline without times, for a run that has no scores; `reason` becomes its name."""
    return Baseline("none", reason, {}, {}, timings={})


def _device(environment: Environment) -> str:
    sms = f" with {environment.sms} SMs" if environment.sms is not None else ""
    return f"{environment.device_name}{sms}"


def _sizes(shape: Sequence[int]) -> str:
    return " ".join(str(size) for size in shape)
