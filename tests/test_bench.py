"""What the submissions of a run share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge.audit import Answer, Answers
from judge.bench import KeptAnswers
from judge.checking import Expected
from judge.cli import main
from judge.store.store import Store
from judge.submission import ENTRY
from tests.make_record import make_case
from tests.trial import STARTER, VERDICT_CASES

CASE = make_case("one")
BYTES = 8 * (3 + 5)


@pytest.mark.parametrize(
    ("device_room", "host_room", "may_stay", "computed"),
    [
        (0, 2 * BYTES, True, 1),
        (2 * BYTES, 0, True, 1),
        (2 * BYTES, 0, False, 3),
        (2 * BYTES, 2 * BYTES, False, 1),
        (2 * BYTES - 1, 2 * BYTES - 1, True, 3),
        (0, 0, True, 3),
    ],
)
def test_answers_are_computed_once_where_there_is_room(
    device_room: int, host_room: int, may_stay: bool, computed: int
) -> None:
    calls = []

    def compute() -> Answers:
        calls.append(1)
        expected = Expected(torch.ones(3).double(), torch.zeros(5).double())
        fixed = Answer(42, None, expected, 5e-3, {"q": "digest"})
        return Answers(fixed, (fixed,), None, 1, 0, lambda seeds: [])

    kept = KeptAnswers(torch.device("cpu"), device_room, host_room)
    known = [kept.of(CASE, compute, may_stay=may_stay) for _ in range(3)]
    assert len(calls) == computed
    for one in known:
        assert torch.equal(one.fresh[0].expected.output, torch.ones(3).double())
        assert (one.fixed.seed, one.fixed.input_digests, one.quick) == (42, {"q": "digest"}, 1)


def test_submissions_of_a_run_are_audited_and_scored_alike(tmp_path: Path) -> None:
    for name, remark in (("a", "x = 1\n"), ("b", "x = 2\n")):
        path = tmp_path / "in" / name / ENTRY
        path.parent.mkdir(parents=True)
        path.write_text(STARTER.read_text() + remark)
    words = ["--device", "cpu", "--cases", str(VERDICT_CASES), "--store", str(tmp_path / "store")]
    done = CliRunner().invoke(main, ["grade", str(tmp_path / "in"), *words])
    assert done.exit_code == 0
    with Store(tmp_path / "store") as store:
        first, second = (graded.record for graded in store.results())
    assert first.submission.digest != second.submission.digest
    assert first.submission.log != second.submission.log
    assert first.baseline.t100_ms == second.baseline.t100_ms
    for one, other in zip(first.results, second.results, strict=True):
        # one repetition more is audited for being quick, by a seed of its own
        shared = {audit.seed for audit in one.audits} & {audit.seed for audit in other.audits}
        assert len(shared) == 3
