"""`run.py profile` end to end: with PyTorch's profiler, and with stand-ins for ncu and nsys."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from make_record import make_case, make_record, make_result, make_suite

from judge.cli import main
from judge.commands import profile as profile_command
from judge.record import to_json
from judge.verdict import Verdict
from tests.permissions import bound_by_permissions, open_folder
from tests.trial import ROOT, STARTER, VERDICT_CASES, write_submission

PAGE = ROOT / "tests" / "data" / "ncu_raw_page.csv"
NSYS_TABLE = (
    "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,12636224,2,6318112.0,kernel_kernel\n"
)
_STAND_IN = """\
#!{python}
import sys
arguments = sys.argv[1:]
open({calls!r}, "a").write(" ".join(arguments) + chr(10))
if "--import" in arguments or arguments[0] == "stats":
    print(open({page!r}).read(), end="")
else:
    if {log!r}:
        open(arguments[arguments.index("--log-file") + 1], "w").write({log!r})
    if {report!r}:
        stem = [a.removeprefix("--output=") for a in arguments if a.startswith("--output=")]
        name = stem[0] + ".nsys-rep" if stem else arguments[arguments.index("--export") + 1]
        open(name, "w").close()
    print({stdout!r}, end="")
"""

StandIn = Callable[..., Path]


def profile(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["profile", *map(str, arguments)])


def record(verdict: Verdict = Verdict.PASS, detail: str = "") -> str:
    """What the judge inside prints, among lines of the profiler's own."""
    case = make_case("smoke_tail_state")
    result = make_result("smoke", case, verdict=verdict, median_ms=6.3, detail=detail)
    text = to_json(make_record([make_suite("smoke", [case])], [result]))
    return f"Generating '/tmp/x.qdstrm'\n{text}\nGenerated:\n"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Put a program of a profiler's name on PATH, and pretend that there is a GPU."""

    def make(tool: str, stdout: str, page: Path, *, report: bool = True, log: str = "") -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        calls = tmp_path / "calls.txt"
        program = folder / tool
        program.write_text(
            _STAND_IN.format(
                python=sys.executable,
                calls=str(calls),
                page=str(page),
                log=log,
                report=report,
                stdout=stdout,
            )
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setattr(profile_command, "choose_device", lambda name: torch.device("cuda", 0))
        return calls

    return make


def on_smoke(output: Path, *arguments: str) -> Result:
    return profile(STARTER, "--case", "smoke_tail_state", "--output", output, *arguments)


def test_torch_profiles_a_case_on_a_cpu(tmp_path: Path) -> None:
    result = on_smoke(tmp_path / "out", "--device", "cpu", "--output-format", "json")
    assert result.exit_code == 0, result.stderr
    assert "profiling with torch" in result.stderr
    report = json.loads(result.stdout)
    assert (report["tool"], report["case"], report["calls"]) == ("torch", "smoke_tail_state", 2)
    names = {row["name"] for row in report["times"]}
    assert "aten::bmm" in names
    assert all(row["kind"] == "cpu" and row["total_us"] > 0 for row in report["times"])
    # 2 calls of 4 chunks each: as many products of each kind at least
    assert next(r["times"] for r in report["times"] if r["name"] == "aten::bmm") % 8 == 0
    for file in report["files"]:
        assert Path(file).stat().st_size > 0


def test_a_folder_that_cannot_be_written_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = on_smoke(tmp_path / "file" / "out", "--device", "cpu")
    assert result.exit_code == 2
    assert "file/out: Not a directory; name another folder (--output)" in result.stderr
    with open_folder() as folder:
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0o555)
        with bound_by_permissions():
            result = on_smoke(folder / "closed", "--device", "cpu")
    assert result.exit_code == 2
    assert "closed: Permission denied; name another folder (--output)" in result.stderr


def test_a_kernel_is_chosen_with_ncu_alone(tmp_path: Path) -> None:
    result = on_smoke(tmp_path / "out", "--device", "cpu", "--kernel", "main", "--tool", "torch")
    assert result.exit_code == 2
    assert "--kernel: torch takes every kernel; leave it out, or use ncu" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_submission_that_fails_gets_its_verdict_and_no_profile(tmp_path: Path) -> None:
    body = (
        "def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"
        "    import os\n"
        "    kept = os.environ.get('NV_TPS_LAUNCH_TOKEN'), os.environ.get('MY_TOKEN')\n"
        "    raise RuntimeError(f'{kept} {os.environ[\"TMPDIR\"]}')\n"
    )
    path = write_submission(tmp_path / "s", body)
    environment = {"NV_TPS_LAUNCH_TOKEN": "ncu", "MY_TOKEN": "x", "TMPDIR": str(tmp_path)}
    arguments = (path, "--cases", VERDICT_CASES, "--case", "first", "--tool", "torch")
    result = CliRunner(env=environment).invoke(
        main, ["profile", *map(str, arguments), "--device", "cpu", "--output", str(tmp_path / "o")]
    )
    assert result.exit_code == 1
    # what ncu sets for the processes it follows reaches the child, a secret does not
    assert f"first: CRASH: RuntimeError: ('ncu', None) {tmp_path}" in result.stderr
    assert result.stdout == ""
    assert list((tmp_path / "o").iterdir()) == []


