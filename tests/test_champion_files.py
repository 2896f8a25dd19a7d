"""The champion's raw files: which of its demands they meet, and what is none of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.verdict import Verdict
from scripts.baselines.sessions import BaselinesError
from scripts.champion.raw import RawError
from scripts.ladder.records import LadderError
from tests.champion_files import (
    asked,
    failing,
    few_record,
    gpu_time,
    public_record,
    read_all,
    record_of,
    suites_record,
    write,
    write_all,
    write_sweep,
    write_table,
)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    write_all(folder)
    return folder


def test_all_demands_hold(raw: Path) -> None:
    assert asked(raw, False) == asked(raw, None) == []


def test_demands_that_fail(raw: Path) -> None:
    record = public_record()
    slow = record.results[4]
    slow.gpu_ms = gpu_time("flash_qla core", slow.case) * 1.01
    write(raw, "public.json", record)
    assert failing(raw) == [
        "faster than FlashQLA's core on every public case",
        "long_low_gva in 0.098 ms of GPU time",
    ]
    slow.timing.median_ms = slow.gpu_ms + 0.0121
    for one in record.rivals:
        one.gpu_ms *= 0.8
    write(raw, "public.json", record)
    assert failing(raw)[0] == "the host adds at most 0.012 ms to a call"
    assert "at most 0.6 of FlashQLA's core in geometric mean" in failing(raw)


def test_a_low_score_and_another_baseline_fail(raw: Path) -> None:
    score = "a public score of 118 or more on 16 SMs, baselines live"
    write(raw, "public_16_sms.json", few_record(1.1))
    assert failing(raw) == [score]
    record = few_record()
    write(
        raw,
        "public_16_sms.json",
        replace(record, baseline=replace(record.baseline, source="reference")),
    )
    assert failing(raw) == [score]


def test_a_cliff_and_a_difference_fail(raw: Path) -> None:
    text = (raw / "sweep.csv").read_text()
    (raw / "sweep.csv").write_text(text.replace(",1.080,0.250", ",1.101,0.250", 1))
    assert failing(raw) == ["no shape above 1.1 of the faster of v14 and FlashQLA"]
    (raw / "sweep.csv").write_text(text.replace(",1.080,0.250", ",1.080,inf", 1))
    assert failing(raw) == ["no shape more than 2 tolerances from v14"]


def test_a_sweep_that_was_cut_off_is_no_proof(raw: Path) -> None:
    write_sweep(raw, keep=lambda case: case.tokens < 4096)
    unknown = asked(raw, None)
    assert unknown == [
        "no shape above 1.1 of the faster of v14 and FlashQLA",
        "no shape more than 2 tolerances from v14",
    ]


def test_a_wrong_case_and_the_lab_s_protocol_fail(raw: Path) -> None:
    record = suites_record()
    record.results[20].verdict = Verdict.WRONG
    write(raw, "all_suites.json", record)
    assert len(failing(raw)) == 1
    record.results[20].verdict = Verdict.PASS
    write(raw, "all_suites.json", replace(record, protocol=replace(record.protocol, name="lab")))
    assert len(failing(raw)) == 1
    write(raw, "all_suites.json", replace(record_of("champion"), score=record.score))
    assert failing(raw) == []


def test_versions_come_from_the_ladder_too(raw: Path) -> None:
    (raw / "v01_gemm.json").unlink()
    ladder = raw.parent / "ladder"
    ladder.mkdir()
    write(ladder, "v01_gemm-all.json", record_of("v01_gemm"))
    other = record_of("v02_tma")
    (raw / "v02_tma.json").unlink()
    machine = replace(other.environment, device_name="another GPU")
    write(ladder, "v02_tma-all.json", replace(other, environment=machine))
    assert set(read_all(raw).versions) == {"v01_gemm", "v07_gva_dv", "v14_cuda_graph"}


def write_elsewhere(raw: Path) -> dict[str, Path]:
    """The champion's records among the baselines and on the ladder; by name in its folder."""
    ladder = raw.parent / "ladder"
    ladder.mkdir()
    write(ladder, "champion-all.json", suites_record())
    return {
        "public.json": write_table(raw, "aa", "all", public_record()),
        "public_16_sms.json": write_table(raw, "bb", "16", few_record()),
        "all_suites.json": ladder / "champion-all.json",
    }


