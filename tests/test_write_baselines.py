"""The measured part of docs/baselines.md says what its raw files say, and what is missing."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.checkpoints import load_checkpoints
from judge.verdict import Verdict
from scripts.baselines.demands import spread_of
from scripts.baselines.figures import load_earlier
from scripts.baselines.page import BLOCKS
from scripts.baselines.sessions import BaselinesError, SessionFolder, read_measured
from scripts.baselines.times import COLUMNS, WITHOUT_SIMPLE
from scripts.goal import Goal
from scripts.ladder.report import load_report
from scripts.ladder.versions import right
from scripts.markdown import MarkerError
from scripts.names import LARGE
from scripts.work import work_of
from scripts.write_baselines import LAB, PAGE, RECORDS, gather, main, with_blocks
from tests.baseline_records import (
    SLICE,
    event_ms,
    gpu_ms,
    made_waves,
    run_record,
    scored_record,
    table_record,
    write_pair,
    write_record,
    write_session,
    write_waves,
)
from tests.ladder_records import CASES
from tests.page_tables import row, rows

EARLIER = load_earlier()


def page(folder: Path, block: str) -> str:
    """A block of the page made from a folder, without its markers."""
    marked = f"<!-- baselines: {block} -->\n<!-- baselines: end -->"
    written = with_blocks(marked, gather(folder, folder / "p.md"))
    return written.removesuffix("<!-- baselines: end -->").partition("\n")[2].strip()


def unmet(folder: Path) -> list[Goal]:
    return [goal for goal in gather(folder, folder / "p.md").goals if not goal.holds]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all parts; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    write_session(folder)
    return folder


@pytest.fixture
def session(tmp_path: Path, whole: Path) -> SessionFolder:
    """A session of its own with all parts, to change."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return SessionFolder(next(tmp_path.iterdir()))


def test_work_and_floor_are_the_published_ones() -> None:
    """What was published is rounded to two or three digits."""
    assert set(EARLIER.work) == set(CASES)
    for name, case in CASES.items():
        work, published = work_of(case), EARLIER.work[name]
        assert work.bytes / 1e6 == pytest.approx(published.mbytes, rel=0.02)
        assert work.flops / 1e9 == pytest.approx(published.gflop, abs=0.05)
        assert round(work.floor_ms(EARLIER.ceilings.rates), 3) == published.floor_ms


def test_earlier_figures_are_of_the_public_cases() -> None:
    assert EARLIER.graph_ms.keys() == EARLIER.events_ms.keys() == {"full_forward", "core"}
    for scope, by_name in EARLIER.graph_ms.items():
        assert EARLIER.events_ms[scope].keys() == by_name.keys()
        for name, times in by_name.items():
            assert list(times) == list(EARLIER.events_ms[scope][name]) == list(CASES)
            assert all(times[case] < EARLIER.events_ms[scope][name][case] for case in CASES)


def test_times_are_those_of_the_records(whole: Path) -> None:
    tables = page(whole, "times").split("\nOn ")
    ending = ", champion as the submission:"
    titles = [table.partition("\n")[0].removeprefix("On ") for table in tables]
    assert titles == [f"{where}{ending}" for where in ("all SMs", "16 SMs", "14 SMs")]
    for sms, table in zip((132, 16, 14), tables, strict=True):
        assert row(table, "case", "floor") == [one.title for one in COLUMNS]
        for case in CASES:
            floor, *cells = row(table, case)
            assert float(floor) == EARLIER.work[case].floor_ms
            assert cells == [
                f"{event_ms(case, one, sms):.3f} / {gpu_ms(case, one, sms):.3f}" for one in COLUMNS
            ]


