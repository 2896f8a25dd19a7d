"""What scripts/measure_baselines.py asks of run.py, what it keeps, and where it goes on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from judge.record import from_json, to_json
from judge.verdict import Verdict
from judge.views.benchmarks import benchmark_csv
from scripts import measure_baselines, measure_waves
from scripts.baselines.sessions import SessionFolder
from scripts.grading import INTERRUPTED, ROOT, WRONG_USAGE, Entry
from scripts.ladder.versions import VERSIONS, Fate, Version, right
from scripts.measure_baselines import (
    PARTS,
    Job,
    main,
    printed_by,
    scores,
    session_name,
    spread,
    table,
)
from tests.baseline_records import (
    run_record,
    scored_record,
    table_record,
    write_pair,
    write_record,
    write_session,
)

STARTER = Version("starter", "submissions/starter", True, Fate.RIGHT)


def job(folder: Path, name: str = "here") -> Job:
    champion = VERSIONS["champion"]
    return Job(folder, SessionFolder(folder / name), "cuda:1", champion, right())


class Commands:
    """In place of processes: what was asked for, and what each does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str]) -> None:
        self.asked: list[list[str]] = []
        self.graded: list[tuple[list[str], list[str]]] = []
        self.fails_at = ""
        self._answers = list(answers)
        monkeypatch.setattr(measure_baselines, "printed_by", self._printed)
        monkeypatch.setattr(measure_baselines, "grade_entries", self._grade)

    def _printed(self, command: Sequence[str]) -> tuple[int, str]:
        self.asked.append(list(command)[2:])
        if "--output" in command:
            file = Path(command[command.index("--output") + 1])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("made up")
        return self._answers.pop(0)

    def _grade(self, entries: Sequence[Entry], options: Sequence[str], label: str) -> int:
        self.graded.append(([entry.name for entry in entries], list(options)))
        live = options[options.index("--baseline") + 1] == "live"
        for entry in entries:
            if self.fails_at == f"{label}-{entry.name}":
                return INTERRUPTED
            source = "live" if live else "checkpoints"
            write_record(scored_record(entry.name, source), entry.record)
        return 0


@pytest.mark.parametrize(
    ("budget", "sms", "options"),
    [
        ("all", 132, []),
        ("16", 16, ["--sms", "16"]),
        ("14", 14, ["--slice", "h800-mig-1g.10gb"]),
    ],
)
def test_a_table_is_a_record_and_the_lab_s_csv(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    budget: str,
    sms: int,
    options: list[str],
) -> None:
    record = table_record(sms)
    info = replace(record.submission, path="/tmp/a/champion", log="/home/b/logs/x.log")
    note = "chain_equal: fla (full_forward) left out: WRONG"
    commands = Commands(monkeypatch, (1, to_json(replace(record, submission=info, notes=[note]))))
    assert table(job(tmp_path), budget) == 0
    assert capsys.readouterr().out == f"table-{budget}: {note}\n"
    (asked,) = commands.asked
    assert asked == [
        *("--submission", str(ROOT / "submissions" / "champion"), "--suite", "public"),
        *("--reference-benchmarks", "--baseline", "live", "--output-format", "json"),
        *("--device", "cuda:1", *options),
    ]
    file = tmp_path / "here" / f"table-{budget}.json"
    kept_one = from_json(file.read_bytes())
    assert (kept_one.submission.path, kept_one.submission.log) == ("submissions/champion", "x.log")
    assert kept_one.rivals == record.rivals
    assert file.with_suffix(".csv").read_text() == benchmark_csv(record)
    assert table(job(tmp_path, "another_session"), budget) == 0
    assert len(commands.asked) == 1


@pytest.mark.parametrize("status", [1, WRONG_USAGE, INTERRUPTED])
def test_a_table_that_was_not_printed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    printed = to_json(table_record(132)) if status == INTERRUPTED else ""
    Commands(monkeypatch, (status, printed))
    assert table(job(tmp_path), "all") == status
    assert list(tmp_path.iterdir()) == []


def test_scores_are_calibrated_and_live_in_one_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch, (0, ""))
    assert scores(job(tmp_path)) == 0
    file = str(tmp_path / "here" / "calibration.yaml")
    assert commands.asked == [
        ["calibrate", "--suite", "public", "--output", file, "--device", "cuda:1"]
    ]
    names = [version.name for version in right()]
    assert [graded for graded, _ in commands.graded] == [names, names]
    assert [options[:2] for _, options in commands.graded] == [
        *(["--baseline", file], ["--baseline", "live"]),
    ]
    assert scores(job(tmp_path, "another_session")) == 0
    assert len(commands.graded) == 2


