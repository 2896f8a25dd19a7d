"""Lines that cannot be printed: a run goes on without them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judge.home import CACHE_VARIABLE
from judge.store.store import Store
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
