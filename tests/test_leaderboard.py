"""Boards: who shares a rank, who has none, and what is never ranked together."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from judge.baseline import no_baseline
from judge.card import Card
from judge.cli import main
from judge.leaderboard import Board, make_boards
from judge.record import CaseResult, Record
from judge.roster import Participant
from judge.scoring import case_score, result_score
from judge.store.decisions import Decision, Kind, standing
from judge.store.store import Attempt, Graded, Store
from judge.timing import summarize
from judge.uploads import Place, Upload
from judge.verdict import Rules, Verdict
from judge.views.board import boards_csv, boards_json, markdown, print_boards
from judge.worth import score_margin
from tests.make_record import (
    PUBLIC,
    make_case,
    make_record,
    make_result,
    make_suite,
    public_baseline,
)

CASES = [make_case(name, shape) for name, (shape, _, _) in PUBLIC.items()]
HIDDEN = [replace(case, name=f"secret_{case.name}") for case in CASES[:2]]
CHECK = make_case("one_token", timed=False)


def timed(suite: str, case_number: int, factor: float, spread: float) -> CaseResult:
    """A case whose calls took t100 / factor, 10 % of them `spread` faster and 10 % slower."""
    case = CASES[case_number]
    median = PUBLIC[case.name][2] / factor
    result = make_result(suite, case, median_ms=median)
    half = spread / 2
    result.timing = summarize([median * (1 + half * step) for step in (-1, -1, 0, 0, 0, 1, 1)])
    result.score = result_score(case, result.verdict, result.timing, public_baseline())
    return result


def record_of(factor: float, spread: float = 0.0, **changes: object) -> Record:
    """A run of public cases at a multiple of t100's speed, with a gate that passed."""
    results = [timed("public", number, factor, spread) for number in range(len(CASES))]
    results.append(make_result("correctness", CHECK))
    suites = [make_suite("public", CASES, 1.0), make_suite("correctness", [CHECK])]
    return make_record(suites, results, **changes)


def boards_of(
    records: dict[str, list[Record]],
    by: str | None = None,
    latest: bool = False,
    settings: dict[str, str] | None = None,
) -> list[Board]:
    """Boards of participants' attempts in their order; settings of a participant, else "s"."""
    participants = {who: Participant(who) for who in records}
    attempts, results = [], []
    for who, theirs in records.items():
        for number, record in enumerate(theirs):
            attempts.append(Attempt(who, str(number), f"c{number}", len(attempts), "", ""))
            key = (settings or {}).get(who, "s")
            results.append(Graded(len(results), who, f"c{number}", key, record))
    return make_boards(participants, attempts, results, by, latest)


def ranks(board: Board) -> dict[str, int | None]:
    return {row.participant.id: row.rank for row in board.rows}


def test_ranks_follow_the_total_and_count_those_before() -> None:
    (board,) = boards_of({"c": [record_of(0.5)], "a": [record_of(1.5)], "b": [record_of(1.2)]})
    assert ranks(board) == {"a": 1, "b": 2, "c": 3}
    # 100 + 20 · (p − 1) beyond t100
    assert [row.total for row in board.rows[:2]] == [pytest.approx(110), pytest.approx(104)]
    assert board.by == "total"


def test_margin_is_half_of_the_score_between_p10_and_p90() -> None:
    result = timed("public", 0, 1.0, 0.1)
    t60, t100 = PUBLIC[CASES[0].name][1:]
    fast, slow = case_score(t100 * 0.95, t100, t60), case_score(t100 * 1.05, t100, t60)
    assert score_margin(result, public_baseline()) == pytest.approx((fast - slow) / 2)
    assert score_margin(replace(result, verdict=Verdict.WRONG), public_baseline()) == 0.0


def test_scores_within_the_spread_share_a_rank_and_no_chain_forms() -> None:
    # at p times the speed of t100 a time 5 % off moves the score by p, the margin here
    factors = {"a": 1.90, "b": 1.85, "c": 1.80, "d": 1.72}
    (board,) = boards_of({who: [record_of(factor, 0.1)] for who, factor in factors.items()})
    assert [row.margin for row in board.rows] == pytest.approx(list(factors.values()), rel=0.01)
    # b and c are as near each other as b and a, but c is not within the margin of a, who leads
    assert [row.value for row in board.rows] == pytest.approx([118, 117, 116, 114.4])
    assert ranks(board) == {"a": 1, "b": 1, "c": 3, "d": 3}
    (sharp,) = boards_of({who: [record_of(factor)] for who, factor in factors.items()})
    assert ranks(sharp) == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_best_and_latest_attempt() -> None:
    records = {"a": [record_of(1.5), record_of(1.1)], "b": [record_of(1.3)]}
    (best,) = boards_of(records)
    (latest,) = boards_of(records, latest=True)
    assert ranks(best) == {"a": 1, "b": 2}
    assert ranks(latest) == {"b": 1, "a": 2}
    assert [(row.attempt, row.tries) for row in latest.rows] == [("0", 1), ("1", 2)]


