"""What a participant sees of hidden cases."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from judge.record import PredictedTime, Prediction, Record, RivalResult, to_json
from judge.verdict import Verdict
from judge.views.csv_rows import full_csv, lab_csv
from judge.views.participant import participant_view
from judge.views.table import print_table
from tests.make_record import make_case, make_record, make_result, make_suite

SECRET = make_case("secret_shape", (3, 4321, 7, 14), gate="hard_forget")
OTHER = make_case("another_secret", (5, 1234, 2, 6))
KNOWN = make_case("chain_equal", (1, 8192, 4, 4))


def whole() -> Record:
    suites = [make_suite("public", [KNOWN], 0.6), make_suite("hidden", [SECRET, OTHER], 0.4)]
    results = [
        make_result("public", KNOWN, median_ms=1.0, score=90.0),
        make_result("hidden", SECRET, median_ms=7.77, score=55.0),
        make_result("hidden", OTHER, verdict=Verdict.WRONG, detail="worst at [4, 1233, 5, 127]"),
    ]
    record = make_record(suites, results)
    notes = ["no baseline for secret_shape: CRASH", "cases are meant for TileLang 0.1.9"]
    return replace(record, notes=notes)


def rendered(record: Record) -> str:
    text = io.StringIO()
    print_table(record, Console(file=text, width=200))
    return "\n".join([text.getvalue(), to_json(record), full_csv(record), lab_csv(record)])


def test_hidden_cases_are_numbers_with_verdict_and_score() -> None:
    record = whole()
    shown = participant_view(record)
    assert [result.case.name for result in shown.results] == ["chain_equal", "h1", "h2"]
    for before, after in zip(record.results, shown.results, strict=True):
        assert (after.verdict, after.score) == (before.verdict, before.score)
    assert shown.score == record.score
    assert shown.results[0] == record.results[0]


def test_no_output_tells_what_a_hidden_case_is() -> None:
    text = rendered(participant_view(whole()))
    for secret in ("secret", "4321", "1234", "1233", "hard_forget", "7.77", "worst at"):
        assert secret in rendered(whole())
        assert secret not in text
    assert whole().submission.log in rendered(whole())
    assert whole().submission.log not in text
    assert "cases are meant for TileLang 0.1.9" in text


def test_a_failure_without_detail_ends_at_its_verdict() -> None:
    suites = [make_suite("hidden", [SECRET, OTHER], 0.4)]
    results = [
        make_result("hidden", case, verdict=Verdict.CRASH, detail=f"boom {case.name}")
        for case in (SECRET, OTHER)
    ]
    text = rendered(participant_view(make_record(suites, results)))
    (line,) = (line for line in text.splitlines() if "more" in line)
    assert line.split() == ["h1", "CRASH", "and", "1", "more"]


def test_a_case_after_a_hidden_one_has_no_detail() -> None:
    record = whole()
    late = make_result("public", OTHER, verdict=Verdict.CRASH, detail="RuntimeError: 4321")
    early = make_result("public", KNOWN, verdict=Verdict.CRASH, detail="RuntimeError: early")
    shown = participant_view(replace(record, results=[early, *record.results, late]))
    assert [result.detail for result in shown.results] == ["RuntimeError: early", "", "", "", ""]
    assert shown.results[-1].verdict is Verdict.CRASH


def test_times_of_others_at_hidden_cases_are_left_out() -> None:
    def rival(case: str) -> RivalResult:
        return RivalResult(case, "fla", "full_forward", "1", Verdict.PASS, "", "t100", None, True)

    def predicted(case: str) -> PredictedTime:
        return PredictedTime(case, "student", "core", 3.0, 50.0)

    names = ("chain_equal", "secret_shape", "another_secret")
    times = [predicted(name) for name in names]
    record = replace(
        whole(),
        rivals=[rival(name) for name in names],
        prediction=Prediction("h800-mig-1g.10gb", 1.1, times),
    )
    shown = participant_view(record)
    assert shown.rivals == [rival("chain_equal")]
    assert shown.prediction.times == [predicted("chain_equal")]
    assert "secret" not in to_json(shown)


def test_a_record_without_hidden_cases_stays_as_it_is() -> None:
    suite = make_suite("public", [KNOWN], 0.6)
    record = make_record([suite], [make_result("public", KNOWN, median_ms=1.0)])
    assert participant_view(record) is record
