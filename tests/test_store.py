"""The store: what is kept, by several judges at once, and what becomes of other versions."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from judge.card import Card
from judge.commands.store_option import open_store
from judge.home import CACHE_VARIABLE
from judge.record import to_json
from judge.roster import Participant
from judge.store import schema
from judge.store.decisions import Decision, Kind
from judge.store.schema import StoreError, StoreFullError
from judge.store.store import Store
from judge.uploads import Place, Upload
from tests.make_record import public_record
from tests.permissions import bound_by_permissions, open_folder
from tests.site_pages import check_report

ROOT = Path(__file__).resolve().parents[1]
WRITERS, EACH = 4, 25


def see(store: Store, participant: str, content: str, label: str = "", problem: str = "") -> None:
    place = Place(Path("uploads") / participant, participant, label)
    upload = Upload(place, None, Card(name="A name"), problem)
    store.see(upload, Participant(participant, "Full Name", "g1"), content)


def test_a_record_comes_back_whole(tmp_path: Path) -> None:
    record = public_record()
    with Store(tmp_path / "store.sqlite") as store:
        see(store, "张三", "c1")
        assert not store.has("张三", "c1", "s1")
        store.add("张三", "c1", "s1", record)
    with Store(tmp_path / "store.sqlite") as store:
        assert store.has("张三", "c1", "s1")
        assert not store.has("张三", "c1", "s2")
        assert not store.has("李四", "c1", "s1")
        (graded,) = store.results()
        assert to_json(graded.record) == to_json(record)
        assert store.participants() == {"张三": Participant("张三", "Full Name", "g1")}


def test_the_last_result_of_the_same_content_and_settings_counts(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        see(store, "a", "c1")
        numbers = [store.add("a", "c1", settings, public_record()) for settings in "sst"]
        assert [graded.id for graded in store.results()] == numbers[1:]
        assert store.count() == 3


def test_briefs_say_what_records_say(tmp_path: Path) -> None:
    record = public_record()
    with Store(tmp_path / "store.sqlite") as store:
        see(store, "a", "c1")
        number = store.add("a", "c1", "s1", record)
        (brief,) = store.briefs()
        assert to_json(store.record(number)) == to_json(record)
        with pytest.raises(StoreError, match="no result 99"):
            store.record(99)
        store.add("a", "c1", "s1", replace(record, schema_version=99))
        with pytest.raises(StoreError, match="schema version 99"):
            store.briefs()
    assert (brief.id, brief.content, brief.settings) == (number, "c1", "s1")
    assert brief.record.score == record.score
    assert brief.record.submission.rules == record.submission.rules
    for short, whole in zip(brief.record.results, record.results, strict=True):
        assert (short.suite, short.case.name) == (whole.suite, whole.case.name)
        assert (short.verdict, short.score) == (whole.verdict, whole.score)
        times = whole.timing and (whole.timing.median_ms, whole.timing.p10_ms, whole.timing.p90_ms)
        assert (short.timing and msgspec.structs.astuple(short.timing)) == times


def test_what_is_kept_in_brief_is_what_the_record_says_in_brief(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        see(store, "a", "c1")
        store.add("a", "c1", "s1", public_record())
        kept = store.briefs()
        with sqlite3.connect(tmp_path / "store.sqlite") as connection:
            (brief,) = connection.execute("SELECT brief FROM briefs").fetchone()
            (record,) = connection.execute("SELECT record FROM results").fetchone()
            connection.execute("DELETE FROM briefs")  # as of a store that kept none yet
        assert len(brief) < len(record) / 2
        assert store.briefs() == kept


def test_the_newest_check_of_the_same_files_counts(tmp_path: Path) -> None:
    older, newer = check_report("ab" * 32), replace(check_report("ab" * 32), verdict="warnings")
    with Store(tmp_path / "store.sqlite") as store:
        for report in (older, newer, check_report("cd" * 32)):
            store.keep_check(report)
        assert store.check("ab" * 32) == newer
        assert store.check("ef" * 32) is None


def test_what_was_seen_last_is_the_latest_attempt(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        for content in ("c1", "c2", "c1"):
            see(store, "a", content)
        see(store, "b", "", problem="holds a link")
        kept = [(a.participant, a.content, a.problem) for a in store.attempts()]
        assert kept == [("a", "c2", ""), ("a", "c1", ""), ("b", "", "holds a link")]


def test_decisions_are_added_and_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    made = [
        Decision("a", None, Kind.VOID, None, "copied", "zoe", "2026-01-01T00:00:00+00:00"),
        Decision("a", "2", Kind.OVERRIDE, 80.5, "device fault", "zoe", "2026-01-02T00:00:00+00:00"),
    ]
    with Store(path) as store:
        see(store, "a", "c1")
        for decision in made:
            store.decide(decision)
        assert store.decisions() == made
    with sqlite3.connect(path) as connection:
        for change in ("UPDATE decisions SET reason = 'x'", "DELETE FROM decisions"):
            with pytest.raises(sqlite3.IntegrityError, match="decisions are never"):
                connection.execute(change)


def test_a_look_at_one_attempt_alone_leaves_the_latest_and_known_names(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        see(store, "a", "c1", "1")
        see(store, "a", "c2", "2")
        upload = Upload(Place(Path("elsewhere"), "a", "1"), None, Card(), "")
        store.see(upload, Participant("a"), "c1", latest=False)
        kept = [(a.label, a.path) for a in store.attempts()]
        assert [label for label, _ in kept] == ["1", "2"]
        assert kept[0][1].endswith("/elsewhere")
        assert store.participants()["a"] == Participant("a", "Full Name", "g1")
        store.see(upload, Participant("a", "", "g2"), "c1", latest=False)
        assert store.participants()["a"] == Participant("a", "Full Name", "g2")


def test_judges_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    program = (
        "import sys; from pathlib import Path; from tests.test_store import see\n"
        "from judge.store.store import Store; from tests.make_record import public_record\n"
        "record = public_record()\n"
        "with Store(Path(sys.argv[1])) as store:\n"
        f"    for number in range({EACH}):\n"
        "        see(store, sys.argv[2], str(number))\n"
        "        store.add(sys.argv[2], str(number), 's', record)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(number)], cwd=ROOT)
        for number in range(WRITERS)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * WRITERS
    with Store(path) as store:
        kept = {(g.participant, g.content) for g in store.results()}
        assert kept == {(str(w), str(n)) for w in range(WRITERS) for n in range(EACH)}
        assert len({attempt.position for attempt in store.attempts()}) == WRITERS * EACH


def test_a_store_of_a_later_version_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    Store(path).close()
    later = len(schema.MIGRATIONS) + 1
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {later}")
    with pytest.raises(StoreError) as refused:
        Store(path)
    assert str(refused.value).startswith(f"{path}: is a store of version {later}, this judge reads")
    assert "\n" not in str(refused.value)


def test_a_store_of_an_earlier_version_is_brought_up_with_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        see(store, "a", "c1")
        store.add("a", "c1", "s1", public_record())
    step = ("ALTER TABLE attempts ADD COLUMN late INTEGER NOT NULL DEFAULT 7",)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    with Store(path) as store:
        assert len(store.results()) == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT late FROM attempts").fetchone() == (7,)


def test_a_store_of_the_first_version_keeps_its_results_and_takes_checks(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        see(store, "a", "c1")
        store.add("a", "c1", "s1", public_record())
        kept = store.briefs()
    with sqlite3.connect(path) as connection:
        for later in ("checks", "briefs"):
            connection.execute(f"DROP TABLE {later}")
        connection.execute("PRAGMA user_version = 1")
    with Store(path) as store:
        store.keep_check(check_report("ab" * 32))
        assert store.check("ab" * 32) is not None
        assert len(store.results()) == 1
        assert store.briefs() == kept
        store.add("a", "c1", "s2", public_record())
        assert [graded.settings for graded in store.briefs()] == ["s1", "s2"]


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    Store(path).close()
    before = len(schema.MIGRATIONS)
    step = ("ALTER TABLE attempts ADD COLUMN late INTEGER", "CREATE TABLE attempts (id INTEGER)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    with pytest.raises(StoreError):
        Store(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (before,)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(attempts)")]
    assert "late" not in columns


def test_files_that_are_no_store_are_left_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to be looked at " * 9)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (id INTEGER)")
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(StoreError) as refused:
            Store(path)
        assert "--store" in str(refused.value)
        assert path.read_bytes() == before
    with pytest.raises(StoreError, match="no such store"):
        Store(tmp_path / "missing.sqlite", must_exist=True)


def test_a_store_makes_its_file_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="mistyped: no such folder; make it, or name another"):
        Store(tmp_path / "mistyped" / "store.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("must_exist", [True, False])
def test_a_store_in_a_folder_that_may_not_be_read_is_refused_in_a_line(must_exist: bool) -> None:
    with open_folder() as folder:
        closed = folder / "closed"
        closed.mkdir(mode=0o700)
        closed.chmod(0o000)
        with bound_by_permissions(), pytest.raises(StoreError, match="Permission denied; name"):
            Store(closed / "store.sqlite", must_exist=must_exist)


def test_the_default_store_s_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "new" / "cache"))
    with pytest.raises(StoreError, match="no such store"):
        open_store(None)
    assert list(tmp_path.iterdir()) == []
    open_store(None, must_exist=False).close()
    assert (tmp_path / "new" / "cache" / "store.sqlite").is_file()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root can make a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_takes_one_more_result_and_loses_none(small_disk: Path) -> None:
    path = small_disk / "store.sqlite"
    added = 0
    with Store(path) as store:
        see(store, "a", "c1")
        (small_disk / "filler").write_bytes(bytes(3 << 20))
        while not store.full:
            store.add("a", "c1", f"s{added}", public_record())
            added += 1
        (small_disk / "more").write_bytes(bytes(1 << 20))
        with pytest.raises(StoreFullError, match="make room and start again"):
            while True:
                store.add("a", "c1", f"s{added}", public_record())
                added += 1
    (small_disk / "filler").unlink()
    with Store(path) as store:
        assert store.count() == added
        store.add("a", "c1", "after", public_record())
        assert store.count() == added + 1


@pytest.fixture
def file_limit() -> Iterator[Callable[[int | None], None]]:
    """Sets the largest size that a file may have, which SQLite reports as it does a quota."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int | None) -> None:
        soft = before[0] if size is None else size
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, before[1]))

    yield limit
    limit(None)


def test_the_end_of_a_quota_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_limit: Callable[[int | None], None]
) -> None:
    path = tmp_path / "store.sqlite"
    unlink = Path.unlink

    def making_room(file: Path, **options: bool) -> None:
        file_limit(None)
        unlink(file, **options)

    with Store(path) as store:
        see(store, "a", "c1")
        monkeypatch.setattr(Path, "unlink", making_room)
        file_limit((tmp_path / "store.sqlite-wal").stat().st_size)
        store.add("a", "c1", "s1", public_record())
        assert store.full
        file_limit((tmp_path / "store.sqlite-wal").stat().st_size)
        with pytest.raises(StoreFullError, match="make room and start again"):
            store.add("a", "c1", "s2", public_record())
        file_limit(None)
        assert store.count() == 1
        store.add("a", "c1", "s3", public_record())
        assert store.count() == 2
