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

from judge.child.errors import ChildError
from judge.child.log import ChildLog
from judge.child.protocol import Repeat, Repeated
from judge.child.shared_memory import ChildMemory, JudgeMemory
from judge.record import CaseResult
from judge.repetitions import Repetitions
from judge.strict_protocol import Terms
from judge.submission import find_submission
from judge.trial import Limits, Outcome, Trial, TrialOver
from judge.verdict import Verdict
from judge.witness import ALLOWANCES
from tests.trial import (
    SEED,
    known_answers,
    new_session,
    null_session,
    put_on_trial,
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
def judge() -> Iterator[JudgeMemory]:
    memory = JudgeMemory()
    yield memory
    memory.close()


def test_seeds_of_all_sizes_arrive_and_only_while_one_is_awaited(judge: JudgeMemory) -> None:
    child = ChildMemory(judge.descriptor)
    with ThreadPoolExecutor(1) as other:
        for seed in (0, 1, 2**63 - 1, 0, 7):
            assert not judge.is_seed_awaited()
            waiting = other.submit(child.wait_for_seed)
            while not judge.is_seed_awaited():
                pass
            judge.hand_over(seed)
            assert waiting.result(10) == seed


def test_results_arrive_whatever_came_before_and_stay_as_they_were_taken(
    judge: JudgeMemory,
) -> None:
    child = ChildMemory(judge.descriptor)
    for rows in (3, 1000, 2):  # the memory is mapped anew for the larger one alone
        output = torch.arange(rows * 128).bfloat16().view(rows, 128)
        state = torch.full((1, 5), 0.1)
        child.put([output, state])
        taken, taken_state = judge.take([output.nbytes, state.nbytes])
        child.put([torch.zeros_like(output), state])
        assert torch.equal(torch.frombuffer(taken, dtype=torch.bfloat16), output.view(-1))
        assert torch.equal(torch.frombuffer(taken_state, dtype=torch.float32), state.view(-1))


def test_what_does_not_fit_is_told(judge: JudgeMemory) -> None:
    room = os.fstat(judge.descriptor).st_size
    with pytest.raises(ChildError, match="do not fit"):
        judge.take([16, room])


def test_a_child_cannot_take_the_memory_away_from_the_judge(judge: JudgeMemory) -> None:
    size = os.fstat(judge.descriptor).st_size
    for changed in (0, 1, 2 * size):
        with pytest.raises(PermissionError):
            os.ftruncate(judge.descriptor, changed)
    with pytest.raises(PermissionError):
        fcntl.fcntl(judge.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    assert os.fstat(judge.descriptor).st_size == size


def memories_of_this_process() -> int:
    """Open files and mappings that are such memory."""
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    mapped = Path("/proc/self/maps").read_text().splitlines()
    return sum("memfd:judge" in line for line in (*links, *mapped))


def test_nothing_of_the_memory_outlives_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    null_session("cpu")  # which lives on
    before = memories_of_this_process()
    path = write_submission(tmp_path / "s", COUNTED.format(what="raise ValueError"))
    results, session, _ = put_on_trial(path, tmp_path)  # a child for each case
    assert {result.verdict for result in results} == {Verdict.CRASH}
    session.start()
    session.drop_child()
    monkeypatch.setattr("judge.child.process.subprocess.Popen", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.start()
    assert memories_of_this_process() == before


def test_a_child_may_be_ended_twice(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", COUNTED.format(what="pass"))
    log = ChildLog(tmp_path / "log.txt")
    session = new_session(find_submission(path), log)
    session.start()
    child = session._child
    child.kill()
    child.kill()
    session.close()
    log.close()


class Delayed:
    """A child that rehearses for a minute and answers a second after it has the seed."""

    def __init__(self, clock: list[float], *, asks: bool) -> None:
        self._clock, self._asks = clock, asks
        self.seeds: list[int] = []

    def send(self, request: Repeat, limit_s: float) -> None:
        assert request == Repeat("mixed", True, False)

    def wait_until_seed_is_awaited(self, limit_s: float) -> bool:
        self._clock[0] += 60.0
        return self._asks

    def hand_over(self, seed: int) -> None:
        self.seeds.append(seed)

    def reply(self, limit_s: float) -> Repeated:
        assert limit_s == (40.0 if self._asks else 100.0)
        self._clock[0] += 1.0
        return Repeated(0.5, 5.0, "", "digest")


@pytest.mark.parametrize("asks", [True, False])
def test_the_judge_s_clock_starts_with_the_seed(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("judge.trial.time.perf_counter", lambda: clock[0])
    child = Delayed(clock, asks=asks)
    trial = Trial(child, Limits(), lambda phase: None, Outcome())
    if not asks:
        with pytest.raises(TrialOver, match="run: answered before it had the seed"):
            trial.repeat(7, "mixed", "run", 100.0, rehearsed=True)
        assert child.seeds == []
        return
    trial.repeat(7, "mixed", "run", 100.0, rehearsed=True)
    assert (trial.answered_s, trial.asked_s, child.seeds) == (1.0, 61.0, [7])


def judged(tmp_path: Path, what: str, limits: Limits = Limits()) -> tuple[CaseResult, str]:  # noqa: B008
    """A timed case, its calls rehearsed as on CUDA, and what the submission printed."""
    path = write_submission(tmp_path / "submission", COUNTED.format(what=what))
    log = ChildLog(tmp_path / "log.txt")
    session = new_session(find_submission(path), log, limits=limits)
    case = verdict_cases()[0]
    null_session("cpu").prepare_to_repeat(case, SEED)
    terms = Terms(null_session("cpu"), ALLOWANCES["cpu"], rehearsed=True)
    try:
        known = known_answers(case, True, "cpu")
        result = session.judge("test", case, SEED, COUNT, known, terms)
    finally:
        session.close()
        log.close()
    return result, (tmp_path / "log.txt").read_text()


def test_no_mode_of_a_submission_sees_the_judge_s_own_steps(tmp_path: Path) -> None:
    what = """
    from torch.overrides import TorchFunctionMode

    class Noting(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), options=None):
            print("seen", function.__name__, flush=True)
            return function(*arguments, **(options or {}))

    # from the rehearsal of the warm-up, whose result nobody fetches, until it is over
    if calls == 2:
        global mode
        mode = Noting()
        mode.__enter__()
    if calls == 4:
        mode.__exit__(None, None, None)
"""
    result, printed = judged(tmp_path, what.strip())
    seen = set(re.findall(r"seen (\w+)", printed))
    assert result.verdict is Verdict.PASS, result.detail
    assert {"matmul", "fill_"} <= seen  # the call's own, and what comes before the next one
    assert not {"randn", "normalize", "copy_"} & seen  # new contents, and copies of the result


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
