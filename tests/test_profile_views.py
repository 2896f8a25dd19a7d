"""A profile as table, CSV, JSON and picture."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from judge.profiling import picture
from judge.profiling.metrics import KernelProfile, parse_raw_page
from judge.profiling.report import ProfileReport, TimeRow, to_json
from judge.profiling.stalls import MEANINGS
from judge.profiling.view import print_report, to_csv

PAGE = Path(__file__).with_name("data") / "ncu_raw_page.csv"
LAUNCHES = parse_raw_page(PAGE.read_text(), "page.csv")
REPORT = ProfileReport("ncu", "v01_gemm", "long_low_gva", "NVIDIA H200", 2, launches=LAUNCHES)


def printed(report: ProfileReport, width: int = 120) -> str:
    text = io.StringIO()
    print_report(report, Console(file=text, width=width))
    return text.getvalue()


def test_table_of_figures_and_stalls() -> None:
    text = printed(REPORT)
    for words in (
        *("v01_gemm on long_low_gva, NVIDIA H200, by ncu", "6,310.0 µs", "4×8×1, 128×1×1"),
        *("74,752 B", "11.7 %", "41.4 GB/s", "6,318.1, 6,310.0"),
        *("long scoreboard", "1.85   32.5 %", "data from global or local memory"),
    ):
        assert words in text
    assert "–" in text  # the figure that was not collected


def test_times_are_a_call() -> None:
    rows = [TimeRow("kernel_kernel", "cuda", 4, 100.0, 1.0)]
    text = printed(ProfileReport("nsys", "s", "c", "d", 2, times=rows))
    assert "kernel_kernel" in text
    assert "50.0" in text


def test_names_reach_a_terminal_without_markup_or_escapes() -> None:
    name = "[red]k\x1b[31m[/nope]"
    text = printed(ProfileReport("ncu", name, "c", "d", 1, launches=[KernelProfile(0, name)]))
    assert "[red]k[/nope]" in text
    assert "\x1b" not in text
    assert "no stall reasons were collected" in text


def test_csv_has_a_row_a_launch() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(REPORT))))
    assert [row["launch"] for row in rows] == ["0", "1", "2"]
    assert rows[0]["duration_us"] == "6318.11"
    assert rows[0]["grid"] == "4x8x1"
    assert rows[0]["stall_long_scoreboard"] == "1.86"
    assert rows[2]["issue_active_pct"] == ""
    times = ProfileReport("torch", "s", "c", "d", 1, times=[TimeRow("=1+1", "cpu", 1, 2.0, 1.0)])
    assert to_csv(times).splitlines()[1] == "'=1+1,cpu,1,2.000,1.000000"


def test_json_holds_everything() -> None:
    data = json.loads(to_json(REPORT))
    assert data["schema_version"] == 1
    assert data["launches"][0]["stalls"][0]["reason"] == "long_scoreboard"
    assert data["launches"][2]["issue_active_pct"] is None


def test_every_reason_of_hopper_has_a_meaning() -> None:
    assert {stall.reason for launch in LAUNCHES for stall in launch.stalls} <= set(MEANINGS)


def test_picture_as_png_and_svg(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    png, svg = picture.draw_stalls(LAUNCHES, "v01_gemm on $x$", tmp_path / "v01.x-stalls")
    assert (png.name, svg.name) == ("v01.x-stalls.png", "v01.x-stalls.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size > 20_000
    text = svg.read_text()
    for words in ("long scoreboard", "share of warp cycles, %", "v01_gemm on $x$", "32.5 %"):
        assert words in text


def test_nothing_is_drawn_without_stalls(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert picture.draw_stalls([KernelProfile(0, "k")], "t", tmp_path / "x") == []
    assert list(tmp_path.iterdir()) == []
