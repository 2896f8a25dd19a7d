"""Seeds and results in memory that judge and child share, and a child that waits for no seed."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from judge.child.log import ChildLog
from judge.child.shared_memory import ResultArea, SeedSlot, new_shared_memory
from judge.record import CaseResult
from judge.repetitions import Repetitions
from judge.strict_protocol import Terms
from judge.submission import find_submission
from judge.trial import Limits
from judge.verdict import Verdict
from judge.witness import ALLOWANCES
from tests.trial import (
    SEED,
    known_answers,
    new_session,
    null_session,
    verdict_cases,
    write_submission,
)

REPETITIONS = 6
COUNT = Repetitions(warmup=1, repetitions=REPETITIONS)
COUNTED = """
calls = 0


def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):
    global calls
    calls += 1
    {what}
    return right(q, k, v, g_cumsum, beta, A, initial_state)
"""


@pytest.fixture(autouse=True)
def all_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.strict_protocol._SLOW_MS", 1e9)


@pytest.fixture
def descriptor() -> Iterator[int]:
    descriptor = new_shared_memory()
    yield descriptor
    os.close(descriptor)


def test_seeds_of_all_sizes_arrive_and_only_while_one_is_awaited(descriptor: int) -> None:
    judge, child = SeedSlot(descriptor), SeedSlot(descriptor)
    with ThreadPoolExecutor(1) as other:
        for seed in (0, 1, 2**63 - 1, 0, 7):
            assert not judge.is_awaited()
            waiting = other.submit(child.wait)
            while not judge.is_awaited():
                pass
            judge.hand_over(seed)
            assert waiting.result(10) == seed


def test_results_arrive_whatever_came_before_and_stay_as_they_were_taken(descriptor: int) -> None:
    judge, child = ResultArea(descriptor), ResultArea(descriptor)
    for rows in (3, 1000, 2):  # the memory is mapped anew for the larger one alone
        output = torch.arange(rows * 128).bfloat16().view(rows, 128)
        state = torch.full((1, 5), 0.1)
        child.put([output, state])
        taken, taken_state = judge.take([output.nbytes, state.nbytes])
        child.put([torch.zeros_like(output), state])
        assert torch.equal(torch.frombuffer(taken, dtype=torch.bfloat16), output.view(-1))
        assert torch.equal(torch.frombuffer(taken_state, dtype=torch.float32), state.view(-1))


def test_a_child_cannot_take_the_memory_away_from_the_judge(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    for changed in (0, 1, 2 * size):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, changed)
    with pytest.raises(PermissionError):
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    assert os.fstat(descriptor).st_size == size


def judged(tmp_path: Path, what: str, limits: Limits = Limits()) -> tuple[CaseResult, str]:  # noqa: B008
    """A timed case, its calls rehearsed as on CUDA, and what the submission printed."""
    path = write_submission(tmp_path / "submission", COUNTED.format(what=what))
    log = ChildLog(tmp_path / "log.txt")
    session = new_session(find_submission(path), log, limits=limits)
    case = verdict_cases()[0]
    null_session("cpu").prepare(case, SEED)
    terms = Terms(null_session("cpu"), ALLOWANCES["cpu"], rehearsed=True)
    try:
        known = known_answers(case, True, "cpu")
        result = session.judge("test", case, SEED, COUNT, known, terms)
    finally:
        session.close()
        log.close()
    return result, (tmp_path / "log.txt").read_text()


def test_a_rehearsal_has_the_contents_of_the_call_before(tmp_path: Path) -> None:
    result, printed = judged(tmp_path, 'print("sum", float(v.double().sum()), flush=True)')
    assert result.verdict is Verdict.PASS, result.detail
    sums = re.findall(r"sum (\S+)", printed)
    untimed, *turns = sums
    # one more under another gate
    assert len(sums) == 1 + 2 * (COUNT.warmup + REPETITIONS + 1)
    rehearsals, timed = turns[0::2], turns[1::2]
    assert rehearsals == [untimed, *timed[:-1]]
    assert len(set(timed)) == COUNT.warmup + REPETITIONS + 1
    assert untimed in timed  # audited at the run's own seed once more


@pytest.mark.parametrize(
    ("what", "verdict", "detail"),
    [
        ("if calls == 5: raise ValueError('no more')", Verdict.CRASH, "ValueError: no more"),
        ("if calls == 5: import os; os._exit(3)", Verdict.CRASH, "run: the process exited with"),
        (
            "if calls == 5: import time; time.sleep(60)",
            Verdict.TIMEOUT,
            "run: no answer within 3 s",
        ),
    ],
)
def test_a_rehearsal_that_does_not_end_well_ends_the_case(
    what: str, verdict: Verdict, detail: str, tmp_path: Path
) -> None:
    result, _ = judged(tmp_path, what, Limits(run=3.0))
    assert result.verdict is verdict, result.detail
    assert detail in result.detail
