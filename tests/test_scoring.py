"""The lab's curve, and what a run's suites, gate and total come to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from make_record import make_case, make_result, make_suite

from judge.case import Suite
from judge.record import Baseline, CaseResult
from judge.scoring import case_score, result_score, score_run, speed_up, weights_problem
from judge.verdict import Rules, Verdict


@pytest.mark.parametrize(
    ("time_ms", "score"),
    [
        # t100 = 1 ms, t60 = 4 ms: p60 = 1/4.
        (40.0, 6.0),  # p = 1/40 = p60/10
        (8.0, 30.0),  # p = p60/2
        (4.0, 60.0),  # p = p60
        (2.0, 60 + 40 / 3),  # p = 1/2: a third of the way from 1/4 to 1
        (1.6, 80.0),  # p = 5/8: half of the way
        (1.0, 100.0),  # p = 1
        (0.8, 105.0),  # p = 5/4
        (0.5, 120.0),  # p = 2: where the curve ends
        (0.1, 120.0),
    ],
)
def test_curve_at_its_turning_points_and_between(time_ms: float, score: float) -> None:
    assert case_score(time_ms, 1.0, 4.0) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("turn_ms", [4.0, 1.0, 0.5])
def test_curve_has_no_jump(turn_ms: float) -> None:
    slower = case_score(turn_ms * (1 + 1e-9), 1.0, 4.0)
    faster = case_score(turn_ms * (1 - 1e-9), 1.0, 4.0)
    assert slower <= faster
    assert faster - slower < 1e-6


@pytest.mark.parametrize(
    ("time_ms", "t100_ms", "t60_ms", "score"),
    [
        (0.067, 0.346048, 0.573952, 120.0),  # short_tail_state
        (0.262, 0.497792, 3.999968, 117.96),  # chain_equal
        (0.233, 0.511264, 2.017248, 120.0),  # parallel_equal
        (0.212, 0.491552, 1.899072, 120.0),  # parallel_gva
        (1.447, 1.858816, 15.825312, 105.69),  # long_low_gva
        (1.169, 1.532128, 11.320448, 106.21),  # batch_split_gva
        (2.094, 2.426656, 20.600449, 103.18),  # wide_gva_state
        (2.409, 2.831104, 22.717567, 103.50),  # deep_gva_state
    ],
)
def test_curve_gives_what_the_lab_graded(
    time_ms: float, t100_ms: float, t60_ms: float, score: float
) -> None:
    """The lab's own scores, for times that it printed to a microsecond: half of one is 0.08."""
    assert case_score(time_ms, t100_ms, t60_ms) == pytest.approx(score, abs=0.08)


