"""A seed handed over between two calls, and what a child does that never waits for it."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judge.child.log import ChildLog
from judge.child.seed_slot import SeedSlot, new_slot
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

REHEARSALS = 3
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


def test_seeds_of_all_sizes_arrive_and_only_while_one_is_awaited() -> None:
    judge, descriptor = new_slot()
    child = SeedSlot(descriptor)
    os.close(descriptor)
    with ThreadPoolExecutor(1) as other:
        for seed in (0, 1, 2**63 - 1, 0, 7):
            assert not judge.is_awaited()
            waiting = other.submit(child.wait)
            while not judge.is_awaited():
                pass
            judge.hand_over(seed)
            assert waiting.result(10) == seed


def test_a_child_cannot_take_the_memory_away_from_the_judge() -> None:
    judge, descriptor = new_slot()
    for size in (0, 2**20):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    os.close(descriptor)
    assert not judge.is_awaited()


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
    untimed, *others = sums
    assert len(sums) == 1 + COUNT.warmup + (1 + REHEARSALS) * (
        REPETITIONS + 1
    )  # one more under another gate
    warm_up, *turns = others
    timed = turns[REHEARSALS :: 1 + REHEARSALS]
    for n in range(REHEARSALS):
        assert turns[n :: 1 + REHEARSALS] == [warm_up, *timed[:-1]]
    assert len({warm_up, *timed}) == 1 + REPETITIONS + 1
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
