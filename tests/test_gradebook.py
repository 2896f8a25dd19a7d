"""What assistants decide and hand on: void, override, regrade, gradebook."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.cli import main
from judge.fingerprint import content_digest
from judge.roster import Participant
from judge.store.store import Store
from judge.submission import ENTRY
from judge.uploads import Place, read_upload
from tests.make_record import make_case, make_record, make_result, make_suite
from tests.test_leaderboard import record_of
from tests.trial import VERDICT_CASES

DEADLINE = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store of two: a with an attempt before and one after the deadline, b with one before."""
    with Store(tmp_path / "store.sqlite") as store:
        for who, label, factor, hours in (
            ("a", "1", 1.2, -1),
            ("a", "2", 1.5, 1),
            ("b", "1", 1.3, -2),
        ):
            path = tmp_path / "in" / who / label / ENTRY
            path.parent.mkdir(parents=True)
            path.write_text(f"raise ValueError({factor})\n")
            os.utime(path, (DEADLINE.timestamp() + 3600 * hours,) * 2)
            upload = read_upload(Place(path.parent, who, label))
            content = content_digest(upload.submission)
            store.see(upload, Participant(who), content)
            store.add(who, content, "s", record_of(factor))
    (tmp_path / "roster.csv").write_text("id,name,group\nb,李四,2\nc,Zoe,1\n")
    return tmp_path


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--store", str(folder / "store.sqlite")])


def board(folder: Path, *words: str) -> dict[str, dict]:
    shown = run(folder, "leaderboard", "--format", "json", *words)
    return {row["participant"]["id"]: row for row in json.loads(shown.stdout)[0]["rows"]}


def book(folder: Path, *words: str) -> list[dict[str, str]]:
    roster = str(folder / "roster.csv")
    done = run(folder, "export", "--gradebook", roster, "--deadline", DEADLINE.isoformat(), *words)
    assert done.exit_code == 0
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_gradebook_has_everybody_and_says_what_is_late(folder: Path) -> None:
    known, missing, stranger = book(folder)
    # 100 + 20 · (p − 1) beyond t100
    assert (known["id"], known["name"], known["score"], known["late"]) == (
        "b",
        "李四",
        "106.00",
        "no",
    )
    assert (missing["id"], missing["score"], missing["late"]) == ("c", "", "")
    assert missing["remark"] == "nothing graded"
    assert (stranger["id"], stranger["score"], stranger["late"]) == ("a", "104.00", "no")
    assert stranger["remark"] == "not on the roster"
    assert stranger["submitted"] == "2026-03-01T11:00:00+00:00"


@pytest.mark.parametrize("attempt", ["best", "latest"])
def test_a_late_attempt_counts_where_nothing_in_time_has_a_score_or_if_asked(
    folder: Path, attempt: str
) -> None:
    def of_a(*words: str) -> tuple[str, str, str, str]:
        (row,) = [row for row in book(folder, "--attempt", attempt, *words) if row["id"] == "a"]
        return row["attempt"], row["score"], row["late"], row["tries"]

    assert of_a() == ("1", "104.00", "no", "2")
    assert of_a("--count-late") == ("2", "110.00", "yes", "2")
    assert run(folder, "void", "a", "--attempt", "1", "--reason", "copied").exit_code == 0
    assert of_a() == ("2", "110.00", "yes", "2")
    assert run(folder, "void", "a", "--attempt", "2", "--reason", "copied").exit_code == 0
    assert of_a()[1] == ""


def test_of_several_boards_with_people_of_the_roster_one_must_be_named(folder: Path) -> None:
    roster = folder / "roster.csv"
    words = ("export", "--gradebook", str(roster))
    with Store(folder / "store.sqlite") as store:
        (content,) = [one.content for one in store.attempts() if one.participant == "b"]
        store.add("b", content, "longer warmup", record_of(1.1))
    by_name = ("--format", "jsonl")
    # b alone is on the roster; the newer board holds nobody else
    failed = run(folder, *words)
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert "1 has 1, 2 has 1; name one with --board N, newest first" in failed.stderr
    for number, score, strangers in (("1", 102, []), ("2", 106, ["a"])):
        done = run(folder, *words, *by_name, "--board", number)
        assert done.exit_code == 0
        entries = [json.loads(line) for line in done.stdout.splitlines()]
        assert entries[0]["score"] == pytest.approx(score)
        assert [one["id"] for one in entries] == ["b", "c", *strangers]
    none = run(folder, *words, "--board", "3")
    assert (none.exit_code, none.stdout) == (2, "")
    assert "--board: 3 is not there; the store has 2" in none.stderr
    roster.write_text("id\na\n")  # whom the newer board does not hold
    done = run(folder, *words, *by_name)
    assert json.loads(done.stdout.splitlines()[0])["score"] == pytest.approx(110)
    assert "2 boards of different conditions; this is board 2's" in done.stderr