@pytest.mark.parametrize(
    ("time_ms", "t100_ms", "t60_ms", "word"),
    [
        (0.0, 1.0, 4.0, "time"),
        (math.nan, 1.0, 4.0, "time"),
        (math.inf, 1.0, 4.0, "time"),
        (1.0, -1.0, 4.0, "t100"),
        (1.0, 1.0, 1.0, "t60"),
    ],
)
def test_impossible_times_are_refused(
    time_ms: float, t100_ms: float, t60_ms: float, word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        case_score(time_ms, t100_ms, t60_ms)


def test_result_score_by_verdict() -> None:
    baseline = Baseline("checkpoints", "some", {"a": 1.0}, {"a": 4.0}, {})
    case = make_case("a")
    timing = make_result("s", case, median_ms=1.6).timing
    assert result_score(case, Verdict.PASS, timing, baseline) == pytest.approx(80.0)
    assert result_score(case, Verdict.WRONG, timing, baseline) == 0.0
    assert result_score(case, Verdict.CRASH, None, baseline) == 0.0
    assert result_score(case, Verdict.NOT_RUN, None, baseline) is None
    assert result_score(case, Verdict.PASS, None, baseline) is None
    assert result_score(make_case("b"), Verdict.PASS, timing, baseline) is None
    assert result_score(make_case("a", timed=False), Verdict.WRONG, None, baseline) is None


def test_speed_up_is_t100_over_median() -> None:
    baseline = Baseline("checkpoints", "some", {"a": 3.0}, {"a": 12.0}, {})
    assert speed_up(make_result("s", make_case("a"), median_ms=1.5), baseline) == 2.0
    assert speed_up(make_result("s", make_case("a")), baseline) is None
    assert speed_up(make_result("s", make_case("b"), median_ms=1.5), baseline) is None


PUBLIC = make_suite("public", [make_case("a"), make_case("b")], 0.6)
HIDDEN = make_suite("hidden", [make_case("c")], 0.4)
CHECKS = make_suite("correctness", [make_case("x", timed=False), make_case("y", timed=False)], None)
SUITES = [PUBLIC, HIDDEN, CHECKS]


def full_run() -> list[CaseResult]:
    """All cases pass; public scores 100 and 80, hidden 50: the total is 0.6·90 + 0.4·50 = 74."""
    scores = {"a": 100.0, "b": 80.0, "c": 50.0}
    return [
        make_result(suite.name, case, score=scores.get(case.name))
        for suite in SUITES
        for case in suite.cases
    ]


def grade(
    results: list[CaseResult],
    *,
    suites: list[Suite] = SUITES,
    gate_on: bool = True,
    rules: Rules = Rules.OK,
    official: bool = True,
) -> tuple[float | None, bool, str, str]:
    score = score_run(suites, results, gate_on=gate_on, rules=rules, official=official)
    return score.total, score.graded, score.why_not, score.gate


def test_total_of_a_full_run() -> None:
    score = score_run(SUITES, full_run(), gate_on=True, rules=Rules.OK, official=True)
    assert [(s.suite, s.score, s.cases_run, s.cases_total) for s in score.suites] == [
        ("public", 90.0, 2, 2),
        ("hidden", 50.0, 1, 1),
        ("correctness", None, 2, 2),
    ]
    assert all(s.complete for s in score.suites)
    assert score.total == pytest.approx(74.0)
    assert (score.graded, score.why_not, score.gate) == (True, "", "passed")


def test_failed_timed_case_counts_zero_and_leaves_the_gate_alone() -> None:
    results = full_run()
    results[0].verdict, results[0].score = Verdict.TIMEOUT, None
    total, graded, _, gate = grade(results)
    assert total == pytest.approx(0.6 * 40 + 0.4 * 50)
    assert (graded, gate) == (True, "passed")


def test_failed_correctness_case_sets_the_total_to_zero() -> None:
    results = full_run()
    results[-1].verdict = Verdict.WRONG
    assert grade(results) == (0.0, True, "", "failed")
    assert grade(results[:-2] + results[-1:]) == (0.0, True, "", "failed")


def test_without_the_gate_the_total_is_practice() -> None:
    results = full_run()
    results[-1].verdict = Verdict.WRONG
    total, graded, why_not, gate = grade(results, gate_on=False)
    assert total == pytest.approx(74.0)
    assert (graded, gate) == (False, "off")
    assert why_not == "the gate is off (--no-gate)"


def test_gate_run_in_part_or_not_at_all() -> None:
    total, graded, why_not, gate = grade(full_run()[:-1])
    assert (total, graded, gate) == (pytest.approx(74.0), False, "not_run")
    assert why_not == "the gate was not run in full: 1 of 2 cases"
    _, graded, why_not, gate = grade(full_run()[:-2], suites=[PUBLIC, HIDDEN])
    assert (graded, gate) == (False, "not_run")
    assert why_not == "the gate was not run: no correctness suite in this run"


def test_another_untimed_suite_is_no_gate() -> None:
    smoke = make_suite("smoke", [make_case("s", timed=False)])
    results = [*full_run()[:-2], make_result("smoke", smoke.cases[0])]
    _, graded, _, gate = grade(results, suites=[PUBLIC, HIDDEN, smoke])
    assert (graded, gate) == (False, "not_run")


def test_a_run_of_a_few_cases_has_no_total_and_says_that_the_gate_was_not_run() -> None:
    score = score_run([PUBLIC], full_run()[:1], gate_on=True, rules=Rules.OK, official=True)
    assert (score.suites[0].score, score.suites[0].complete) == (100.0, False)
    assert (score.total, score.graded, score.gate) == (None, False, "not_run")
    assert score.why_not == (
        "no total: public ran 1 of 2 timed cases; "
        "the gate was not run: no correctness suite in this run"
    )


def test_one_suite_alone_has_no_total() -> None:
    total, _, why_not, _ = grade(full_run()[:2], suites=[PUBLIC, CHECKS])
    assert total is None
    assert why_not.startswith("no total: public alone weighs 0.6, not 1")


def test_a_run_without_weights_earns_no_score() -> None:
    smoke = replace(CHECKS, name="smoke", weight=None)
    score = score_run([smoke], [], gate_on=True, rules=Rules.NO_TILELANG, official=False)
    assert score.why_not.startswith("no total: smoke earns no score; ")


def test_weights_make_one_or_are_told() -> None:
    assert weights_problem({"public": 0.6, "hidden": 0.4, "correctness": None}) == ""
    told = "the weights of public and hidden add up to 1.1, not 1"
    assert weights_problem({"public": 0.6, "hidden": 0.5}) == told
    assert weights_problem({"public": 0.6, "hidden": None}) == "public alone weighs 0.6, not 1"
    assert weights_problem({"smoke": None, "checks": None}) == "smoke and checks earn no score"


def test_no_baseline_no_total() -> None:
    results = full_run()
    results[1].score = None
    total, graded, why_not, _ = grade(results)
    assert (total, graded) == (None, False)
    assert why_not == "no total: no baseline for public"


def test_broken_rule_and_host_clock_are_practice() -> None:
    total, graded, why_not, gate = grade(full_run(), rules=Rules.NO_TILELANG, official=False)
    assert (total, graded, gate) == (pytest.approx(74.0), False, "passed")
    assert why_not == (
        "the submission breaks a rule: no_tilelang; timing is not official (host clock)"
    )


def test_a_case_that_could_not_run_did_not_run() -> None:
    results = full_run()
    results[0].verdict, results[0].score = Verdict.NOT_RUN, None
    results[-1].verdict = Verdict.NOT_RUN
    score = score_run(SUITES, results, gate_on=True, rules=Rules.OK, official=True)
    assert (score.suites[0].score, score.suites[0].cases_run) == (80.0, 1)
    assert (score.total, score.gate) == (None, "not_run")