def test_what_other_pages_have_serves_without_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    files = write_elsewhere(folder)
    found = read_all(folder)
    assert found.files == files
    assert [len(one.results) for one in (found.public, found.few, found.suites)] == [8, 8, 65]
    assert found.missing == ["variants", "other shapes", "the device's ceilings", "other versions"]
    # What is left are the two demands on a sweep; every aim is reached.
    assert asked(folder, False) == []
    assert len(asked(folder, None)) == 2


def test_own_files_go_before_newer_ones_elsewhere(raw: Path) -> None:
    write_elsewhere(raw)
    write_table(raw, "cc", "all", public_record(), day=9)
    names = {"public.json", "public_16_sms.json", "all_suites.json"}
    files = read_all(raw).files
    assert {name: files[name] for name in names} == {name: raw / name for name in names}
    (raw / "public.json").unlink()
    assert read_all(raw).files["public.json"] == raw.parent / "baselines" / "cc" / "table-all.json"


def test_every_file_that_was_read_is_named(raw: Path) -> None:
    files = read_all(raw).files
    assert files == {name: raw / name for name in files}
    # The JSON beside a sweep goes with it.
    assert set(files) == {file.name for file in raw.iterdir()} - {"sweep.json"}


@pytest.mark.parametrize(("first", "second", "newest"), [(3, 5, "bb"), (5, 3, "aa")])
def test_the_newest_session_counts(tmp_path: Path, first: int, second: int, newest: str) -> None:
    folder = tmp_path / "raw"
    write_table(folder, "aa", "all", public_record(), first)
    write_table(folder, "bb", "all", public_record(), second)
    assert read_all(folder).files["public.json"].parent.name == newest
    assert read_all(folder).public.created == "2026-01-05T03:04:05+00:00"


def test_a_newer_table_of_another_submission_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    write_table(folder, "bb", "all", record_of("v14_cuda_graph"), day=9)
    assert read_all(folder).public is None
    older = write_table(folder, "aa", "all", public_record(), day=3)
    assert read_all(folder).files == {"public.json": older}


def test_a_table_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    write_table(folder, "aa", "16", public_record())
    with pytest.raises(BaselinesError, match=r"table-16\.json: was made on all SMs$"):
        read_all(folder)


@pytest.mark.parametrize("part", ["baselines/aa/table-all.json", "ladder/champion-all.json"])
@pytest.mark.parametrize("content", ["", "{", '{"schema_version": 3}', "[]"])
def test_what_is_no_record_elsewhere_is_one_line(tmp_path: Path, part: str, content: str) -> None:
    file = tmp_path / part
    file.parent.mkdir(parents=True)
    file.write_text(content)
    with pytest.raises((BaselinesError, LadderError), match="no record") as told:
        read_all(tmp_path / "raw")
    assert str(told.value).startswith(f"{file}: ")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "record", "told"),
    [
        ("public.json", few_record(), "should be of all SMs, is of 16"),
        ("public_16_sms.json", public_record(), "should be of 16 SMs, is of 132"),
        ("all_suites.json", record_of("v14_cuda_graph"), "is of v14_cuda_graph"),
    ],
)
def test_a_file_that_is_something_else(raw: Path, name: str, record: object, told: str) -> None:
    write(raw, name, record)
    with pytest.raises(RawError, match=told):
        read_all(raw)


@pytest.mark.parametrize("name", ["public.json", "variants.json", "sweep.csv", "ceilings.json"])
def test_a_file_that_is_cut_off(raw: Path, name: str) -> None:
    content = (raw / name).read_bytes()
    (raw / name).write_bytes(content[: len(content) // 2 + 3])
    with pytest.raises(RawError, match=name):
        read_all(raw)


def test_a_sweep_without_its_json(raw: Path) -> None:
    (raw / "sweep.json").unlink()
    with pytest.raises(RawError, match=r"sweep\.json is missing"):
        read_all(raw)
