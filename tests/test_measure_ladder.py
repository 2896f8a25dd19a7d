"""What scripts/measure_ladder.py asks of `run.py grade`, and what it keeps of that."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.record import from_json
from judge.verdict import Verdict
from scripts.grading import shortened
from scripts.ladder.versions import FULL_SUITES, VERSIONS, Fate, Version, dropped
from scripts.measure_ladder import (
    Batch,
    batches,
    main,
    outcome_lines,
    record_file,
    run_batch,
)
from tests.ladder_records import ladder_record, write


def names(batch: Batch) -> list[str]:
    return [version.name for version in batch.versions]


def test_what_was_kept_takes_all_suites_on_all_sms(tmp_path: Path) -> None:
    full, public, few = batches(tmp_path, ["all", "16"], [], [])
    assert (names(full), full.suites) == (
        [v.name for v in VERSIONS.values() if v.kept],
        FULL_SUITES,
    )
    assert (names(public), public.suites) == ([v.name for v in dropped()], ("public",))
    assert (names(few), few.suites) == (list(VERSIONS), ("public",))


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    write(ladder_record("v01_gemm", 132), tmp_path)
    (batch,) = batches(tmp_path, ["all"], ["v01_gemm", "v02_tma"], [])
    assert names(batch) == ["v02_tma"]
    write(ladder_record("v02_tma", 132), tmp_path)
    assert list(batches(tmp_path, ["all"], ["v01_gemm", "v02_tma"], [])) == []


def test_suites_of_one_s_own_are_for_all_versions(tmp_path: Path) -> None:
    (batch,) = batches(tmp_path, ["all"], ["v01_gemm", "v20_two_ctas"], ["smoke"])
    assert (names(batch), batch.suites) == (["v01_gemm", "v20_two_ctas"], ["smoke"])


@pytest.mark.parametrize(
    ("budget", "options"),
    [("all", []), ("16", ["--sms", "16"]), ("14", ["--slice", "h800-mig-1g.10gb"])],
)
def test_options_of_a_budget(budget: str, options: list[str]) -> None:
    asked = Batch(budget, [], ["public", "hidden"]).options("live", "cuda:1")
    assert asked == [
        *("--baseline", "live", "--device", "cuda:1", *options),
        *("--suite", "public", "--suite", "hidden"),
    ]


def test_a_record_holds_no_folder_of_the_machine() -> None:
    record = ladder_record("v20_two_ctas", 16)
    info = replace(record.submission, path="/tmp/a/v20_two_ctas", log="/home/b/logs/x.log")
    there = shortened(replace(record, submission=info), VERSIONS["v20_two_ctas"].path).submission
    assert (there.path, there.log) == ("submissions/experiments/v20_two_ctas", "x.log")


def test_wrong_verdicts_are_told(tmp_path: Path) -> None:
    for name in ("v01_gemm", "v04_no_decay_A"):
        write(ladder_record(name, 16), tmp_path)
    bad = ladder_record("v06_warp_specialized", 16)
    results = [replace(bad.results[0], verdict=Verdict.CRASH, detail="signal 11"), *bad.results[1:]]
    write(replace(bad, results=results), tmp_path)
    asked = ["v01_gemm", "v02_tma", "v04_no_decay_A", "v06_warp_specialized"]
    batch = Batch("16", [VERSIONS[name] for name in asked], ["public"])
    assert list(outcome_lines(tmp_path, batch)) == [
        ("v01_gemm, 16 SMs: right everywhere: as its docstring says", True),
        ("v02_tma, 16 SMs: no record", False),
        ("v04_no_decay_A, 16 SMs: wrong on every public case: as its docstring says", True),
        (
            "v06_warp_specialized, 16 SMs: right everywhere: short_tail_state: CRASH: signal 11",
            False,
        ),
    ]


def test_a_budget_is_a_number_or_all(tmp_path: Path) -> None:
    for value in ("none", "0", "-1", "1.5"):
        done = CliRunner().invoke(main, [str(tmp_path), "--sms", value])
        assert done.exit_code == 2
        assert "neither a number of SMs nor all" in done.output


def test_a_run_leaves_one_record_a_version(tmp_path: Path) -> None:
    starter = Version("starter", "submissions/starter", True, Fate.RIGHT)
    batch = Batch("all", [starter], ["smoke"])
    assert run_batch(batch, tmp_path, "none", "cpu") == 0
    assert [file.name for file in tmp_path.iterdir()] == ["starter-all.json"]
    content = record_file(tmp_path, starter, "all").read_bytes()
    record = from_json(content)
    assert record.submission.path == "submissions/starter"
    assert {result.suite for result in record.results} == {"smoke"}
    assert all(result.verdict is Verdict.PASS for result in record.results)
    assert str(tmp_path) not in json.dumps(json.loads(content))


def test_wrong_usage_is_grade_s_own(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(tmp_path), "--only", "v01_gemm", "--device", "cuda:99"])
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == []
