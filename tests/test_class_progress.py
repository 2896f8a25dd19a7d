"""What a run over many submissions shows: plain lines where piped, a bar on a terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from judge.class_progress import ClassTerminal
from judge.class_run import Outcome, State
from judge.commands.grade import _suite_files
from judge.commands.run_options import WrongUsage
from judge.suites import load_suites
from judge.uploads import Place
from judge.views.class_lines import closing_line, outcome_line
from tests.make_record import public_record

ROOT = Path(__file__).resolve().parents[1]
PLACE = Place(Path("in/x"), "[red]\x1b[31m张三", "2")


def test_a_line_has_scores_verdicts_and_no_escapes() -> None:
    outcome = Outcome(PLACE, State.GRADED, public_record(), remarks=("not on the roster",))
    # three of four timed cases pass; the correctness suite, a gate, has no score of its own
    line = outcome_line(3, 12, outcome)
    assert line.startswith("3/12 [red]张三 2: graded; public ")
    assert line.endswith("; 1 COMPILE_ERROR, 6 PASS; not on the roster")
    refused = Outcome(PLACE, State.REFUSED, problem="holds a link")
    assert outcome_line(4, 12, refused) == "4/12 [red]张三 2: refused; holds a link"
    assert closing_line([outcome, refused], 12) == "2 of 12 uploads: 1 graded, 1 refused"


def test_piped_progress_is_lines_alone() -> None:
    lines: list[str] = []
    console = Console(file=io.StringIO(), force_terminal=False)
    said: list[str] = []
    progress = ClassTerminal(console, 2, lines.append, said.append)
    progress.compiling([PLACE])
    progress.began("cpu-1", PLACE)
    progress.case("cpu-1", 1, 4, "smoke")
    progress.phase("cpu-1", "run")
    progress.said("cpu-1", "waiting for\x1b[31m another judge")
    progress.finished(1, 2, Outcome(PLACE, State.UNCHANGED))
    progress.close()
    assert lines == ["1/2 [red]张三 2: unchanged"]
    assert said == ["cpu-1: waiting for another judge"]
    assert console.file.getvalue().strip() == ""


def test_a_terminal_shows_what_runs_and_keeps_the_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    other = Place(Path("in/y"), "bob", "")
    progress = ClassTerminal(console, 3, None, pytest.fail)
    for lane, place in (("GPU-1", PLACE), ("GPU-2", other)):
        progress.began(lane, place)
        progress.case(lane, 1, 4, "smoke")
        progress.phase(lane, "run")
    progress.compiling([PLACE] * 5)
    progress.finished(1, 3, Outcome(PLACE, State.UNCHANGED))
    progress.close()
    shown = console.file.getvalue()
    assert "1/3 [red]张三 2: unchanged" in shown
    assert "GPU-1 · [red]张三 2 · 1/4 smoke · run" in shown
    assert "GPU-2 · bob · 1/4 smoke · run" in shown
    assert "compiling · [red]张三 2, [red]张三 2, [red]张三 2 and 2 more" in shown


def test_the_real_hidden_suite_takes_the_stand_in_s_place(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    text = (ROOT / "cases" / "smoke.yaml").read_text().replace("smoke_", "real_")
    real.write_text(text.replace("suite: smoke", "suite: hidden"))
    suites = {suite.name: suite.path for suite in load_suites(_suite_files(None, real))}
    assert suites["hidden"] == str(real)
    assert {"public", "correctness", "smoke"} <= suites.keys()
    real.write_text(text)
    with pytest.raises(WrongUsage, match="must be named hidden"):
        _suite_files(None, real)