def test_ncu_end_to_end(tmp_path: Path, stand_in: StandIn) -> None:
    pytest.importorskip("matplotlib")
    calls = stand_in("ncu", record(), PAGE)
    result = on_smoke(tmp_path / "out", "--launches", "3")
    assert result.exit_code == 0, result.stderr
    for words in ("kernel_kernel", "long scoreboard", "written: ", "issue_active_pct"):
        assert words in result.stdout
    assert "+ ncu --target-processes all --clock-control none" in result.stderr
    assert "--launch-count 3" in calls.read_text().splitlines()[0]
    stem = "starter-smoke_tail_state-ncu"
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        *(f"{stem}-figures.csv", f"{stem}-stalls.png", f"{stem}-stalls.svg"),
        *(f"{stem}.csv", f"{stem}.json", f"{stem}.ncu-rep"),
    ]
    assert (tmp_path / "out" / f"{stem}.csv").read_text() == PAGE.read_text()


def test_a_picture_needs_matplotlib(
    tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_command, "can_draw", lambda: False)
    stand_in("ncu", record(), PAGE)
    result = on_smoke(tmp_path / "out", "--output-format", "csv")
    assert result.exit_code == 0
    assert result.stdout.startswith("launch,kernel,grid,block,duration_us,")
    assert "no picture: matplotlib is not installed; pip install matplotlib" in result.stderr
    assert not list((tmp_path / "out").glob("*.png"))


def test_nsys_end_to_end(tmp_path: Path, stand_in: StandIn) -> None:
    table = tmp_path / "table.csv"
    table.write_text(NSYS_TABLE)
    stand_in("nsys", record(), table)
    result = on_smoke(tmp_path / "out", "--tool", "nsys", "--output-format", "csv")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "name,kind,times,total_us,share",
        "kernel_kernel,cuda,2,12636.224,1.000000",
    ]


@pytest.mark.parametrize(
    ("stdout", "report", "log", "page", "message"),
    [
        (
            record(Verdict.WRONG, "untimed call: output off"),
            *(True, "", PAGE, "smoke_tail_state: WRONG: untimed call: output off"),
        ),
        (
            record(),
            *(False, "==WARNING== No kernels were profiled.\n", PAGE),
            "Error: ncu saw no kernel in the timed calls; ",
        ),
        (
            "",
            *(False, "==ERROR== ERR_NVGPUCTRPERM - The user has no permission\n", PAGE),
            "Error: ncu may not read the GPU's performance counters here",
        ),
        ("no record\n", False, "", PAGE, "Error: ncu ended with status 0 and no record; see "),
        (record(), True, "", VERDICT_CASES, 'no row of names with "Kernel Name"'),
    ],
)
def test_what_can_go_wrong_with_ncu_is_one_line(
    tmp_path: Path,
    stand_in: StandIn,
    stdout: str,
    report: bool,
    log: str,
    page: Path,
    message: str,
) -> None:
    stand_in("ncu", stdout, page, report=report, log=log)
    result = on_smoke(tmp_path / "out")
    assert result.exit_code == 1
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_missing_profiler_is_one_line_and_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for tool, how in (("ncu", "CUDA toolkit"), ("nsys", "Nsight Systems")):
        result = on_smoke(tmp_path / "out", "--tool", tool)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"Error: {tool} is not on PATH: ")
        assert how in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (STARTER, "--case", "chain_eqal"),
            "--case: 'chain_eqal' is not there; did you mean chain_equal",
        ),
        (("no_such", "--case", "chain_equal"), "no_such: no such file or folder"),
        ((STARTER,), "--case"),
        ((STARTER, "--case", "chain_equal", "--launches", "0"), "--launches"),
        ((STARTER, "--case", "chain_equal", "--device", "tpu"), "no such device"),
    ],
)
def test_wrong_usage_is_status_2(arguments: tuple[str | Path, ...], message: str) -> None:
    result = profile(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