def test_a_refused_upload_is_told_on_every_board(folder: Path) -> None:
    (folder / "in" / "c.zip").write_bytes(b"PK\x03\x04 no archive")
    with Store(folder / "store.sqlite") as store:
        store.see(read_upload(Place(folder / "in" / "c.zip", "c", "")), Participant("c"), "")
        (content,) = [one.content for one in store.attempts() if one.participant == "b"]
        store.add("b", content, "longer warmup", record_of(1.1))
    for number in "12":
        refused = book(folder, "--board", number)[1]
        assert (refused["id"], refused["tries"], refused["score"]) == ("c", "1", "")
        assert refused["remark"].startswith("refused: damaged")
    (folder / "roster.csv").write_text("id\na\nc\n")  # the newer board holds a refusal of theirs
    assert book(folder)[0]["score"] == "104.00"


@pytest.mark.parametrize("roster", ["id\nbo\n", "id,name\n"])
def test_a_roster_of_which_nobody_is_there_is_refused(folder: Path, roster: str) -> None:
    path = folder / "roster.csv"
    path.write_text(roster)
    for more, place in (((), "any board"), (("--board", "1"), "board 1")):
        done = run(folder, "export", "--gradebook", str(path), *more)
        assert (done.exit_code, done.stdout) == (2, "")
        told = f"nobody of {path} is on {place}; are its ids the uploads' names?"
        assert done.stderr == f"Error: {told}\n"


def test_a_score_that_does_not_count_is_practice_until_it_is_overridden(folder: Path) -> None:
    with Store(folder / "store.sqlite") as store:
        (content,) = [one.content for one in store.attempts() if one.participant == "b"]
        practice = record_of(1.3, official=False, gate_on=False)
        store.add("b", content, "on a host", practice)
    words = ("--board", "1")
    told = "the gate is off (--no-gate); timing is not official (host clock)"
    assert book(folder, *words)[0]["remark"] == f"practice: {told}"
    assert book(folder, *words, "--by", "public")[0]["remark"].startswith("practice: timing is not")
    run(folder, "override", "b", "--score", "70", "--reason", "agreed")
    assert book(folder, *words)[0]["remark"] == "override: agreed"


