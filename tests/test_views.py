"""The views of one record: table, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import pytest
from make_record import make_case, make_record, make_result, make_suite, public_record
from rich.cells import cell_len
from rich.console import Console

from judge.record import Record, RivalResult, from_json, to_json
from judge.timing import summarize
from judge.verdict import Rules, Verdict
from judge.views.benchmarks import benchmark_csv, benchmark_rows, print_benchmarks
from judge.views.csv_rows import FULL_COLUMNS, full_csv, lab_csv
from judge.views.table import print_table

HOSTILE = '=HYPERLINK("http://x")\x1b[2J\n[bold red]PASS[/] \u202elive\u202c,"quoted" :boom:'
HARMLESS = '=HYPERLINK("http://x") [bold red]PASS[/] live,"quoted" :boom:'


def hostile_record() -> Record:
    case = make_case("plain_case")
    result = make_result("public", case, verdict=Verdict.CRASH, score=0.0, detail=HOSTILE)
    record = make_record(
        [make_suite("public", [case], 0.6)],
        [result],
        rules=Rules.FORBIDDEN_IMPORT,
        notes=[HOSTILE],
        name="=cmd\x1b[31m[link]",
    )
    record.submission.rules_detail = HOSTILE
    return record


def render(record: Record, width: int, **options: bool) -> str:
    text = io.StringIO()
    print_table(record, Console(file=text, width=width, **options))
    return text.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def test_lab_csv_is_the_lab_form() -> None:
    assert lab_csv(public_record()) == (
        "case,correctness,median_ms\n"
        "short_tail_state,PASS,0.067000\n"
        "chain_equal,PASS,0.262000\n"
        "parallel_gva,FAIL,\n"
        "deep_gva_state,PASS,2.409000\n"
        "one_token,PASS,\n"
        "constant_gate,PASS,\n"
        "large_state,PASS,\n"
    )


def test_full_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(full_csv(public_record()))))
    assert tuple(rows[0]) == FULL_COLUMNS
    by_case = {row["case"]: row for row in rows}
    chain = by_case["chain_equal"]
    assert [chain[c] for c in ("batch", "tokens", "qk_heads", "v_heads")] == ["1", "8192", "4", "4"]
    assert (chain["verdict"], chain["rules"], chain["timed"]) == ("PASS", "ok", "true")
    assert (chain["t100_ms"], chain["t60_ms"]) == ("0.497792", "3.999968")
    assert float(chain["speedup"]) == pytest.approx(0.497792 / 0.262, rel=1e-5)
    assert float(chain["score"]) == pytest.approx(118.0, abs=0.01)
    assert (chain["samples"], chain["final_state_max_ratio"]) == ("5", "0.81")
    failed = by_case["parallel_gva"]
    assert (
        failed["detail"] == "nvcc: error: identifier 'foo' is undefined, in gdn_kernel.cu line 17"
    )
    assert (failed["median_ms"], failed["speedup"], failed["score"]) == ("", "", "0")
    constant = by_case["constant_gate"]
    assert (constant["gate_value"], constant["timed"], constant["score"]) == ("-0.1", "false", "")


def test_csv_keeps_hostile_text_harmless() -> None:
    text = full_csv(hostile_record())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 1
    assert rows[0]["detail"] == "'" + HARMLESS
    assert rows[0]["submission"] == "'=cmd[link]"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("make", [public_record, hostile_record])
def test_no_line_is_wider_than_the_terminal(make: Callable[[], Record], width: int) -> None:
    lines = render(make(), width).splitlines()
    assert max(cell_len(line) for line in lines) <= width


def test_table_at_120_columns_has_every_column() -> None:
    table = render(public_record(), 120)
    header = next(line for line in table.splitlines() if line.startswith("case "))
    assert words(header) == "case B T Hq Hv state gate verdict median ms spread speed-up score"
    assert "chain_equal 1 8192 4 4 no random_decay PASS 0.262 1.8 % 1.90× 118.00" in words(table)
    assert "large_state 1 128 3 9 10× random_decay PASS – – – –" in words(table)


def test_table_at_80_columns_leaves_out_what_matters_least() -> None:
    table = render(public_record(), 80)
    header = next(line for line in table.splitlines() if line.startswith("case "))
    assert words(header) == "case B T Hq Hv verdict median ms spread speed-up score"
    assert "parallel_gva 1 2048 4 16 COMPILE_ERROR – – – 0.00" in words(table)


def test_table_of_untimed_cases_has_no_columns_for_times() -> None:
    case = make_case("one_token", timed=False)
    record = make_record([make_suite("correctness", [case])], [make_result("correctness", case)])
    header = next(x for x in render(record, 80).splitlines() if x.startswith("case "))
    assert words(header) == "case B T Hq Hv state gate verdict"


def test_table_says_scores_and_what_they_rest_on() -> None:
    text = words(render(public_record(), 120))
    for part in (
        "public: 85.38 (mean of 4 of 4 timed cases, weight 0.6)",
        "correctness: 3 of 3 cases ran, 3 passed",
        "no total: public alone weighs 0.6, not 1",
        "Gate passed",
        "Baseline checkpoints: h800-mig-1g.10gb",
        "NVIDIA H200, 132 SMs",
        "TileLang 0.1.15",
        "logs/20260102-030405-v01_gemm.log",
        "TileLang 0.1.9 was meant, 0.1.15 is installed",
    ):
        assert part in text
    assert "not official" not in text


def test_why_there_is_no_total_is_said_without_what_other_lines_say() -> None:
    case = make_case("one")
    smoke = make_suite("smoke", [case], None)
    record = make_record([smoke], [make_result("smoke", case, median_ms=1.0)], official=False)
    assert len(record.score.why_not.split("; ")) == 3  # the gate, and the host clock
    (line,) = (x for x in render(record, 200).splitlines() if x.startswith("Total"))
    assert words(line) == "Total no total: smoke earns no score"


def test_host_clock_is_not_official() -> None:
    case = make_case("one")
    record = make_record([make_suite("public", [case], 1.0)], [], official=False)
    assert "timing is not official" in words(render(record, 80))


def test_total_graded_failed_and_practice() -> None:
    timed, check = make_case("one"), make_case("check", timed=False)
    suites = [make_suite("all", [timed], 1.0), make_suite("correctness", [check])]
    good = [make_result("all", timed, score=90.0), make_result("correctness", check)]
    assert "Total 90.00 Gate passed" in words(render(make_record(suites, good), 80))
    bad = [good[0], make_result("correctness", check, verdict=Verdict.WRONG)]
    failed = words(render(make_record(suites, bad), 80))
    assert "Total 0.00 Gate failed: 1 correctness case, which sets the total to 0" in failed
    practice = words(render(make_record(suites, bad, gate_on=False), 100))
    assert "Total 90.00 practice, not graded: the gate is off (--no-gate)" in practice


def test_table_shows_hostile_text_as_it_is_without_its_powers() -> None:
    text = render(hostile_record(), 120, force_terminal=True)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    shown = words(re.sub(r"\x1b\[[0-9;]*m", "", text))
    assert f"CRASH: {HARMLESS}" in shown
    assert "=cmd[link]" in shown


def test_one_failure_of_many_cases_is_said_once() -> None:
    cases = [make_case(name) for name in ("one", "two", "three")]
    results = [
        make_result("s", case, verdict=Verdict.IMPORT_ERROR, detail="No module named x")
        for case in cases
    ]
    text = words(render(make_record([make_suite("s", cases)], results), 80))
    assert text.count("No module named x") == 1
    assert "one IMPORT_ERROR and 2 more: No module named x" in text


def test_colour_on_a_terminal_and_none_with_no_color_or_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    green = "\x1b[32m"
    assert green in render(public_record(), 80, force_terminal=True)
    assert "\x1b" not in render(public_record(), 80)
    monkeypatch.setenv("NO_COLOR", "1")
    assert green not in render(public_record(), 80, force_terminal=True)


def test_interrupted_run_says_so() -> None:
    record = public_record()
    record.interrupted = True
    assert "interrupted" in render(record, 80)


def test_json_round_trip() -> None:
    record = public_record()
    assert from_json(to_json(record)) == record
    assert from_json(to_json(hostile_record())).results[0].detail == HOSTILE


def test_benchmarks_are_the_lab_s_extended_table() -> None:
    record = public_record()
    del record.results[1:]
    record.results[0].timing = summarize([0.5])
    rows = [
        ("student", "full_forward", "", 0.8),
        ("flash_qla", "full_forward", "t100", 0.4),
        ("fla", "full_forward", "", None),
        ("flash_qla", "core", "", 0.25),
        ("simple", "core", "t60", 2.0),
    ]
    record.rivals = [
        RivalResult(
            "short_tail_state",
            name,
            scope,
            "1.0",
            Verdict.PASS if median else Verdict.WRONG,
            "",
            role,
            summarize([median]) if median else None,
            True,
        )
        for name, scope, role, median in rows
    ]
    assert benchmark_csv(record).splitlines() == [
        "case,scope,implementation,correctness,median_ms,reference_over_student",
        "short_tail_state,student_core,student,PASS,0.500000,",
        "short_tail_state,full_forward,student,PASS,0.800000,",
        "short_tail_state,full_forward,flash_qla,PASS,0.400000,0.500000",
        "short_tail_state,full_forward,fla,FAIL,,",
    ]
    core = next(row for row in benchmark_rows(record) if row.scope == "core")
    assert (core.implementation, core.ratio) == ("flash_qla", 0.5)
    console = Console(file=io.StringIO(), width=100)
    print_benchmarks(record, console)
    assert "0.500×" in console.file.getvalue()
    assert "simple" not in console.file.getvalue()
