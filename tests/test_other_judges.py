"""The forms of CSOJ and Gradescope."""

from __future__ import annotations

import json

import pytest

from judge.record import Record
from judge.verdict import Rules, Verdict
from judge.views.other_judges import csoj_json, final_score, gradescope_json
from tests.make_record import make_case, make_record, make_result, make_suite

PUBLIC, HIDDEN = make_case("open"), make_case("secret_shape")
CHECK = make_case("one_token", timed=False)


def record(**changes: object) -> Record:
    """public 110 and hidden 0: a total of 0.6 · 110 = 66."""
    results = [
        make_result("public", PUBLIC, median_ms=0.25, score=110.0),
        make_result("hidden", HIDDEN, verdict=Verdict.WRONG, score=0.0, detail="worst at [0, 99]"),
        make_result("correctness", CHECK),
    ]
    suites = [
        make_suite("public", [PUBLIC], 0.6),
        make_suite("hidden", [HIDDEN], 0.4),
        make_suite("correctness", [CHECK]),
    ]
    return make_record(suites, results, **changes)


def test_csoj_s_result_object() -> None:
    text = csoj_json(record())
    assert "\n" not in text
    result = json.loads(text)
    assert list(result) == ["score", "performance", "info"]
    assert (result["score"], type(result["score"])) == (66, int)
    assert result["performance"] == pytest.approx(66.0)
    assert result["info"]["cases"] == {
        "open": {"verdict": "PASS", "score": 110.0, "median_ms": 0.25},
        "h1": {"verdict": "WRONG", "score": 0.0, "median_ms": None},
        "one_token": {"verdict": "PASS"},
    }


def test_gradescope_s_results() -> None:
    result = json.loads(gradescope_json(record()))
    assert result["score"] == pytest.approx(66.0)
    tests = {test["name"]: test for test in result["tests"]}
    assert list(tests) == ["open", "h1", "one_token"]
    assert (tests["open"]["score"], tests["open"]["max_score"]) == (110.0, 120.0)
    assert [test["status"] for test in tests.values()] == ["passed", "failed", "passed"]
    assert "score" not in tests["one_token"]


@pytest.mark.parametrize("form", [csoj_json, gradescope_json])
def test_participants_learn_nothing_of_hidden_cases(form: object) -> None:
    text = form(record())
    assert "secret_shape" not in text
    assert "99" not in text
    timed = record()
    timed.results[1] = make_result("hidden", HIDDEN, median_ms=7.77, score=50.0)
    assert "7.77" not in form(timed)


def test_a_broken_rule_is_worth_nothing_and_a_missing_total_is_said() -> None:
    assert final_score(record(rules=Rules.NO_TILELANG))[0] == 0.0
    practice = record(rules=Rules.NO_TILELANG, official=False)
    assert final_score(practice)[0] == pytest.approx(66.0)
    alone = [make_result("public", PUBLIC, median_ms=0.25, score=110.0)]
    score, why = final_score(make_record([make_suite("public", [PUBLIC], 0.6)], alone))
    assert score == 110.0
    assert why.startswith("mean of public; no total")