def test_nothing_graded_yet_is_a_gradebook_that_says_so(folder: Path) -> None:
    Store(folder / "empty.sqlite").close()
    words = ("export", "--gradebook", str(folder / "roster.csv"))
    done = CliRunner().invoke(main, [*words, "--store", str(folder / "empty.sqlite")])
    assert (done.exit_code, done.stderr) == (0, "nothing is graded yet\n")
    assert [row["id"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["b", "c"]


def test_a_score_that_no_board_or_not_this_one_has_is_refused(folder: Path) -> None:
    words = ("export", "--gradebook", str(folder / "roster.csv"))
    failed = run(folder, *words, "--by", "pubic")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert "--by: 'pubic' is not there; did you mean public?" in failed.stderr
    case = make_case("other")
    record = make_record([make_suite("smoke", [case])], [make_result("smoke", case, score=7.0)])
    with Store(folder / "store.sqlite") as store:
        (content,) = [one.content for one in store.attempts() if one.participant == "b"]
        store.add("b", content, "smoke", record)
    failed = run(folder, *words, "--by", "smoke", "--board", "2")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert "--board: 2 has no smoke; name 1" in failed.stderr
    for by, score in (("smoke", "7.00"), ("public", "106.00")):  # the only board that has it
        done = run(folder, *words, "--by", by)
        assert next(csv.DictReader(io.StringIO(done.stdout)))["score"] == score


def test_gradebook_as_json_lines(folder: Path) -> None:
    roster = str(folder / "roster.csv")
    lines = run(folder, "export", "--gradebook", roster, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["b", "c", "a"]
    assert json.loads(lines[0])["late"] is None


@pytest.mark.parametrize("attempt", ["7", ""])
def test_who_has_a_single_upload_has_no_attempts_to_name(folder: Path, attempt: str) -> None:
    (folder / "in" / "d.py").write_text("x = 1\n")
    with Store(folder / "store.sqlite") as store:
        store.see(read_upload(Place(folder / "in" / "d.py", "d", "")), Participant("d"), "c")
    for words in (
        ("void", "d", "--reason", "x"),
        ("override", "d", "--reason", "x", "--score", "1"),
        ("regrade", "d", "--suite", "smoke", "--device", "cpu"),
    ):
        failed = run(folder, *words, "--attempt", attempt)
        assert failed.exit_code == 2
        assert "'d' has a single upload; leave --attempt out" in failed.stderr
    assert run(folder, "decisions").stdout == ""


def test_void_takes_the_rank_says_why_and_can_be_lifted(folder: Path) -> None:
    assert run(folder, "void", "a", "--attempt", "2", "--reason", "copied [bold]").exit_code == 0
    rows = board(folder)
    assert (rows["a"]["attempt"], rows["a"]["rank"], rows["b"]["rank"]) == ("1", 2, 1)
    latest = board(folder, "--attempt", "latest")["a"]
    assert (latest["rank"], latest["why"]) == (None, "void: copied [bold]")
    assert run(folder, "void", "a", "--reason", "all of it").exit_code == 0
    assert board(folder)["a"]["rank"] is None
    for words in (("--attempt", "2"), ()):
        assert run(folder, "void", "a", *words, "--lift", "--reason", "mistaken").exit_code == 0
    assert (board(folder)["a"]["attempt"], board(folder)["a"]["rank"]) == ("2", 1)
    trail = run(folder, "decisions").stdout.splitlines()
    assert [line.split()[2] for line in trail] == ["void", "void", "lift", "lift"]


def test_what_a_decision_does_is_told_and_a_lift_of_nothing_is_refused(folder: Path) -> None:
    def told(*words: str) -> tuple[int, str, str]:
        done = run(folder, *words, "--reason", "x")
        return done.exit_code, done.stdout, done.stderr

    nothing = (2, "", "Error: a: there is nothing to lift; see run.py decisions\n")
    assert told("void", "a", "--lift") == nothing
    assert run(folder, "decisions").stdout == ""
    assert told("void", "b") == (0, "", "b: no rank until lifted\n")
    second = ("a", "--attempt", "2")
    assert told("override", *second, "--score", "88.5") == (0, "", "a 2: total 88.5 until lifted\n")
    assert told("void", "a", "--lift") == nothing  # of all of them
    stands = "still stands: override of attempt 2"
    assert told("void", "a") == (0, "", f"a: no rank until lifted; {stands}\n")
    stands = "still stands: void of all attempts"
    assert told("void", *second, "--lift") == (0, "", f"a 2: the override is lifted; {stands}\n")
    assert told("void", "a", "--lift") == (0, "", "a: the void is lifted\n")
    assert told("void", "a", "--lift") == nothing


def test_override_sets_the_total_and_is_seen(folder: Path) -> None:
    assert run(folder, "override", "b", "--score", "118.5", "--reason", "gone GPU").exit_code == 0
    row = board(folder)["b"]
    assert (row["rank"], row["value"], row["remark"]) == (1, 118.5, "override: gone GPU")
    assert row["scores"]["public"] == pytest.approx(106)
    assert "override: gone GPU" in run(folder, "leaderboard", "--format", "md").stdout
    assert book(folder)[0]["score"] == "118.50"
    assert book(folder)[0]["remark"] == "override: gone GPU"


def test_parquet_has_the_gradebook_with_types(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = folder / "book.parquet"
    words = ("--gradebook", str(folder / "roster.csv"), "--deadline", "2026-03-01T12:00+00:00")
    done = run(folder, "export", *words, "--parquet", str(target))
    assert (done.exit_code, done.stdout) == (0, "")
    rows = parquet.read_table(target).to_pylist()
    told = run(folder, "export", *words, "--format", "jsonl").stdout.splitlines()
    for row, wanted in zip(rows, map(json.loads, told), strict=True):
        when = row.pop("submitted")
        assert (when.isoformat() if when else "") == wanted.pop("submitted")
        assert row == wanted
    nowhere = folder / "none" / "book.parquet"
    failed = run(folder, "export", *words, "--parquet", str(nowhere))
    assert (failed.exit_code, len(failed.stderr.strip().splitlines())) == (2, 1)
    assert "No such file" in failed.stderr


def test_parquet_without_its_package_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    words = ("--gradebook", str(folder / "roster.csv"), "--parquet", str(folder / "x"))
    failed = run(folder, "export", *words)
    assert failed.exit_code == 2
    assert "--parquet needs pyarrow: pip install -e '.[parquet]'" in failed.stderr
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("void", "zz", "--reason", "x"), "'zz' is nobody here; use one of a, b"),
        (("void", "a", "--attempt", "9", "--reason", "x"), "'9' is not there; use one of 1, 2"),
        (("void", "a", "--attempt", "", "--reason", "x"), "'' is not there; use one of 1, 2"),
        (("void", "a", "--reason", " "), "must say why"),
        (("void", "a"), "--reason"),
        (("override", "a", "--reason", "x"), "--score"),
        (("override", "a", "--score", "121", "--reason", "x"), "--score"),
        (("override", "a", "--score", "nan", "--reason", "x"), "--score"),
        (("export", "--gradebook", "none.csv"), "none.csv: No such file"),
        (("export", "--gradebook", "none.csv", "--deadline", "soon"), "soon is no time"),
        (("export", "--gradebook", "none.csv", "--count-late"), "goes with --deadline"),
        (("regrade", "zz", "--suite", "smoke", "--device", "cpu"), "'zz' is nobody here"),
    ],
)
def test_wrong_usage(folder: Path, words: tuple[str, ...], message: str) -> None:
    result = run(folder, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    with Store(folder / "store.sqlite") as store:
        assert store.decisions() == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        *((command, "Exit status: 0, or 2 wrong usage.") for command in ("void", "decisions")),
        ("void", "With --lift, undo a void or an override."),
        ("override", "`void --lift` undoes it. Exit status: 0, or 2 wrong usage."),
        ("export", "Default: csv."),
        *((command, "--by total|SUITE|CASE") for command in ("export", "leaderboard")),
    ],
)
def test_help(command: str, words: str) -> None:
    told = CliRunner().invoke(main, [command, "--help"]).stdout
    assert words in " ".join(told.split())


