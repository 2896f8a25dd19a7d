"""The ladder's page says what its raw files say, and what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from judge.check_report import check_from_json
from judge.verdict import Verdict
from tests.ladder_records import (
    CASES,
    CLOCK_FACTOR,
    ladder_record,
    median_ms,
    rival,
    with_prediction,
    write,
    write_all,
    write_profile,
)
from tests.make_record import make_result
from tests.page_tables import row

pytest.importorskip("matplotlib")

from scripts.ladder.goals import goals
from scripts.ladder.memory import (
    HAND_OVER,
    INPUTS,
    allocations,
    buffers,
    compiled,
    dynamic_bytes,
    group_bytes,
    static_bytes,
)
from scripts.ladder.page import BLOCKS
from scripts.ladder.records import LadderError, read_ladders, read_profiles
from scripts.ladder.report import load_report, reversals
from scripts.ladder.versions import ROOT, VERSIONS, Fate, surprise
from scripts.markdown import MarkerError, link
from scripts.write_ladder import CHECK, PAGE, PICTURES, PROFILES, RECORDS, gather, with_blocks

PNG = b"\x89PNG\r\n\x1a\n"


def page(tmp_path: Path, block: str) -> str:
    """A block of the page made from tmp_path, without its markers."""
    pictures = tmp_path / "pictures"
    pictures.mkdir(exist_ok=True)
    material = gather(
        tmp_path / "records", tmp_path / "profiles", tmp_path / "check", tmp_path / "p.md", pictures
    )
    written = with_blocks(f"<!-- ladder: {block} -->\n<!-- ladder: end -->", material)
    return written.removesuffix("<!-- ladder: end -->").partition("\n")[2]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("version", ["v01_gemm", "v14_cuda_graph", "parallel_scan"])
def test_times_are_those_of_the_records(tmp_path: Path, records: Path, version: str) -> None:
    write_all(records)
    tables = re.split(r"^### ", page(tmp_path, "times"), flags=re.MULTILINE)[1:]
    assert [table.split("\n")[0] for table in tables] == ["132 SMs", "16 SMs", "14 SMs"]
    for sms, table in zip((132, 16, 14), tables, strict=True):
        assert row(table, "version") == list(CASES)
        shown = [float(cell.split()[0]) for cell in row(table, version)]
        assert shown == [round(median_ms(version, case, sms), 3) for case in CASES]


def test_a_wrong_version_has_verdicts_and_no_times(tmp_path: Path, records: Path) -> None:
    write(ladder_record("v04_no_decay_A", 132), records)
    assert row(page(tmp_path, "times"), "v04_no_decay_A") == ["WRONG"] * 8
    text = page(tmp_path, "verdicts")
    assert row(text, "v04_no_decay_A") == ["0 of 8", "wrong on every public case", "yes"]
    assert "short_tail_state: WRONG: final_state: 2 of 9 elements" in text


def test_a_version_that_fails_unexpectedly_is_told(tmp_path: Path, records: Path) -> None:
    record = ladder_record("v07_gva_dv", 132)
    case = record.results[2].case
    broken = make_result("public", case, verdict=Verdict.CRASH, detail="signal | 11")
    write(replace(record, results=[*record.results[:2], broken, *record.results[3:]]), records)
    text = page(tmp_path, "verdicts")
    assert row(text, "v07_gva_dv")[-1] == "no"
    assert "- v07_gva_dv, 132 SMs: parallel_equal: CRASH: signal \\| 11" in text


def test_fates() -> None:
    right, wrong = ladder_record("v07_gva_dv", 14), ladder_record("v04_no_decay_A", 14)
    race = ladder_record("v09_missing_barriers", 14)
    for record in (right, wrong, race):
        assert surprise(VERSIONS[record.submission.name], record) == ""
    assert "passes short_tail_state" in surprise(VERSIONS["v04_no_decay_A"], right)
    assert surprise(VERSIONS["v09_missing_barriers"], right) == "passes all 8 cases"
    assert surprise(VERSIONS["v07_gva_dv"], race).startswith("parallel_gva: WRONG: ")
    hung = replace(wrong, results=[replace(r, verdict=Verdict.TIMEOUT) for r in wrong.results])
    assert "TIMEOUT" in surprise(VERSIONS["v04_no_decay_A"], hung)
    assert surprise(VERSIONS["v01_gemm"], replace(right, results=[])) == "no case was judged"


def test_every_submission_of_the_ladder_is_known() -> None:
    folders = [*(ROOT / "submissions").iterdir(), *(ROOT / "submissions/experiments").iterdir()]
    there = {folder.name for folder in folders if (folder / "tilelang_fwd.py").is_file()}
    assert there - {"starter"} == set(VERSIONS)
    for version in VERSIONS.values():
        assert (ROOT / version.path / "tilelang_fwd.py").is_file()


def test_missing_versions_and_budgets_are_one_line(tmp_path: Path, records: Path) -> None:
    write(ladder_record("v01_gemm", 132), records)
    conditions = page(tmp_path, "conditions")
    (missing,) = [line for line in conditions.splitlines() if "Not measured yet" in line]
    assert "v14_cuda_graph" in missing
    assert "v01_gemm" not in missing
    assert "132 SMs: needs v01_gemm and one version more." in page(tmp_path, "speed-up")
    for block in BLOCKS:
        assert page(tmp_path, block).strip(), block


def test_without_any_record_every_block_says_so(tmp_path: Path, records: Path) -> None:
    for block in BLOCKS.keys() - {"memory"}:
        assert re.search("not measured|No record", page(tmp_path, block), re.IGNORECASE), block
    assert "Not compiled here yet" in page(tmp_path, "memory")
    assert list((tmp_path / "pictures").iterdir()) == []


def test_pictures_are_drawn_from_all_records(tmp_path: Path, records: Path) -> None:
    write_all(records)
    launch = {"duration_us": 3, "stall_selected": 1, "stall_long_scoreboard": 3}
    write_profile(tmp_path / "profiles", "v01_gemm", "long_low_gva", [launch])
    named = []
    for block in BLOCKS:
        named += re.findall(r"\]\((pictures/[\w-]+\.(?:png|svg))\)", page(tmp_path, block))
    assert len(named) == 2 * 7
    for name in named:
        content = (tmp_path / name).read_bytes()
        assert content.startswith(PNG) if name.endswith("png") else b"<svg" in content


def test_the_report_stands_beside_ours(tmp_path: Path, records: Path) -> None:
    write_all(records)
    here = [median_ms("v07_gva_dv", "chain_equal", sms) for sms in (132, 16, 14)]
    predicted = CLOCK_FACTOR * here[-1]
    expected = [f"{value:.3f}" for value in (0.282, *here, predicted)]
    cells = row(page(tmp_path, "long-cases"), "v07_gva_dv", "chain_equal")
    assert cells == [*expected, f"{predicted / 0.282:.2f}"]


def test_report_figures() -> None:
    report = load_report()
    assert set(report.medians_ms) <= set(VERSIONS)
    assert set(report.without_figures) <= set(VERSIONS)
    assert {case for medians in report.medians_ms.values() for case in medians} == set(CASES)
    assert report.median("v01_gemm", "deep_gva_state") == 11.677
    assert report.median("v06_warp_specialized", "wide_gva_state") is None
    assert report.relative("v03_qk_double_buffer", "v02_tma", "long_low_gva") == [6.459 / 6.226]
    assert report.relative("v09b_direct_store", "v07_gva_dv", "long_low_gva") == [1.41, 2.1]
    of_v14 = pytest.approx(2.7 * 1.447 / 1.477)
    assert report.relative("v21_64_registers", "v07_gva_dv", "long_low_gva") == [of_v14]
    scores = report.scores["v14_cuda_graph"].values()
    assert sum(scores) / 8 == pytest.approx(report.totals["v14_cuda_graph"]["public"], abs=0.005)


def test_orders_that_differ() -> None:
    report = load_report()
    ours = {"v06_warp_specialized": {"long_low_gva": 1.0}, "v07_gva_dv": {"long_low_gva": 2.0}}
    (one,) = reversals(report, ours)
    assert (one.case, one.ahead, one.behind) == (
        *("long_low_gva", "v07_gva_dv", "v06_warp_specialized"),
    )
    assert one.theirs == (1.477, 2.057)
    assert one.ours == (2.0, 1.0)
    assert not one.tied
    ours["v07_gva_dv"]["long_low_gva"] = 1.02
    assert [pair.tied for pair in reversals(report, ours)] == [True]
    ours["v07_gva_dv"]["long_low_gva"] = 0.9
    assert reversals(report, ours) == []
    # 6.226 and 6.252 ms are no order.
    near = {"v02_tma": {"long_low_gva": 2.0}, "v05_adaptive_dv": {"long_low_gva": 1.0}}
    assert reversals(report, near) == []


def test_experiments_are_relative_to_v07(tmp_path: Path, records: Path) -> None:
    write_all(records)
    text = page(tmp_path, "experiments")
    for sms, cell in zip((132, 16, 14), row(text, "v09b_direct_store")[1:4], strict=True):
        ratio = median_ms("v09b_direct_store", "long_low_gva", sms) / median_ms(
            "v07_gva_dv", "long_low_gva", sms
        )
        assert cell == f"{ratio:.2f}"
    assert row(text, "v04_no_decay_A")[1:4] == ["WRONG"] * 3
    assert row(text, "v11_merged_gates")[4] == "1.42"


def test_scores_are_the_records_own_and_predicted_ones(tmp_path: Path, records: Path) -> None:
    here, slice_ = (
        ladder_record("v14_cuda_graph", 132, scored=True),
        with_prediction(ladder_record("v14_cuda_graph", 14)),
    )
    write(here, records)
    write(slice_, records)
    predicted = [one.score for one in slice_.prediction.times]
    (public,) = [suite.score for suite in here.score.suites if suite.suite == "public"]
    text = page(tmp_path, "scores")
    cells = row(text, "v14_cuda_graph")
    assert cells[:3] == ["112.07", "116.16", "114.00"]
    assert cells[3:] == [f"{public:.2f}", "–", "–", f"{sum(predicted) / 8:.2f}"]
    assert row(text, "long_low_gva")[0] == "105.69"


def test_a_failed_case_has_no_points_in_a_prediction(tmp_path: Path, records: Path) -> None:
    record = with_prediction(ladder_record("w8a8_int8", 14))
    write(record, records)
    scores = [one.score for one in record.prediction.times]
    assert len(scores) == 5
    assert row(page(tmp_path, "scores"), "w8a8_int8")[-1] == f"{sum(scores) / 8:.2f}"


def test_public_implementations_come_from_rivals(tmp_path: Path, records: Path) -> None:
    record = ladder_record("v14_cuda_graph", 16)
    failed = replace(rival("fla", "chain_equal", 1.0), verdict=Verdict.WRONG)
    core = replace(rival("flash_qla", "chain_equal", 0.1), scope="core")
    own = rival("student", "chain_equal", 0.2)
    rivals = [rival("flash_qla", "chain_equal", 0.75), failed, core, own]
    write(replace(record, rivals=rivals), records)
    text = page(tmp_path, "public")
    ours = median_ms("v14_cuda_graph", "chain_equal", 16)
    table = text[: text.index("### The report")]
    assert row(table, "case") == ["v14", "FlashQLA", "FlashQLA / v14"]
    assert row(table, "chain_equal") == [f"{ours:.3f}", "0.750", f"{0.75 / ours:.2f}"]
    assert row(table, "wide_gva_state")[1:] == ["–", "–"]


def test_stalls_are_of_the_launch_of_median_duration(tmp_path: Path) -> None:
    launches = [
        {"duration_us": us, "tensor_active_pct": us, "stall_selected": 1, "stall_wait": us}
        for us in (9, 3, 4)
    ]
    write_profile(tmp_path, "v01_gemm", "long_low_gva", launches)
    (profile,) = read_profiles(tmp_path, ["v01_gemm", "v07_gva_dv"], ["long_low_gva"])
    assert profile.duration_us == 4
    assert profile.tensor_active_pct == 4
    assert profile.stall("wait") == 0.8
    assert profile.stall("barrier") == 0.0


@pytest.mark.parametrize("dv_slice", [64, 128])
def test_the_list_of_buffers_is_the_kernel_s_and_the_compiler_s(dv_slice: int) -> None:
    listed = buffers(dv_slice)
    source = (ROOT / VERSIONS["v14_cuda_graph"].path / "tilelang_fwd.py").read_text()
    assert allocations(source, dv_slice) == {
        buffer.name: buffer.sizes for buffer in listed if buffer.name != "barriers"
    }
    # loaded and released are arrays of STAGES, the seven others single ones
    assert source.count("T.alloc_barrier([") == 2
    assert source.count("T.alloc_barrier(") == 9
    report = check_from_json(CHECK.read_bytes())
    launched = {case for kernel in compiled(report, listed) for case in kernel.cases}
    equal_heads = {name for name, case in CASES.items() if case.qk_heads == case.v_heads}
    assert launched == (equal_heads if dv_slice == 64 else CASES.keys() - equal_heads)
    total = group_bytes(listed, INPUTS) + group_bytes(listed, HAND_OVER)
    assert total <= dynamic_bytes(listed) + static_bytes(listed) < total + 1024


def test_the_budget_of_shared_memory() -> None:
    # 2 · (2 · 64 · 128 + 64 · 128 + 64 · 64) · 2 bytes and two rows of 64 floats, as the report has
    # it: 113 KB; 128 · 128 + 3 · 64 · 128 + 64 · 64 bfloat16: 88 KB.
    wide = buffers(128)
    assert group_bytes(wide, INPUTS) == 113 * 1024
    assert group_bytes(wide, HAND_OVER) == 88 * 1024 + 88
    assert dynamic_bytes(wide) == 204_800
    assert static_bytes(wide) == 2048


def test_goals(records: Path) -> None:
    def found(holds: bool | None) -> list[str]:
        return [goal.asked for goal in goals(read_ladders(records)) if goal.holds is holds]

    assert len(found(None)) == len(Fate) + 1 + 5
    write_all(records)
    assert found(False) == ["v14 on all SMs: chain_equal at most 0.270 ms"]
    assert len(found(None)) == 1  # the public suite alone is not all that is asked of kept versions


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda record: replace(record, submission=replace(record.submission, name="v99")), "v99"),
        (lambda record: replace(record, schema_version=99), "schema version 99"),
        (lambda record: record, "is of v01_gemm on 132 SMs too"),
    ],
)
def test_what_is_no_record_of_the_ladder(records: Path, change: object, told: str) -> None:
    record = ladder_record("v01_gemm", 132)
    write(record, records)
    other = write(change(record), records.with_name("other"))
    other.rename(records / "second.json")
    with pytest.raises(LadderError, match=told):
        read_ladders(records)


def test_hand_written_text_stays(tmp_path: Path, records: Path) -> None:
    material = gather(records, tmp_path, tmp_path / "no", tmp_path / "p.md", tmp_path)
    begin, end = "<!-- ladder: times -->", "<!-- ladder: end -->"
    once = with_blocks(f"Before\n{begin}\nold\n{end}\nafter\n", material)
    assert once == f"Before\n{begin}\n\nNot measured yet.\n\n{end}\nafter\n"
    assert with_blocks(once, material) == once
    for wrong in (f"{begin}\n", f"{begin}\n{end}\n{begin}\n{end}", f"<!-- ladder: no -->\n{end}"):
        with pytest.raises(MarkerError):
            with_blocks(wrong, material)


def test_the_committed_page_is_what_the_script_writes(tmp_path: Path) -> None:
    material = replace(gather(RECORDS, PROFILES, CHECK, PAGE, PICTURES), pictures=tmp_path)
    document = PAGE.read_text()
    assert set(re.findall(r"<!-- ladder: (?!end)([a-z-]+) -->", document)) == set(BLOCKS)
    written = with_blocks(document, material)
    folder = link(tmp_path, PAGE)
    assert written.replace(f"{folder}/", "pictures/") == document
    for name in re.findall(r"\((pictures/[\w.-]+)\)", document):
        assert (PAGE.parent / name).is_file()
