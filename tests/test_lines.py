"""What cannot be printed: a run goes on without its lines, other commands end with one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.card import Card
from judge.cli import main
from judge.home import CACHE_VARIABLE
from judge.roster import Participant
from judge.store.store import Store
from judge.uploads import Place, Upload
from tests.make_record import public_record
from tests.trial import ROOT

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@pytest.mark.parametrize("both", [False, True])
def test_a_run_whose_lines_find_no_room_goes_on_to_the_end(tmp_path: Path, both: bool) -> None:
    for name in "abc":
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "notes.txt").write_text("no submission")
    words = ["grade", str(tmp_path / "in"), "--store", str(tmp_path / "store.sqlite")]
    with FULL.open("wb") as full:
        done = subprocess.run(
            [
                *(sys.executable, "run.py", *words, "--device", "cpu"),
                *("--suite", "smoke", "--baseline", "none", "--protocol", "lab"),
            ],
            cwd=ROOT,
            stdout=full,
            stderr=full if both else subprocess.PIPE,
            env=os.environ | {CACHE_VARIABLE: str(tmp_path / "cache")},
            check=False,
        )
    assert done.returncode == 0
    if not both:
        said = done.stderr.decode().splitlines()
        assert sum("standard output takes no more lines" in line for line in said) == 1
        assert said[-1] == "3 of 3 uploads: 3 refused"
    with Store(tmp_path / "store.sqlite") as store:
        assert [one.participant for one in store.attempts() if one.problem] == ["a", "b", "c"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one result, of 张三."""
    path = tmp_path / "store.sqlite"
    with Store(path) as opened:
        upload = Upload(Place(tmp_path / "张三", "张三", ""), None, Card(), "")
        opened.see(upload, Participant("张三"), "c1")
        opened.add("张三", "c1", "s1", public_record())
    return path


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_board_that_finds_no_room_is_one_line(store: Path, form: str) -> None:
    words = ["leaderboard", "--store", str(store), "--format", form]
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "run.py", *words],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "Error: standard output: No space left on device\n"


@pytest.mark.parametrize(("form", "encoding"), [("table", "ascii"), ("csv", "latin-1")])
def test_what_an_encoding_lacks_is_written_out(store: Path, form: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "run.py", "leaderboard", "--store", str(store), "--format", form],
        cwd=ROOT,
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert b"\\u5f20\\u4e09" in done.stdout


def test_a_board_s_conditions_are_a_line_each(store: Path) -> None:
    words = ["leaderboard", "--store", str(store)]
    lines = CliRunner(env={"COLUMNS": "40"}).invoke(main, words).stdout.splitlines()
    (protocol,) = (line for line in lines if line.startswith("protocol: "))
    assert protocol.endswith("sandbox bubblewrap")