def test_regrade_grades_what_is_there_now_and_leaves_the_order(folder: Path) -> None:
    words = ("--device", "cpu", "--cases", str(VERDICT_CASES), "--baseline", "none")
    done = run(folder, "regrade", "a", "--attempt", "1", *words, "--protocol", "lab")
    assert done.exit_code == 0
    assert done.stdout.startswith("1/1 a 1: graded; verdicts 0.00; 2 IMPORT_ERROR")
    with Store(folder / "store.sqlite") as store:
        assert store.count() == 4
        newest = store.results()[-1]
        assert (newest.participant, newest.record.submission.name) == ("a", "a-1")
        places = [(attempt.participant, attempt.label) for attempt in store.attempts()]
        assert places == [("a", "1"), ("a", "2"), ("b", "1")]


def test_regrade_of_what_is_not_there_any_more(folder: Path) -> None:
    words = ("--device", "cpu", "--cases", str(VERDICT_CASES), "--baseline", "none")
    (folder / "in" / "b").rename(folder / "moved")
    failed = run(folder, "regrade", "b", *words)
    path = folder / "in" / "b" / "1"
    told = f"b's upload is not at {path} any more; put it back or run grade"
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.splitlines()[-1] == f"Error: {told}"
    with Store(folder / "store.sqlite") as store:
        assert not any(attempt.problem for attempt in store.attempts())
    (folder / "in" / "a" / "2").rename(folder / "other")
    assert run(folder, "regrade", "a", "--attempt", "2", *words).exit_code == 2
    done = run(folder, "regrade", "a", *words, "--protocol", "lab")
    assert done.exit_code == 0
    assert done.stdout.startswith("1/1 a 1: graded")
    assert f"a's upload is not at {folder / 'in' / 'a' / '2'} any more; left out" in done.stderr


def test_a_record_without_results_can_be_on_a_board(folder: Path) -> None:
    with Store(folder / "store.sqlite") as store:
        upload = read_upload(Place(folder / "in" / "b" / "1", "b", "1"))
        store.see(upload, Participant("b"), "1")
        store.add("b", "1", "lost", make_record([], []))
    assert run(folder, "leaderboard").exit_code == 0