def test_other_conditions_are_another_board_and_it_is_said() -> None:
    records = {"a": [record_of(1.5)], "b": [record_of(1.3)]}
    boards = boards_of(records, settings={"b": "another"})
    assert [ranks(board) for board in boards] == [{"b": 1}, {"a": 1}]
    for text in (markdown(boards), _printed(boards)):
        assert "Board 1 of 2" in text
        assert "never compare ranks or scores" in text


def test_whose_last_upload_was_refused_stands_on_every_board() -> None:
    attempts = [
        Attempt("a", "", "c", 1, "", ""),
        Attempt("b", "", "c", 2, "", ""),
        Attempt("b", "", "", 3, "", "damaged"),
        Attempt("c", "", "", 4, "", "damaged"),
        Attempt("c", "", "c", 5, "", ""),  # mended
    ]
    results = [Graded(1, "a", "c", "s", record_of(1.5)), Graded(2, "c", "c", "t", record_of(1.0))]
    boards = make_boards({}, attempts, results, None, False)
    assert [{row.participant.id: row.why for row in board.rows} for board in boards] == [
        {"c": "", "b": "refused: damaged"},
        {"a": "", "b": "refused: damaged"},
    ]
    assert [row.tries for row in boards[1].rows] == [1, 2]


def test_a_total_that_does_not_count_has_no_rank_and_says_why() -> None:
    broken = record_of(1.5, rules=Rules.NO_TILELANG)
    ungated = record_of(1.4, gate_on=False)
    (board,) = boards_of({"a": [broken], "b": [record_of(1.0)], "c": [ungated]})
    assert ranks(board) == {"b": 1, "a": None, "c": None}
    assert {row.participant.id: row.why for row in board.rows} == {
        "a": "rules: no_tilelang",
        "b": "",
        "c": "the gate is off (--no-gate)",
    }


def test_practice_is_ranked_where_no_clock_is_official() -> None:
    records = {"a": [record_of(1.5, official=False, rules=Rules.NO_TILELANG)]}
    (board,) = boards_of(records)
    assert ranks(board) == {"a": 1}
    assert "not official" in _printed([board])
    assert "breaks a rule: no_tilelang; timing is not official" in board.rows[0].practice
    (public,) = boards_of(records, by="public")
    assert public.rows[0].practice == board.rows[0].practice
    (counts,) = boards_of({"a": [record_of(1.5)]})
    assert counts.rows[0].practice == ""


def test_failed_cases_show_their_verdict_and_hidden_ones_no_name() -> None:
    results = [
        make_result("public", CASES[0], verdict=Verdict.CRASH, score=0.0),
        *(make_result("hidden", case, median_ms=1.0, score=50.0) for case in HIDDEN),
        make_result("correctness", CHECK, verdict=Verdict.WRONG),
    ]
    suites = [make_suite("public", CASES[:1], 0.6), make_suite("hidden", HIDDEN, 0.4)]
    record = make_record([*suites, make_suite("correctness", [CHECK])], results)
    (board,) = boards_of({"a": [record]}, by="h2")
    assert board.cases == [CASES[0].name, "h1", "h2"]
    (row,) = board.rows
    assert (row.rank, row.value) == (1, 50.0)
    (cells,) = csv.DictReader(io.StringIO(boards_csv([board])))
    assert cells[f"{CASES[0].name} verdict"] == "CRASH"
    assert cells["h1 median_ms"] == "1.000000"
    assert '"median_ms": 1.0' in boards_json([board])
    for text in (markdown([board]), _printed([board])):
        assert "50.00" in text
        assert "1.000 ms" not in text
    assert cells["correctness untimed"] == "0/1 WRONG"
    for text in (markdown([board]), _printed([board]), boards_csv([board])):
        assert "CRASH" in text
        assert "secret" not in text


def test_table_and_markdown_give_the_times_of_public_cases() -> None:
    results = [make_result("public", CASES[0], median_ms=1.0, score=50.0)]
    (board,) = boards_of({"a": [make_record([make_suite("public", CASES[:1], 0.6)], results)]})
    for text in (markdown([board]), _printed([board])):
        assert "50.00 1.000 ms" in " ".join(text.split())


def test_an_incomplete_suite_has_no_rank() -> None:
    results = [timed("public", 0, 1.0, 0.0)]
    record = make_record([make_suite("public", CASES, 0.6)], results)
    (board,) = boards_of({"a": [record]}, by="public")
    assert ranks(board) == {"a": None}
    assert board.rows[0].why == f"public: 1 of {len(CASES)} cases ran"