def test_scores_go_on_where_they_were_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same session with what is missing; in another one with the pairs that are."""
    commands = Commands(monkeypatch, (0, ""), (0, ""))
    commands.fails_at = "live-v05_adaptive_dv"
    assert scores(job(tmp_path)) == INTERRUPTED
    left = [version.name for version in right()][3:]
    assert left[0] == "v05_adaptive_dv"
    commands.fails_at = "live-v06_warp_specialized"
    assert scores(job(tmp_path)) == INTERRUPTED
    assert len(commands.asked) == 1
    assert commands.graded[2:] == [(left, commands.graded[1][1])]
    commands.fails_at = ""
    assert scores(job(tmp_path, "another_session")) == 0
    assert len(commands.asked) == 2
    assert [graded for graded, _ in commands.graded[3:]] == [left[1:], left[1:]]


def test_a_failed_calibration_ends_the_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch, (2, ""))
    assert scores(job(tmp_path)) == WRONG_USAGE
    assert commands.graded == []


def test_a_submission_without_a_record_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Commands(monkeypatch, (0, ""))
    monkeypatch.setattr(measure_baselines, "grade_entries", lambda *_: 0)
    assert scores(job(tmp_path)) == 1


def test_only_what_is_named_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, (0, ""))
    write_pair(
        SessionFolder(tmp_path / "before"),
        *("v01_gemm", scored_record("v01_gemm", "live"), scored_record("v01_gemm", "checkpoints")),
    )
    monkeypatch.setattr(measure_baselines, "session_name", lambda _: "here")
    options = ["scores", "--only", "v01_gemm", "--only", "champion"]
    done = CliRunner().invoke(main, [str(tmp_path), *options])
    assert (done.exit_code, done.stdout) == (0, "scores: there\n")
    assert [graded for graded, _ in commands.graded] == [["champion"], ["champion"]]


def test_nothing_is_measured_where_all_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(tmp_path)
    commands = Commands(monkeypatch)
    monkeypatch.setattr(measure_baselines, "session_name", lambda _: "here")
    done = CliRunner().invoke(main, [str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [f"{part}: there" for part in PARTS]
    assert commands.asked == commands.graded == []


def test_a_part_that_fails_stops_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch, (1, ""), (1, ""))
    monkeypatch.setattr(measure_baselines, "session_name", lambda _: "here")
    done = CliRunner().invoke(main, [str(tmp_path), "table-all", "waves"])
    assert done.exit_code == 1
    assert done.stdout.count("not finished (status 1)") == 2
    assert commands.asked[1] == [
        *(str(tmp_path / "here" / "waves-16.json"), "--sms", "16", "--device", "cuda:0"),
    ]


def test_an_unfinished_run_of_five_is_made_up_for(tmp_path: Path) -> None:
    """The fifth on a CPU, under the judge; four are there."""
    session = SessionFolder(tmp_path / "here")
    for number in (1, 2, 3, 5):
        write_record(run_record(1.0, 0.9), session.run("starter", number))
    assert spread(Job(tmp_path, session, "cpu", STARTER, [], "smoke")) == 0
    assert [file.name for file in session.runs("starter")] == [
        f"spread-starter-{n}.json" for n in range(1, 6)
    ]
    record = from_json(session.run("starter", 4).read_bytes())
    assert (record.submission.name, record.submission.path) == ("starter", "submissions/starter")
    assert record.baseline.source == "none"
    assert all(result.verdict is Verdict.PASS for result in record.results)


def test_five_runs_of_another_session_are_no_part_of_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 5):
        write_record(
            run_record(1.0, 0.9), SessionFolder(tmp_path / "before").run("champion", number)
        )
    commands = Commands(monkeypatch)
    assert spread(job(tmp_path)) == 0
    assert [graded for graded, _ in commands.graded] == [[f"run-{n}" for n in range(1, 6)]]


def test_what_a_command_printed_and_how_it_ended() -> None:
    command = [sys.executable, "-c", "print('data'); raise SystemExit(3)"]
    assert printed_by(command) == (3, "data\n")


def test_a_session_has_a_name_of_its_own() -> None:
    name = session_name("cpu")
    assert len(name) == 8
    assert int(name, 16) >= 0
    assert session_name("cpu") == name


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("command", [main, measure_waves.main])
def test_without_a_gpu(tmp_path: Path, command: object) -> None:
    options = ["--sms", "14"] if command is measure_waves.main else ["waves"]
    target = tmp_path / "new"
    done = CliRunner().invoke(command, [str(target), *options])
    assert done.exit_code == WRONG_USAGE
    assert "this machine has no CUDA device" in done.output
    assert not target.exists()
