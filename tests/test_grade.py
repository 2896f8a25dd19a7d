"""`run.py grade`: a small class of every kind of submission, killed at random and started again."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from click.testing import CliRunner, Result

from judge.caches import CACHE_VARIABLE
from judge.cli import main
from judge.store.store import Store
from judge.submission import ENTRY
from tests.test_uploads import make_tar, make_zip
from tests.trial import ROOT, STARTER

SUITE = """
suite: small
tolerance: 5e-3
cases:
  - {name: timed, batch: 1, tokens: 65, qk_heads: 1, v_heads: 2, initial_state: 1}
"""
BODY = """
import os
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
    MARKUP: ("pass", "PASS"),
    "wrong": ("output = output * 2", "WRONG"),
    "nan": ("state = state * float('nan')", "BAD_RESULT"),
    "crashing": ("raise ValueError('[red]\\x1b[31m')", "CRASH"),
    "exiting": ("os._exit(0)", "CRASH"),
    "hanging": ("len(calls) == 2 and time.sleep(999)", "TIMEOUT"),
    "flooding": ("print('x' * 6_000_000)", "PASS"),
    "cuda": ("output.cuda()", "NOT_RUN"),
}
REFUSED = ("climbing", "damaged", "linked")
STOPS = (signal.SIGKILL, signal.SIGINT, signal.SIGKILL)
INTERRUPTED = 130


def upload_class(folder: Path) -> None:
    """One upload of each kind, in every form."""
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
    make_zip(folder / "climbing.zip", {ENTRY: b"", "../../climbed.py": b""})
    (folder / "damaged.tar.gz").write_bytes(b"\x1f\x8b no archive")
    (folder / "linked").symlink_to("/etc")


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
    upload_class(tmp_path / "in")
    chance = random.Random()
    for stop in (*STOPS, None):
        process = subprocess.Popen(
            [sys.executable, "run.py", *arguments(tmp_path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {CACHE_VARIABLE: str(tmp_path / "cache")},
            # a test run in the background ignores SIGINT, and its children would inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        if stop is None:
            _, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors.decode()
            continue
        lines, errors = _stop(process, stop, further_s=chance.uniform(0, 5))
        assert "Traceback" not in errors
        if stop is signal.SIGINT:
            assert process.returncode == INTERRUPTED
        told = {line.partition(" ")[2].partition(":")[0] for line in lines if ": graded" in line}
        with Store(tmp_path / "store.sqlite") as store:
            assert told <= {graded.participant for graded in store.results()}
    with Store(tmp_path / "store.sqlite") as store:
        results = store.results()
        assert store.count() == len(KINDS)  # none lost, none twice
        refused = {a.participant for a in store.attempts() if a.problem}
    verdicts = {g.participant: [r.verdict.value for r in g.record.results] for g in results}
    assert verdicts == {name: [wanted] for name, (_, wanted) in KINDS.items()}
    assert refused == set(REFUSED)
    assert not list(tmp_path.rglob("climbed.py"))
    _check_board(tmp_path)


def _check_board(folder: Path) -> None:
    shown = judge("leaderboard", "--store", str(folder / "store.sqlite"), "--format", "csv")
    assert shown.exit_code == 0
    rows = {row["name"].removeprefix("'"): row for row in csv.DictReader(io.StringIO(shown.stdout))}
    assert rows.keys() == {*KINDS, *REFUSED}
    for name, (_, verdict) in KINDS.items():
        assert rows[name]["timed verdict"] == verdict
    ranked = {name: int(row["rank"]) for name, row in rows.items() if row["rank"]}
    assert ranked.keys() == KINDS.keys() - {"cuda"}
    right = [name for name, (_, verdict) in KINDS.items() if verdict == "PASS"]
    failed = [name for name in ranked if name not in right]
    assert max(ranked[name] for name in right) <= len(right)
    assert {ranked[name] for name in failed} == {len(right) + 1}
    assert all(rows[name]["remark"].startswith("refused: ") for name in REFUSED)
    for form in ("table", "md"):
        text = judge("leaderboard", "--store", str(folder / "store.sqlite"), "--format", form)
        assert text.exit_code == 0
        assert "\x1b" not in text.stdout
    assert "\\[bold\\]&amp;&lt;i>'=x" in text.stdout


def _stop(
    process: subprocess.Popen[bytes], stop: signal.Signals, further_s: float
) -> tuple[list[str], str]:
    """Stop a judge some time after the first upload that it grades; what it printed until then."""
    text = b""
    deadline = time.monotonic() + 300
    while b": graded" not in text and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1.0)[0]:
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            assert chunk, process.stderr.read().decode()
            text += chunk
    time.sleep(further_s)
    process.send_signal(stop)
    rest, errors = process.communicate(timeout=60)
    return (text + rest).decode().splitlines(), errors.decode()


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


def test_wrong_usage(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "roster.csv").write_text("name\n")
    (tmp_path / "in" / "a.py").write_text("")
    for words, message in (
        (("--hidden", str(tmp_path / "suite.yaml")), "must be named hidden"),
        (("--roster", str(tmp_path / "roster.csv")), "roster.csv:1: no column id"),
        (("--roster", str(tmp_path / "none.csv")), "none.csv: No such file"),
        (("--store", str(tmp_path / "roster.csv")), "file is not a database"),
    ):
        result = judge(*arguments(tmp_path), *words)
        assert result.exit_code == 2
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    (tmp_path / "empty").mkdir()
    result = judge("grade", str(tmp_path / "empty"), "--device", "cpu", "--suite", "smoke")
    assert result.exit_code == 2
    assert "holds no submission" in result.stderr