def test_without_a_baseline_nobody_has_a_rank_and_it_is_said() -> None:
    suites = [make_suite("public", CASES[:2], 1.0), make_suite("correctness", [CHECK])]
    check = make_result("correctness", CHECK)
    passed = [make_result("public", case, median_ms=1.0) for case in CASES[:2]]
    failed = [make_result("public", c, verdict=Verdict.CRASH, score=0.0) for c in CASES[:2]]
    records = [
        replace(make_record(suites, [*results, check]), baseline=no_baseline("none asked for"))
        for results in (passed, failed)
    ]
    for by in ("total", "public", CASES[0].name):
        (board,) = boards_of({"a": records[:1], "b": records[1:]}, by=by)
        assert ranks(board) == {"a": None, "b": None}
        assert board.rows[1].why == "no baseline, so no scores"
        assert "no baseline" in board.rows[0].why


def test_a_case_without_a_baseline_of_its_own_has_no_score() -> None:
    results = [make_result("public", case, median_ms=1.0) for case in CASES[:2]]
    record = make_record([make_suite("public", CASES[:2], 0.6)], results)
    for by in ("public", CASES[0].name):
        (board,) = boards_of({"a": [record]}, by=by)
        assert (board.rows[0].rank, board.rows[0].why) == (None, "no baseline, so no scores")


def test_of_attempts_without_a_value_the_latest_valid_one_stands() -> None:
    incomplete = make_record([make_suite("public", CASES, 0.6)], [timed("public", 0, 1.0, 0.0)])
    attempts = [Attempt("a", str(n), f"c{n}", n, "", "") for n in range(3)]
    results = [Graded(n, "a", f"c{n}", "s", incomplete) for n in range(3)]

    def stands(*void: str, by: str = "public", latest: bool = False) -> str:
        made = "2026-01-01T00:00:00+00:00"
        trail = [Decision("a", one, Kind.VOID, None, "late", "zoe", made) for one in void]
        (board,) = make_boards({}, attempts, results, by, latest, standing(trail))
        return board.rows[0].attempt

    assert stands() == "2"
    assert stands("2") == "1"
    assert stands("0", "1", "2") == "2"
    assert stands("0", "1", by=CASES[0].name) == "2"
    assert stands("2", by=CASES[0].name) == "0"  # the best, and of equal ones the first
    assert stands("2", latest=True) == "2"


def test_command_reads_the_store_and_refuses_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    assert _command(path).exit_code == 2
    with Store(path) as store:
        assert "nothing is graded yet" in _command(path).stderr
        upload = Upload(Place(Path("x"), "1", ""), None, Card(name="=cmd|<b>`x`"), "")
        store.see(upload, Participant("1", "Zoe", "g"), "c")
        store.add("1", "c", "s", record_of(1.5))
    wrong = _command(path, "--by", "chain_eqal")
    assert wrong.exit_code == 2
    assert "did you mean chain_equal?" in wrong.stderr
    (row,) = csv.DictReader(io.StringIO(_command(path, "--format", "csv").stdout))
    assert (row["name"], row["id"], row["group"]) == ("'=cmd|<b>`x`", "1", "g")
    assert "=cmd\\|&lt;b>\\`x\\`" in _command(path, "--format", "md").stdout
    assert json.loads(_command(path, "--format", "json").stdout)[0]["rows"][0]["rank"] == 1


def test_boards_without_what_is_ranked_by_are_left_out_and_keep_their_numbers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite"
    hidden = make_record(
        [make_suite("hidden", HIDDEN)],
        [make_result("hidden", case, median_ms=1.0, score=50.0) for case in HIDDEN],
    )
    with Store(path) as store:
        upload = Upload(Place(Path("x"), "1", ""), None, Card(), "")
        store.see(upload, Participant("1"), "c")
        for settings, record in (("s", record_of(1.5)), ("t", hidden)):
            store.add("1", "c", settings, record)
    shown = _command(path, "--by", "public")
    assert "Board 2 of 2, ranked by public" in shown.stdout
    assert "Board 1 of 2" not in shown.stdout
    assert shown.stderr == "1 of 2 boards left out: no public there\n"
    (row,) = csv.DictReader(io.StringIO(_command(path, "--by", "h1", "--format", "csv").stdout))
    assert (row["board"], row["h1 score"]) == ("1", "50.00")
    both = _command(path, "--by", "total", "--format", "json")
    assert [board["number"] for board in json.loads(both.stdout)] == [1, 2]


def _command(path: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["leaderboard", "--store", str(path), *more])


def _printed(boards: list[Board]) -> str:
    console = Console(width=100, file=io.StringIO())
    print_boards(boards, console)
    return console.file.getvalue()