def test_what_a_row_says_beside_its_times(session: SessionFolder) -> None:
    record = table_record(132, without=("flashinfer",))
    first, *others = record.results
    noisy = replace(first, noisy="spread", gpu_ms_by="profiler")
    broken = [
        replace(one, verdict=Verdict.WRONG, detail="final_state | off", timing=None)
        if (one.implementation, one.case) == ("fla", "chain_equal")
        else one
        for one in record.rivals
    ]
    write_record(replace(record, results=[noisy, *others], rivals=broken), session.table("all"))
    folder = session.path.parent
    table = page(folder, "times").split("\nOn ")[0]
    cells = row(table, "short_tail_state")
    assert cells[1].startswith("~")
    assert cells[1].endswith("*")
    assert cells[-1] == "–"
    assert row(table, "chain_equal")[-2] == "WRONG"
    told = page(folder, "conditions")
    assert "FlashQLA 1.0, FLA 1.0, FlashInfer not installed." in told
    assert "Left out: chain_equal: fla (full_forward) WRONG: final_state \\| off" in told
    found = {goal.asked: goal.found for goal in unmet(folder)}
    assert "FLA whole 7, FlashInfer whole not installed" in next(iter(found.values()))


def test_differences_to_the_published_graphs(whole: Path) -> None:
    text = page(whole, "graphs")
    for one in COLUMNS:
        published = EARLIER.graph_ms.get(one.scope, {}).get(one.name)
        for case in LARGE if published else ():
            here = gpu_ms(case, one, 132)
            share = 100 * (here - published[case]) / published[case]
            assert row(text, one.title, case) == [
                *(f"{published[case]:.3f}", f"{here:.3f}", f"{share:+.1f} %"),
            ]
    assert len(rows(text)) == 1 + 4 * len(LARGE)


def test_a_gpu_time_is_held_to_the_published_one(session: SessionFolder) -> None:
    record = table_record(132)

    def with_share(share: float) -> list[Goal]:
        rivals = [
            replace(one, gpu_ms=EARLIER.graph_ms["full_forward"]["fla"][one.case] * share)
            if one.implementation == "fla"
            else one
            for one in record.rivals
        ]
        write_record(replace(record, rivals=rivals), session.table("all"))
        return [goal for goal in unmet(session.path.parent) if "gpu_ms of FLA" in goal.asked]

    assert with_share(1.049) == with_share(0.951) == []
    (goal,) = with_share(1.06)
    assert goal.holds is False
    assert "wide_gva_state +6.0 %" in goal.found


def test_scores_and_their_differences(whole: Path, session: SessionFolder) -> None:
    """With t60 = 4 t100 a time of 1.01 t100 scores 60 + 40 · (1 / 1.01 − 1/4) / (3/4)."""
    calibrated = 60 + 40 * (1 / 1.01 - 0.25) / 0.75
    text = page(whole, "scores")
    tables = text.split("\n\n| submission")
    for version in right():
        assert row(tables[0], version.name) == [f"100.00 / {calibrated:.2f}"] * 8
        told = f"{100 - calibrated:+.2f}"
        assert row("| submission" + tables[1], version.name) == [
            *("100.00", f"{calibrated:.2f}", told, told),
        ]
    assert not [goal for goal in unmet(whole) if "points" in goal.asked]
    slower = scored_record("v01_gemm", "checkpoints", 1.1)  # 95.15
    write_pair(session, "v01_gemm", scored_record("v01_gemm", "live"), slower)
    (goal,) = [goal for goal in unmet(session.path.parent) if "points" in goal.asked]
    assert goal.asked.startswith("v01_gemm")
    assert "wide_gva_state +4.85" in goal.found


def test_a_submission_that_failed_has_no_difference(session: SessionFolder) -> None:
    record = scored_record("champion", "live")
    results = [
        replace(one, verdict=Verdict.CRASH, score=0.0) if one.case.name == LARGE[0] else one
        for one in record.results
    ]
    other = scored_record("champion", "checkpoints")
    write_pair(session, "champion", replace(record, results=results), other)
    text = page(session.path.parent, "scores")
    assert "CRASH / 100.00" in row(text.split("\n\n")[0], "champion")
    (goal,) = [goal for goal in unmet(session.path.parent) if "points" in goal.asked]
    assert goal.holds is False
    assert f"{LARGE[0]} has no two scores" in goal.found


