"""The command line: what it prints where, and its exit statuses."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from judge.audit import Answers, answers
from judge.case import Case
from judge.cli import main
from judge.home import CACHE_VARIABLE
from judge.record import from_json
from judge.verdict import Verdict
from tests.trial import ROOT, STARTER, VERDICT_CASES, write_submission

WRONG = (
    "def gdn_prefill_forward(q, k, v, g_cumsum, beta, A, initial_state=None):\n"
    "    output, state = right(q, k, v, g_cumsum, beta, A, initial_state)\n"
    "    return (output * 2 if first_case(q) else output), state\n"
)


def judge(*arguments: str | Path) -> Result:
    """Run the command line in this process, on the CPU."""
    return CliRunner().invoke(main, ["--device", "cpu", *map(str, arguments)])


def command(*arguments: str | Path) -> list[str]:
    """The same as a command line of its own process."""
    start = [sys.executable, "run.py", "--device", "cpu", "--cases", str(VERDICT_CASES)]
    return [*start, *map(str, arguments)]


def test_csv_is_the_lab_s_three_columns_on_standard_output(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", WRONG)
    result = judge("--cases", VERDICT_CASES, "--submission", path, "--output-format", "csv")
    lines = result.stdout.splitlines()
    assert lines[0] == "case,correctness,median_ms"
    assert lines[1] == "first,FAIL,"
    name, word, milliseconds = lines[2].split(",")
    assert (name, word) == ("second", "PASS")
    assert len(milliseconds.partition(".")[2]) == 6
    assert float(milliseconds) > 0
    assert len(lines) == 3
    assert result.exit_code == 1
    assert "first: WRONG: untimed call: output" in result.stderr
    assert "timing is not official" in result.stderr


def test_json_is_a_record_of_everything() -> None:
    result = judge("--cases", VERDICT_CASES, "--output-format", "json", "--repetitions", "2")
    assert result.exit_code == 0
    record = from_json(result.stdout)
    assert [r.case.name for r in record.results] == ["first", "second"]
    assert all(r.verdict is Verdict.PASS for r in record.results)
    assert all(len(r.timing.samples_ms) == 2 for r in record.results)
    assert record.baseline.source == "reference"
    assert set(record.baseline.timings) == {"first", "second"}
    for name, t100 in record.baseline.t100_ms.items():
        # on a CPU the float32 implementation is t100, and t60 = 4 · t100
        assert t100 == record.baseline.timings[name].median_ms
        assert record.baseline.t60_ms[name] == pytest.approx(4 * t100)
    assert record.protocol.clock == "host_clock"
    assert not record.protocol.official
    assert Path(record.submission.log).is_file()


def test_table_and_full_csv(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", WRONG)
    arguments = ("--cases", VERDICT_CASES, "--submission", path)
    table = judge(*arguments)
    assert table.exit_code == 1
    for text in ("WRONG", "PASS", "no_tilelang", "not official", "out of tolerance"):
        assert text in table.stdout
    full = judge(*arguments, "--output-format", "csv-full")
    rows = list(csv.DictReader(io.StringIO(full.stdout)))
    assert [row["verdict"] for row in rows] == ["WRONG", "PASS"]
    assert rows[0]["score"] == "0"
    assert float(rows[1]["score"]) > 0
    assert [row["charged_ms"] for row in rows] == ["", "0.000000"]


def test_last_step_of_csoj_exits_with_0_whatever_the_verdict(tmp_path: Path) -> None:
    path = write_submission(tmp_path / "s", "raise ValueError('boom')\n")
    arguments = ("--cases", VERDICT_CASES, "--submission", path, "--baseline", "none")
    result = judge(*arguments, "--protocol", "lab", "--output-format", "csoj")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["score"] == 0
    assert told["info"]["cases"]["first"]["verdict"] == "IMPORT_ERROR"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--case", "chain_eqal"),
            "Error: --case: 'chain_eqal' is not there; did you mean chain_equal",
        ),
        (("--suite", "pubic"), "Error: --suite: 'pubic' is not there; did you mean public?"),
        (("--cases", "no_such.yaml"), "no_such.yaml: "),
        (("--submission", "no_such_folder"), "no_such_folder: no such file or folder"),
        (("--device", "cuda:x"), "no such device; use auto, cuda, cuda:N or cpu"),
        (("--device", "tpu"), "no such device; use auto, cuda, cuda:N or cpu"),
        (("--baseline", "live"), "use --baseline reference"),
        (("--baseline", "checkpoints"), "use --baseline reference"),
        (("--baseline", "live"), "public implementations need a CUDA device"),
        (("calibrate", "--device", "cpu"), "calibrate: public implementations need a CUDA device"),
        (("check", "submissions/starter", "--store", "/proc/s"), "/proc/s: unable to open"),
        (("check", "submissions/starter", "--store", "/proc/x/s"), "/proc/x: no such folder"),
        (("--baseline", "no_such_file.yaml"), "no_such_file.yaml: "),
        (("--baseline", "cases/public.yaml"), "cases/public.yaml: a suite file, not a checkpoint"),
        (("--sms", "4"), "--sms 4: needs a CUDA device; leave it out on a CPU"),
        (("check", "no_such_folder"), "no_such_folder: no such file or folder"),
        (("profile", "no_such_folder", "--case", "chain_equal"), "no such file or folder"),
        (("--case", "nope"), "use one of short_tail_state, chain_equal, "),
        (("submissions/starter",), "a submission is named with --submission submissions/starter"),
        (("--repetitions", "0"), "--repetitions"),
        (("--warmup", "-1"), "--warmup"),
        (("--timeout", "0"), "--timeout"),
        (("--timeout", "nan"), "--timeout"),
        (("--timeout", "inf"), "--timeout"),
        (("--repetitions", "1000000000"), "--repetitions"),
        (("--seed", "x"), "--seed"),
        (("--output-format", "xml"), "--output-format"),
        (
            ("--reference-benchmarks", "--output-format", "csoj"),
            "--reference-benchmarks: csoj shows none; use --output-format table, csv or json",
        ),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_wrong_usage_is_status_2_with_a_line_that_says_what_to_change(
    arguments: tuple[str, ...], message: str
) -> None:
    result = judge(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_cases_are_listed_with_their_sizes_and_gates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    result = judge("--list-cases", "--suite", "public", "--case", "single_chain_mixed")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["suite", "case", "B", "T", "Hq", "Hv", "gate", "state"]
    assert len(rows) == 2 + 8 + 1
    # docs/lab.md: B, T, Hq, Hv
    assert ["public", "deep_gva_state", "1", "16384", "8", "32", "random_decay", "yes"] in rows
    assert ["public", "parallel_gva", "1", "2048", "4", "16", "mixed", "no"] in rows
    assert rows[-1][:2] == ["hidden", "single_chain_mixed"]
    rows = [line.split() for line in judge("--list-cases").stdout.splitlines()[2:]]
    suites = list(dict.fromkeys(row[0] for row in rows))
    assert suites == ["public", "correctness", "smoke", "hidden"]
    form = judge("--list-cases", "--output-format", "csv")
    assert form.exit_code == 2
    assert "--list-cases is a table; leave --output-format out" in form.stderr


def test_participants_are_listed_no_hidden_case() -> None:
    known = judge("--list-cases", "--view", "participant")
    assert known.exit_code == 0
    assert "\npublic " in known.stdout
    assert "hidden" not in known.stdout
    for asked in (
        ("--suite", "hidden"),
        ("--case", "many_short_state"),
        ("--case", "many_short_stat"),
    ):
        result = judge("--list-cases", "--view", "participant", *asked)
        assert result.exit_code == 2
        assert "is not there" in result.stderr
        named = re.findall(r"\w+", result.stderr.partition(" is not there")[2])
        assert "many_short_state" not in named
        assert result.stdout == ""


def test_a_hidden_failure_ends_at_its_verdict_for_participants(tmp_path: Path) -> None:
    file = tmp_path / "hidden.yaml"
    file.write_text(VERDICT_CASES.read_text().replace("suite: verdicts", "suite: hidden"))
    path = write_submission(tmp_path / "s", "raise ValueError('boom')\n")
    words = ("--cases", file, "--submission", path, "--output-format", "csv", "--baseline", "none")
    lines = judge(*words, "--protocol", "lab", "--view", "participant").stderr.splitlines()
    assert [line for line in lines if line.startswith("h")] == [
        "h1: IMPORT_ERROR",
        "h2: IMPORT_ERROR",
    ]


def test_piped_tables_are_whole_and_say_once_what_is_not_sandboxed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    cache = tmp_path / ("long_name_" * 9)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    short = ("--cases", VERDICT_CASES, "--case", "first", "--sandbox", "off", "--baseline", "none")
    table = judge(*short, "--protocol", "lab")
    lines = table.stdout.splitlines()
    (log,) = (line for line in lines if line.startswith("Log "))
    assert Path(log.split()[1]).is_file()
    assert Path(log.split()[1]).is_relative_to(cache)
    assert all(line == line.rstrip() for line in lines)
    told = judge(*short, "--protocol", "lab", "--output-format", "csv").stderr
    assert told.count("not sandboxed by bubblewrap") == 1


def test_wrong_case_file_names_file_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "suite: mine\ntolerance: 5e-3\ncases:\n"
        "  - {name: odd, batch: 1, tokens: 64, qk_heads: 4, v_heads: 6}\n"
    )
    result = judge("--cases", file)
    assert result.exit_code == 2
    assert result.stderr.strip() == (
        f"Error: {file}:4: cases[0].v_heads: 6 is not a multiple of qk_heads 4; use 4, 8, 12, …"
    )


def test_case_larger_than_any_memory_is_refused_with_its_field(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    sizes = "batch: 9000000, tokens: 9000000, qk_heads: 1, v_heads: 1"
    file.write_text(f"suite: mine\ntolerance: 5e-3\ncases:\n  - {{name: big, {sizes}}}\n")
    result = judge("--cases", file)
    assert result.exit_code == 2
    assert f"{file}:4: cases[0].tokens: " in result.stderr


def test_a_judge_that_fails_at_one_case_says_so_and_grades_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from judge import bench

    def failing(case: Case, *others: object) -> Answers:
        if case.name == "first":
            raise RuntimeError("not enough memory")
        return answers(case, *others)

    monkeypatch.setattr(bench, "answers", failing)
    result = judge("--cases", VERDICT_CASES, "--output-format", "csv")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1] == "first,FAIL,"
    assert result.stdout.splitlines()[2].startswith("second,PASS,")
    assert "first: NOT_RUN: the judge failed: RuntimeError: not enough memory" in result.stderr


def test_unusable_cache_folder_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GDN_JUDGE_CACHE", "/proc/no_such_folder")
    result = judge("--suite", "smoke")
    assert result.exit_code == 2
    assert "set GDN_JUDGE_CACHE to a folder of yours" in result.stderr


def test_messages_about_files_hold_no_escapes(tmp_path: Path) -> None:
    (tmp_path / "tilelang_fwd.py").write_text("")
    (tmp_path / "a\x1b[31mX.txt").symlink_to("/etc/hostname")
    result = judge("--submission", tmp_path)
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr


def test_cuda_on_a_machine_without_it_is_wrong_usage() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    result = CliRunner().invoke(main, ["--device", "cuda"])
    assert result.exit_code == 2
    assert "this machine has no CUDA device; use --device cpu" in result.stderr


def test_interrupt_prints_finished_cases_ends_children_and_exits_130(tmp_path: Path) -> None:
    body = WRONG.replace("output * 2", "output").replace(
        "    return", "    if not first_case(q): hang()\n    return"
    )
    hang = "def hang():\n    import time\n    print('hanging', flush=True)\n    time.sleep(99)\n"
    path = write_submission(tmp_path / "s", hang + body)
    process = subprocess.Popen(
        command("--submission", path, "--output-format", "csv"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {CACHE_VARIABLE: str(tmp_path / "cache")},
        # a test run in the background ignores SIGINT, and its children would inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    _wait_until_hanging(process, tmp_path / "cache")
    children = _descendants_of(process.pid)
    assert children
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert [line.split(",")[:2] for line in stdout.splitlines()] == [
        ["case", "correctness"],
        ["first", "PASS"],
    ]
    assert "Traceback" not in stderr
    assert "interrupted" in stderr
    _wait_until_gone(children)


def test_a_killed_judge_leaves_no_child(tmp_path: Path) -> None:
    body = "import time\nprint('hanging', flush=True)\ntime.sleep(99)\n"
    path = write_submission(tmp_path / "s", body)
    process = subprocess.Popen(
        command("--submission", path),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {CACHE_VARIABLE: str(tmp_path / "cache")},
    )
    _wait_until_hanging(process, tmp_path / "cache")
    children = _descendants_of(process.pid)
    assert children
    process.kill()
    process.wait()
    _wait_until_gone(children)


def test_piped_output_holds_no_escapes_and_no_progress() -> None:
    finished = subprocess.run(
        command("--submission", STARTER),
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"TERM": "xterm-256color"},
        check=False,
    )
    assert finished.returncode == 0
    assert "\x1b" not in finished.stdout + finished.stderr
    assert "·" not in finished.stderr


def _wait_until_hanging(judge: subprocess.Popen, cache: Path) -> None:
    """Until the submission has said so in its log, the only file that it reaches."""
    deadline = time.monotonic() + 90
    while not any("hanging" in log.read_text() for log in cache.glob("logs/*submission*.log")):
        assert time.monotonic() < deadline
        assert judge.poll() is None
        time.sleep(0.1)


def _descendants_of(parent: int) -> list[int]:
    children = _children_of(parent)
    return children + [further for child in children for further in _descendants_of(child)]


def _children_of(parent: int) -> list[int]:
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            children.append(int(stat.parent.name))
    return children


def _wait_until_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(_is_alive(process) for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
