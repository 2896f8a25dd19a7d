"""What a run on some SMs of a large GPU says about a slice of another one: a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.checkpoints import CheckpointFile
from judge.implementations import CORE, STUDENT
from judge.record import CaseResult, PredictedTime, Prediction, RivalResult
from judge.scoring import case_score
from judge.sm_budget import BudgetError


@dataclass(frozen=True)
class Slice:
    """A slice and how this device's times become its own.

    sms: its SM count, which decides how many waves a grid takes. device: the GPU that the factor
    is for. clock_factor: by how much its SM clock is slower. checkpoints: file of its t100 and t60.
    """

    name: str
    sms: int
    device: str
    clock_factor: float
    checkpoints: str


SLICES = {
    "h800-mig-1g.10gb": Slice(
        # SM clocks under load: 1.98 GHz on the H200, about 1.755 GHz on the lab's H800 PCIe.
        *("h800-mig-1g.10gb", 14, "NVIDIA H200", 1.98 / 1.755),
        "h800-mig-1g.10gb.yaml",
    )
}


def choose_slice(name: str, device_name: str) -> Slice:
    """A slice that this device can predict. Raises BudgetError."""
    chosen = SLICES[name]
    if chosen.device not in device_name:
        raise BudgetError(
            f"--slice {name}: its clock factor is known for {chosen.device}, not for {device_name}"
        )
    return chosen


def predict(
    chosen: Slice,
    file: CheckpointFile,
    results: Sequence[CaseResult],
    rivals: Sequence[RivalResult],
) -> Prediction:
    """Times on the slice: those measured here times the clock factor.

    The submission's get the score that the slice's own checkpoints would give them.
    """
    times = []
    for result in results:
        if result.timing is None:
            continue
        name = result.case.name
        milliseconds = result.timing.median_ms * chosen.clock_factor
        held = file.cases.get(name)
        score = None if held is None else case_score(milliseconds, held.t100_ms, held.t60_ms)
        times.append(PredictedTime(name, STUDENT, CORE, milliseconds, score))
        times += [
            PredictedTime(
                *(name, one.implementation, one.scope),
                one.timing.median_ms * chosen.clock_factor,
                None,
            )
            for one in rivals
            if one.case == name and one.timing is not None
        ]
    return Prediction(chosen.name, chosen.clock_factor, times)