def test_pairs_are_of_one_session(tmp_path: Path) -> None:
    """A live record here and a calibrated one there are no pair."""
    one, other = SessionFolder(tmp_path / "aa"), SessionFolder(tmp_path / "bb")
    write_record(scored_record("champion", "live"), one.scored("champion", "live"))
    write_record(scored_record("champion", "checkpoints"), other.scored("champion", "calibrated"))
    assert read_measured(tmp_path, ["champion"]).pairs == {}
    write_record(scored_record("champion", "live"), other.scored("champion", "live"))
    assert list(read_measured(tmp_path, ["champion"]).pairs) == ["champion"]
    write_record(scored_record("champion", "none"), other.scored("champion", "live"))
    with pytest.raises(BaselinesError, match="champion was scored by none, not by live"):
        read_measured(tmp_path, ["champion"])


def test_times_on_fewer_sms(whole: Path) -> None:
    absolute, above, below = page(whole, "budgets").split("\n\n")
    assert row(absolute, "t(14) / t(16) / t(132)") == [one.title for one in WITHOUT_SIMPLE]
    for case in CASES:
        assert row(absolute, case) == [
            " / ".join(f"{event_ms(case, one, sms):.3f}" for sms in (14, 16, 132))
            for one in WITHOUT_SIMPLE
        ]
        for table, sms in ((above, (14, 16)), (below, (16, 132))):
            assert row(table, case) == [
                f"{event_ms(case, one, sms[0]) / event_ms(case, one, sms[1]):.2f}"
                for one in WITHOUT_SIMPLE
            ]


def test_waves(whole: Path, session: SessionFolder) -> None:
    text = page(whole, "waves")
    for sms, waves in ((14, (1, 2, 2, 2, 3)), (16, (1, 1, 1, 2, 2))):
        for count, expected in zip((14, 15, 16, 28, 29), waves, strict=True):
            found = row(text, str(sms), str(count))
            assert found == [f"{expected}", f"{expected:.3f}", f"{1.01 * expected:.3f}"]
    assert not [goal for goal in unmet(whole) if "waves" in goal.asked]
    write_waves(made_waves(14, late=28), session)
    (goal,) = [goal for goal in unmet(session.path.parent) if "waves" in goal.asked]
    assert (goal.holds, goal.found) == (False, "1.00, 2.00, 2.00, 3.00, 3.00 for 1, 2, 2, 2, 3")


def test_the_slice_is_predicted_beside_the_lab_s_figures(whole: Path) -> None:
    text = page(whole, "slice")
    report, lab = load_report(), load_checkpoints(LAB)
    by_name = {(one.name, one.scope): one for one in COLUMNS}
    for case in CASES:
        times = {
            name: SLICE.clock_factor * event_ms(case, by_name[name, "full_forward"], 14)
            for name in ("flash_qla", "fla", "flashinfer")
        }
        expected = []
        for name in ("flash_qla", "flashinfer"):
            theirs = report.public_ms[name][case]
            expected += [f"{times[name]:.3f}", f"{theirs:.3f}", f"{times[name] / theirs:.2f}"]
        fastest, t100 = min(times.values()), lab.cases[case].t100_ms
        expected += [f"{fastest:.3f}", f"{t100:.3f}", f"{fastest / t100:.2f}"]
        assert row(text, case) == expected
    assert "Predictions for h800-mig-1g.10gb: times on 14 SMs times 1.128" in text


@pytest.mark.parametrize(
    ("gpu", "widest", "within"),
    [
        (0.9, 1.019, True),
        (0.9, 1.021, False),  # 2 % of the median, 1.0, are 0.020
        (0.199, 1.022, True),  # and 3 µs more
        (0.199, 1.024, False),
        (0.2, 1.022, False),
        (None, 1.0, None),
    ],
)
def test_limits_of_the_spread(gpu: float | None, widest: float, within: bool | None) -> None:
    runs = [run_record(median, gpu) for median in (1.0, 1.0, 1.0, 1.0, widest)]
    assert spread_of(runs, "wide_gva_state").within is within
    assert spread_of(runs[1:], "wide_gva_state").within is None


