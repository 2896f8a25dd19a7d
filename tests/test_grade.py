"""`run.py grade`: a small class of every kind of submission, killed at random and started again."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.caches import TARGET_VARIABLES
from judge.cli import main
from judge.home import CACHE_VARIABLE
from judge.store.store import Store
from judge.submission import ENTRY
from tests.checking import HEAD, forward, kernel
from tests.test_uploads import make_tar, make_zip, special
from tests.trial import ROOT, STARTER

SUITE = """
suite: small
tolerance: 5e-3
cases:
  - {name: timed, batch: 1, tokens: 65, qk_heads: 1, v_heads: 2, initial_state: 1}
"""
BODY = """
import ctypes
import os
import sys
import time
import torch
from right import gdn_prefill_forward as right

calls = []

def gdn_prefill_forward(*inputs):
    calls.append(1)
    output, state = right(*inputs)
    {change}
    return output, state
"""
MARKUP = "[bold]&<i>'=x"
KINDS = {
    "right": ("pass", "PASS"),
    "张三": ("pass", "PASS"),
    "李四 <b>": ("calls.clear()", "PASS"),
    MARKUP: ("pass", "PASS"),
    "slow": ("time.sleep(0.05)", "PASS"),
    "copies": ("output, state = output.clone(), state.clone()", "PASS"),
    "flooding": ("print('x' * 6_000_000)", "PASS"),
    "wrong": ("output = output * 2", "WRONG"),
    "row": ("output[:, -1] += 1", "WRONG"),
    "state": ("state = state.transpose(-1, -2).contiguous()", "WRONG"),
    "early": ("state = inputs[6].clone()", "WRONG"),
    "writing": ("inputs[2].zero_()", "WRONG"),
    "nan": ("state = state * float('nan')", "BAD_RESULT"),
    "dtype": ("output = output.float()", "BAD_RESULT"),
    "shape": ("output = output[:, 1:]", "BAD_RESULT"),
    "nothing": ("output = None", "BAD_RESULT"),
    "crashing": ("raise ValueError('[red]\\x1b[31m')", "CRASH"),
    "exiting": ("os._exit(0)", "CRASH"),
    "segment": ("ctypes.string_at(0)", "CRASH"),
    "recursing": ("(lambda f: f(f))(lambda f: f(f))", "CRASH"),
    "hanging": ("len(calls) == 2 and time.sleep(999)", "TIMEOUT"),
    "cuda": ("output.cuda()", "NOT_RUN"),
}
"""What is changed in a right implementation, and the verdict that this earns."""

WHOLE = {
    "syntax": ("def gdn_prefill_forward(:", "IMPORT_ERROR"),
    "unnamed": ("def forward():\n    pass", "IMPORT_ERROR"),
    "raising": ("raise RuntimeError('<script>')", "IMPORT_ERROR"),
}
NVCC = shutil.which("nvcc") is not None
BAD_KERNEL = HEAD + kernel("T.no_such_call(v)") + forward()
TILELANG = {
    "tile": (HEAD + kernel() + forward(), "NOT_RUN"),
    "tile-wide": (HEAD + kernel(threads=256) + forward(), "NOT_RUN"),
    "tile-bad": (BAD_KERNEL, "COMPILE_ERROR" if NVCC else "NOT_RUN"),
    "瓦片": (BAD_KERNEL + "x = 1\n", "COMPILE_ERROR" if NVCC else "NOT_RUN"),
}
"""Whole sources. Without a GPU a kernel is not run, unless it is found not to compile."""

GRADED = {name: verdict for name, (_, verdict) in (KINDS | WHOLE | TILELANG).items()}
STOPS = (
    *(signal.SIGKILL, signal.SIGKILL, signal.SIGINT),
    *(signal.SIGKILL, signal.SIGKILL, signal.SIGKILL),
)
JOBS = ("2", "1")
"""Of one run and the next."""

INTERRUPTED = 130


def upload_class(folder: Path) -> set[str]:
    """One upload of each kind, in every form; the names of those that are to be refused."""
    right = STARTER.read_bytes()
    for number, (name, (change, _)) in enumerate(KINDS.items()):
        files = {ENTRY: BODY.format(change=change).encode(), "right.py": right}
        if number % 3 == 1:
            make_zip(folder / f"{name}.zip", {f"student/{k}": v for k, v in files.items()})
        elif number % 3 == 2:
            make_tar(folder / f"{name}.tar.gz", {f"x/{k}": v for k, v in files.items()})
        else:
            for file, content in files.items():
                path = folder / name / "student" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    for name, (source, _) in (WHOLE | TILELANG).items():
        (folder / f"{name}.py").write_text(source)
    return upload_malice(folder)


def upload_malice(folder: Path) -> set[str]:
    """Archives and links that are to be refused; their names."""
    entry = {ENTRY: b""}
    make_zip(folder / "climbing.zip", entry | {"../../climbed.py": b""})
    make_zip(folder / "absolute.zip", entry | {"/tmp/climbed.py": b""})
    make_zip(folder / "growing.zip", entry | {"data": bytes(2**27)})
    make_tar(folder / "climbing-tar.tar.gz", entry | {"../climbed.py": b""})
    for name, kind, target in (
        ("pointing", tarfile.SYMTYPE, "/etc/passwd"),
        ("hard", tarfile.LNKTYPE, "/etc/passwd"),
        ("device", tarfile.CHRTYPE, ""),
    ):
        make_tar(folder / f"{name}.tar.gz", entry | {"x": special("x", kind, target)})
    make_zip(folder / "无.zip", {"readme.txt": b"no submission"})
    (folder / "damaged.tar.gz").write_bytes(b"\x1f\x8b no archive")
    (folder / "cut.zip").write_bytes(b"PK\x03\x04 no archive")
    (folder / "linked").symlink_to("/etc")
    names = {"climbing", "absolute", "growing", "climbing-tar", "pointing", "hard", "device"}
    return names | {"无", "damaged", "cut", "linked"}


def arguments(folder: Path, *more: str) -> list[str]:
    files = ["--cases", str(folder / "suite.yaml"), "--store", str(folder / "store.sqlite")]
    return ["grade", str(folder / "in"), "--device", "cpu", "--timeout", "3", *files, *more]


def prepare(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "suite.yaml").write_text(SUITE)


def judge(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_a_class_is_graded_once_and_rightly_whatever_kills_the_judge(tmp_path: Path) -> None:
    prepare(tmp_path)
    refused = upload_class(tmp_path / "in")
    assert len(GRADED) + len(refused) == 40
    chance = random.Random()
    environment = os.environ | {CACHE_VARIABLE: str(tmp_path / "cache")}
    for name in TARGET_VARIABLES:  # a target that is named is compiled for, GPU or not
        environment.pop(name, None)
    for number, stop in enumerate((*STOPS, None)):
        process = subprocess.Popen(
            [sys.executable, "run.py", *arguments(tmp_path, "--jobs", JOBS[number % 2])],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # a test run in the background ignores SIGINT, and its children would inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        if stop is None:
            _, errors = process.communicate(timeout=1200)
            assert process.returncode == 0, errors.decode()
            continue
        # once a result is there, or whatever the judge is at
        lines, errors = (
            _stop(process, stop, b": graded", chance.uniform(0, 2))
            if number % 2 == 0
            else _stop(process, stop, b"", chance.uniform(1, 10))
        )
        assert "Traceback" not in errors
        if stop is signal.SIGINT:
            assert process.returncode == INTERRUPTED
        told = {line.partition(" ")[2].partition(":")[0] for line in lines if ": graded" in line}
        with Store(tmp_path / "store.sqlite") as store:
            assert told <= {graded.participant for graded in store.results()}
    with Store(tmp_path / "store.sqlite") as store:
        results = store.results()
        assert store.count() == len(GRADED)  # none lost, none twice
        found = {a.participant for a in store.attempts() if a.problem}
    verdicts = {g.participant: [r.verdict.value for r in g.record.results] for g in results}
    assert verdicts == {name: [wanted] for name, wanted in GRADED.items()}
    assert found == refused
    assert not list(tmp_path.rglob("climbed.py"))
    _check_board(tmp_path, refused)


def _check_board(folder: Path, refused: set[str]) -> None:
    shown = judge("leaderboard", "--store", str(folder / "store.sqlite"), "--format", "csv")
    assert shown.exit_code == 0
    rows = {row["name"].removeprefix("'"): row for row in csv.DictReader(io.StringIO(shown.stdout))}
    assert rows.keys() == {*GRADED, *refused}
    for name, verdict in GRADED.items():
        assert rows[name]["timed verdict"] == verdict
    ranked = {name: int(row["rank"]) for name, row in rows.items() if row["rank"]}
    assert ranked.keys() == {name for name, verdict in GRADED.items() if verdict != "NOT_RUN"}
    right = [name for name, verdict in GRADED.items() if verdict == "PASS"]
    failed = [name for name in ranked if name not in right]
    assert max(ranked[name] for name in right) <= len(right)
    assert {ranked[name] for name in failed} == {len(right) + 1}
    assert all(rows[name]["remark"].startswith("refused: ") for name in refused)
    for form in ("table", "md"):
        text = judge("leaderboard", "--store", str(folder / "store.sqlite"), "--format", form)
        assert text.exit_code == 0
        assert "\x1b" not in text.stdout
    assert "\\[bold\\]&amp;&lt;i>'=x" in text.stdout


def _stop(
    process: subprocess.Popen[bytes], stop: signal.Signals, wanted: bytes, further_s: float
) -> tuple[list[str], str]:
    """Stop a judge some time after it has printed what is `wanted`; what it printed until then."""
    text = _printed(process, wanted)
    time.sleep(further_s)
    process.send_signal(stop)
    rest, errors = process.communicate(timeout=60)
    return (text + rest).decode().splitlines(), errors.decode()


def _printed(process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    """What a judge prints until that holds what is `wanted`."""
    text = b""
    deadline = time.monotonic() + 300
    while wanted not in text and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1.0)[0]:
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            assert chunk, process.stderr.read().decode()
            text += chunk
    return text


def test_a_watched_folder_is_graded_as_uploads_arrive_until_an_interrupt(tmp_path: Path) -> None:
    prepare(tmp_path)
    process = subprocess.Popen(
        [
            *(sys.executable, "run.py", *arguments(tmp_path, "--watch")),
            *("--baseline", "none", "--protocol", "lab"),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {CACHE_VARIABLE: str(tmp_path / "cache")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    text = b""
    try:
        for name in ("first", "second"):
            (tmp_path / "in" / f"{name}.py").write_text(f"raise ValueError('{name}')\n")
            text += _printed(process, f"{name}: graded".encode())
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    lines = (text + rest).decode().splitlines()
    assert [line.partition(";")[0] for line in lines] == ["1/1 first: graded", "2/2 second: graded"]
    assert process.returncode == INTERRUPTED
    assert "2 of 2 uploads: 2 graded" in errors.decode()


def test_what_is_unchanged_is_passed_over_unless_asked(tmp_path: Path) -> None:
    prepare(tmp_path)
    source = "def gdn_prefill_forward(*inputs):\n    raise ValueError('x')\n"
    first, second = (tmp_path / "in" / "zoe" / attempt / ENTRY for attempt in ("1", "2"))
    for path in (first, second):
        path.parent.mkdir(parents=True)
    first.write_text(source)
    second.write_text("# the same again\n\n" + source)
    base = arguments(tmp_path, "--baseline", "none", "--protocol", "lab")

    def states(*more: str) -> list[str]:
        lines = judge(*base, *more).stdout.splitlines()
        return [line.partition(": ")[2].partition(";")[0] for line in lines]

    assert states() == ["graded", "unchanged"]
    assert states() == ["unchanged", "unchanged"]
    assert states("--seed", "43") == ["graded", "unchanged"]
    assert states("--fresh") == ["graded", "graded"]
    second.write_text(source.replace("'x'", "'y'"))
    assert states() == ["unchanged", "graded"]
    store = str(tmp_path / "store.sqlite")
    boards = json.loads(judge("leaderboard", "--store", store, "--format", "json").stdout)
    assert [board["conditions"]["protocol"].partition("seed ")[2][:2] for board in boards] == [
        "42",
        "43",
    ]
    assert Counter(len(board["rows"]) for board in boards) == {1: 2}
    assert boards[0]["rows"][0]["tries"] == 3


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        ("weight: 0.4", ""),
        ("weight: 0.5", "the weights of public and hidden add up to 1.1, not 1"),
        ("", "public alone weighs 0.6, not 1"),
    ],
)
def test_weights_that_earn_no_total_are_told_before_anything_is_graded(
    tmp_path: Path, weight: str, told: str
) -> None:
    prepare(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE.replace("small", "public\nweight: 0.6"))
    hidden = tmp_path / "hidden.yaml"
    hidden.write_text(SUITE.replace("small", f"hidden\n{weight}").replace("timed", "secret"))
    (tmp_path / "in" / "no_submission").mkdir()
    done = judge(*arguments(tmp_path, "--hidden", str(hidden), "--baseline", "none"))
    assert done.exit_code == 0
    lines = [line for line in done.stderr.splitlines() if "total" in line]
    assert lines == ([f"no submission gets a total: {told}"] if told else [])


def test_wrong_usage(tmp_path: Path) -> None:
    prepare(tmp_path)
    hidden = tmp_path / "hidden.yaml"
    hidden.write_text(SUITE.replace("small", "hidden").replace("timed", "secret"))
    (tmp_path / "roster.csv").write_text("name\n")
    (tmp_path / "in" / "a.py").write_text("")
    for words, message in (
        (("--hidden", str(tmp_path / "suite.yaml")), "must be named hidden"),
        (("--hidden", str(hidden), "--suite", "small"), "--hidden: none of its cases is asked for"),
        (("--roster", str(tmp_path / "roster.csv")), "roster.csv:1: no column id"),
        (("--roster", str(tmp_path / "none.csv")), "none.csv: No such file"),
        (("--store", str(tmp_path / "roster.csv")), "file is not a database"),
    ):
        result = judge(*arguments(tmp_path), *words)
        assert result.exit_code == 2
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    result = judge("grade", str(tmp_path / "roster.csv"), "--device", "cpu", "--suite", "smoke")
    assert result.exit_code == 2
    assert "roster.csv: a file that is no upload; give the folder of all uploads" in result.stderr
    (tmp_path / "empty").mkdir()
    result = judge("grade", str(tmp_path / "empty"), "--device", "cpu", "--suite", "smoke")
    assert result.exit_code == 2
    assert "holds no submission" in result.stderr
