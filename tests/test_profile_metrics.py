"""Reading the CSV of ncu and nsys.

data/ncu_raw_page.csv is written by hand in the form of ncu's raw page (names as on Hopper); its
numbers are invented and measure nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.profiling.commands import ProfilerError
from judge.profiling.metrics import (
    KernelProfile,
    NcuFormatError,
    parse_raw_page,
    representatives,
)
from judge.profiling.report import parse_nsys_times

PAGE = Path(__file__).with_name("data") / "ncu_raw_page.csv"
TEXT = PAGE.read_text()
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def page(*metrics: tuple[str, str, str]) -> str:
    """A page of one launch with these metrics: name, unit, value."""
    names, units, values = zip(*metrics, strict=True)
    rows = (
        ("ID", "Kernel Name", *names),
        ("", "", *units),
        ("0", "k", *values),
    )
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"


def only(*metrics: tuple[str, str, str]) -> KernelProfile:
    (profile,) = parse_raw_page(page(*metrics), "page.csv")
    return profile


def test_figures_of_a_launch() -> None:
    profiles = parse_raw_page(TEXT, "page.csv")
    assert [p.launch for p in profiles] == [0, 1, 2]
    first = profiles[0]
    assert first.kernel == "kernel_kernel"
    assert (first.grid, first.block) == ((4, 8, 1), (128, 1, 1))
    assert first.duration_us == pytest.approx(6318.112)
    assert (first.registers, first.dynamic_shared_bytes) == (168, 74752)
    assert first.occupancy_active_pct == pytest.approx(6.249987)
    assert first.occupancy_limit_pct == 12.5
    assert first.tensor_active_pct == pytest.approx(11.73459)
    assert first.dram_pct == pytest.approx(0.861233)
    assert first.dram_gbs == pytest.approx(41.20311820417)
    assert first.shared_pct == pytest.approx(5.417022)
    assert first.sms_busy_pct == pytest.approx(100 * 2741388.121212 / 11312904)
    assert first.missing == []


def test_stalls_are_sorted_and_their_shares_make_one() -> None:
    stalls = parse_raw_page(TEXT, "page.csv")[0].stalls
    assert [stall.reason for stall in stalls[:3]] == ["long_scoreboard", "selected", "wait"]
    assert len(stalls) == 19
    assert sum(stall.share for stall in stalls) == pytest.approx(1)
    assert stalls[0].cycles == 1.86
    assert stalls[0].share == pytest.approx(1.86 / 5.70)


def test_a_value_that_ncu_could_not_collect_is_missing() -> None:
    third = parse_raw_page(TEXT, "page.csv")[2]
    assert third.issue_active_pct is None
    assert third.missing == ["issue_active_pct"]
    assert third.tensor_active_pct == 0


def test_a_page_with_hardly_any_metric() -> None:
    profile = only(("gpu__time_duration.sum", "ms", "1.5"))
    assert profile.duration_us == pytest.approx(1500)
    assert profile.grid is None
    assert profile.stalls == []
    assert {"grid", "stalls", "dram_gbs", "tensor_active_pct"} <= set(profile.missing)


@pytest.mark.parametrize(
    ("unit", "value", "microseconds"),
    [
        *(("nsecond", "1,234,567", 1234.567), ("usecond", "1,234.5", 1234.5)),
        *(("msecond", "2.5", 2500), ("ns", "12160", 12.16), ("us", "3", 3), ("s", "1", 1e6)),
    ],
)
def test_units_of_time(unit: str, value: str, microseconds: float) -> None:
    profile = only(("gpu__time_duration.sum", unit, value))
    assert profile.duration_us == pytest.approx(microseconds)


@pytest.mark.parametrize(
    ("unit", "value", "gigabytes"),
    [
        *(("byte/second", "41,203,118,204", 41.203118204), ("Gbyte/second", "41.2", 41.2)),
        *(("Tbyte/s", "1.5", 1500), ("byte/ns", "41.2", 41.2)),
    ],
)
def test_units_of_bandwidth(unit: str, value: str, gigabytes: float) -> None:
    assert only(("dram__bytes.sum.per_second", unit, value)).dram_gbs == pytest.approx(gigabytes)


def test_other_names_for_the_same_figure() -> None:
    profile = only(
        ("launch__shared_mem_per_block_dynamic", "Kbyte/block", "74.752"),
        ("dram__bytes_read.sum.per_second", "Gbyte/s", "30"),
        ("dram__bytes_write.sum.per_second", "Gbyte/s", "12"),
        ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "0.9"),
        ("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active", "%", "11"),
        *((f"launch__grid_dim_{axis}", "", size) for axis, size in (("x", "4"), ("y", "8"))),
        ("launch__grid_dim_z", "", "1"),
        ("smsp__average_warp_latency_issue_stalled_wait.ratio", "cycle", "3"),
        ("smsp__average_warp_latency_issue_stalled_selected.ratio", "cycle", "1"),
    )
    assert profile.dynamic_shared_bytes == 74752
    assert profile.dram_gbs == pytest.approx(42)
    assert profile.dram_pct == 0.9
    assert profile.tensor_active_pct == 11
    assert profile.grid == (4, 8, 1)
    assert [(s.reason, s.share) for s in profile.stalls] == [("wait", 0.75), ("selected", 0.25)]


def test_one_launch_stands_for_a_kernel_and_the_longest_comes_first() -> None:
    shown = representatives(list(reversed(parse_raw_page(TEXT, "page.csv"))))
    assert [p.kernel.partition("<")[0] for p in shown] == [
        "kernel_kernel",
        "void at::native::vectorized_elementwise_kernel",
    ]
    assert shown[0].launch == 1  # the shorter of two


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'page.csv: no row of names with "Kernel Name"'),
        ("==ERROR== nothing here\n", 'page.csv: no row of names with "Kernel Name"'),
        (
            '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n',
            "page.csv: a row a metric; print ncu's raw page: --page raw --csv",
        ),
        ('"ID","Kernel Name"\n"",""\n', "page.csv: no launch below the row of names"),
        ('"ID","Kernel Name"\n"0","k"\n', "page.csv:2: the row of units is missing"),
        (
            '"ID","Kernel Name"\n"",""\n"0"\n',
            "page.csv:3: 1 cells where the row of names has 2",
        ),
        ('"ID","Kernel Name"\n"",""\n"","k"\n', "page.csv:3: ID: missing"),
        (
            page(("gpu__time_duration.sum", "ns", "fast")),
            "page.csv:3: gpu__time_duration.sum: 'fast' is not a number",
        ),
        (
            page((STALL.format("wait"), "inst", "1;2")),
            f"page.csv:3: {STALL.format('wait')}: '1;2' is not a number",
        ),
    ],
)
def test_a_page_that_is_none_is_one_line(text: str, message: str) -> None:
    with pytest.raises(NcuFormatError) as failure:
        parse_raw_page(text, "page.csv")
    assert str(failure.value).startswith(message)
    assert "\n" not in str(failure.value)


NSYS = """\
Generating SQLite file profiles/x.sqlite from profiles/x.nsys-rep

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,12636224,2,6318112.0,6318112.0,6310000,6326224,100.0,kernel_kernel
25.0,4212074,4,1053018.5,1053018.5,1000000,1100000,50.0,"void at::fill<float, 4>(int, float)"

"""


def test_nsys_times() -> None:
    rows = parse_nsys_times(NSYS, "x.csv")
    assert [(row.name, row.kind, row.times) for row in rows] == [
        ("kernel_kernel", "cuda", 2),
        ("void at::fill<float, 4>(int, float)", "cuda", 4),
    ]
    assert rows[0].total_us == pytest.approx(12636.224)
    assert rows[0].share == pytest.approx(12636224 / (12636224 + 4212074))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SKIPPED: x.sqlite does not contain CUDA kernel data.\n", "x.csv: no table of kernels"),
        ("Time (%),Total (ns),Instances,Name\n", "x.csv:1: no column 'Total Time (ns)'"),
        (NSYS.replace("12636224,2", "12636224,two"), "x.csv:6: not a row of kernel times"),
    ],
)
def test_an_nsys_table_that_is_none_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ProfilerError) as failure:
        parse_nsys_times(text, "x.csv")
    assert str(failure.value).startswith(message)