def test_spread_of_five_runs(whole: Path, session: SessionFolder) -> None:
    cells = row(page(whole, "spread"), "chain_equal")
    assert cells[:6] == ["1.001", "1.002", "1.003", "1.004", "1.005", "0.900"]
    assert cells[6:] == [f"{0.4 / 1.003:.2f} %", "4.0", "20.1", "yes"]
    write_record(run_record(1.1, 0.9), session.run("champion", 3))
    goals = [goal for goal in unmet(session.path.parent) if "medians" in goal.asked]
    assert len(goals) == 8
    assert goals[0].found == "5 differ by 0.0990 ms of 0.0201 allowed"
    assert row(page(session.path.parent, "spread"), "chain_equal")[-1] == "no"


def test_a_missing_part_is_one_line(session: SessionFolder) -> None:
    session.table("16").unlink()
    session.scored("v02_tma", "live").unlink()
    session.waves(14).unlink()
    session.run("champion", 5).unlink()
    folder = session.path.parent
    (missing,) = [
        line for line in page(folder, "conditions").splitlines() if "Not measured" in line
    ]
    parts = "the table on 16 SMs, scores of v02_tma, waves on 14 SMs, repeated runs"
    assert missing == f"- Not measured yet: {parts}."
    assert "On 16 SMs: not measured yet." in page(folder, "times")
    assert "Not measured yet: 16 SMs." in page(folder, "budgets")
    assert "Not measured yet: 14 SMs." in page(folder, "waves")
    assert "Not measured yet: 1 of 5 runs of champion." in page(folder, "spread")
    unknown = [goal for goal in unmet(folder) if goal.holds is None]
    assert len(unknown) == 3 + len(CASES)


def test_without_any_record_every_block_is_one_line(tmp_path: Path) -> None:
    for block in BLOCKS:
        assert page(tmp_path, block) == "Not measured yet.", block
    assert all(goal.holds is None for goal in unmet(tmp_path))


def test_the_newest_of_two_sessions_counts(session: SessionFolder) -> None:
    later = SessionFolder(session.path.with_name("00000000"))
    record = replace(table_record(132, name="v14_cuda_graph"), created="2026-02-02T00:00:00Z")
    write_record(record, later.table("all"))
    measured = read_measured(session.path.parent, ["champion"])
    assert measured.tables["all"].submission.name == "v14_cuda_graph"
    assert len(measured.runs["champion"]) == 5
    assert "2 sessions" in page(session.path.parent, "conditions")


@pytest.mark.parametrize("name", ["table-all.json", "waves-14.json", "spread-champion-1.json"])
def test_what_is_no_raw_file(session: SessionFolder, name: str) -> None:
    (session.path / name).write_text('{"schema_version": 3}')
    with pytest.raises(BaselinesError, match=name):
        read_measured(session.path.parent, ["champion"])


def test_a_table_on_other_sms_than_its_name_says(session: SessionFolder) -> None:
    write_record(table_record(132), session.table("14"))
    with pytest.raises(BaselinesError, match="was made on all SMs"):
        read_measured(session.path.parent, [])


def test_the_command_writes_the_blocks_and_tells_what_does_not_hold(
    tmp_path: Path, whole: Path
) -> None:
    document = tmp_path / "page.md"
    block = "<!-- baselines: {} -->\nold\n<!-- baselines: end -->\n"
    document.write_text(f"Before\n{block.format('waves')}between\n{block.format('held')}after\n")
    done = CliRunner().invoke(main, [str(whole), "--page", str(document)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) == len(unmet(whole))
    assert all(line.startswith("does not hold: gpu_ms of ") for line in lines)
    text = document.read_text()
    assert re.match(r"Before\n<!-- baselines: waves -->\n\n\| SMs ", text)
    assert row(text, "waves of 14, 15, 16, 28, 29 equal CTAs on 14 SMs")[-1] == "yes"
    for wrong in (block.format("no"), block.format("held") * 2, "<!-- baselines: held -->\n"):
        with pytest.raises(MarkerError):
            with_blocks(wrong, gather(whole, document))


def test_the_committed_page_is_what_the_script_writes() -> None:
    document = PAGE.read_text()
    assert set(re.findall(r"<!-- baselines: (?!end)([a-z-]+) -->", document)) == set(BLOCKS)
    assert with_blocks(document, gather(RECORDS, PAGE)) == document
