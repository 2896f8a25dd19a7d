"""One file of everything graded: participants, their attempts, and the records as JSON."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import msgspec

from judge.brief import AnyRecord, brief_from_json, shortened
from judge.garbage import uncollected
from judge.home import cache_root
from judge.record import Record, from_json
from judge.roster import Participant
from judge.store.decisions import Decision, Kind
from judge.store.schema import StoreError, StoreFullError, migrate
from judge.submission import file_is_there
from judge.text import writable

if TYPE_CHECKING:  # boards need neither
    from judge.check_report import CheckReport
    from judge.uploads import Upload

MAKE_ROOM = "make room and start again: what is finished is kept"
_NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_DIR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
)
"""What SQLite fails with where there is no room: the end of a quota is an I/O error to it."""

_BRIEF = "coalesce((SELECT brief FROM briefs WHERE result = results.id), record)"
"""Results of earlier versions of the store have no brief: theirs is read from the record."""

_RESERVE_BYTES = 4 * 2**20
_WAIT_S = 60.0  # for another judge's transaction
_Decoded = TypeVar("_Decoded")


@dataclass(frozen=True)
class Attempt:
    """One attempt as it was seen last. position: grows with every look, so the latest is largest.

    content: digest of its files, comments aside; empty where there was a problem, told in one line.
    path: where it lay. submitted: when its files had been changed last when it was first seen, ISO
    8601 UTC.
    """

    participant: str
    label: str
    content: str
    position: int
    display_name: str
    problem: str
    path: str = ""
    submitted: str = ""


@dataclass(frozen=True)
class Graded:
    """One result. settings: the key of all it was graded under. record: whole or in brief."""

    id: int
    participant: str
    content: str
    settings: str
    record: AnyRecord


def default_store() -> Path:
    """The store in the judge's own folder."""
    return cache_root() / "store.sqlite"


class Store:
    """A store, made where there is none, in a folder that is there.

    Every method raises StoreError where the file fails. What a method has written is on the disk
    when it returns. Judges that write at once wait for each other. full: whether the room that was
    set aside for a last result had to be used.
    """

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        """must_exist: whether to refuse a path at which there is no store yet."""
        try:
            there, folder = file_is_there(path), path.parent.is_dir()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; name another file with --store") from None
        if must_exist and not there:
            raise StoreError(f"{path}: no such store; grade something first, or name it (--store)")
        if not folder:
            raise StoreError(
                f"{path.parent}: no such folder; make it, or name another with --store"
            )
        self._path = path
        self._reserve = path.with_name(path.name + "-reserve")
        self.full = False
        with self._told():
            self._connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
            try:
                migrate(self._connection, str(path))
                self._write_ahead()
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute("PRAGMA foreign_keys = ON")
                self._set_room_aside()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def see(
        self, upload: Upload, participant: Participant, content: str, *, latest: bool = True
    ) -> None:
        """Note that an attempt is there now.

        content: as in Attempt. latest: whether it becomes its participant's latest where it is
        known already. A name or a group that is known stays where `participant` has none.
        """
        place, card = upload.place, upload.card
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO participants VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "name = coalesce(nullif(excluded.name, ''), name),"
                " group_name = coalesce(nullif(excluded.group_name, ''), group_name)",
                (participant.id, participant.name, participant.group),
            )
            connection.execute(
                "INSERT INTO attempts (participant, label, content, position, path, display_name,"
                " notes, problem, seen, submitted) VALUES"
                " (?, ?, ?, (SELECT coalesce(max(position), 0) + 1 FROM attempts),"
                " ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (participant, label, content) DO UPDATE SET"
                " position = iif(?, excluded.position, position), path = excluded.path,"
                " display_name = excluded.display_name, notes = excluded.notes,"
                " problem = excluded.problem, seen = excluded.seen",
                (
                    *(participant.id, place.label, content, writable(str(place.path.absolute()))),
                    *(card.name, card.notes, upload.problem),
                    *(datetime.now(UTC).isoformat(timespec="seconds"), upload.submitted),
                    latest,
                ),
            )

    def has(self, participant: str, content: str, settings: str) -> bool:
        """Whether there is a result of this content under these settings."""
        with self._told():
            found = self._connection.execute(
                "SELECT 1 FROM results WHERE participant = ? AND content = ? AND settings = ?",
                (participant, content, settings),
            )
            return found.fetchone() is not None

    def add(self, participant: str, content: str, settings: str, record: Record) -> int:
        """Keep a result of an attempt that was seen; its number.

        On a full disk, or at the end of a quota, this takes the room that the store has set aside;
        `full` is true then.
        """
        environment, protocol = record.environment, record.protocol
        text = msgspec.json.encode(record)
        brief = shortened(text)
        values = {
            "participant": participant,
            "content": content,
            "settings": settings,
            "digest": record.submission.digest,
            "created": record.created,
            "judge": record.judge_version,
            "torch": environment.torch,
            "tilelang": environment.tilelang,
            "device_name": environment.device_name,
            "sms": environment.sms,
            "protocol": protocol.name,
            "baseline": f"{record.baseline.source}: {record.baseline.name}",
            "total": record.score.total,
            "graded": record.score.graded,
            "interrupted": record.interrupted,
            "log": record.submission.log,
            "record": text,
        }
        try:
            return self._insert(values, brief)
        except StoreFullError:
            if not self._reserve.exists():
                raise
            self._reserve.unlink()
            self.full = True
            return self._insert(values, brief)

    def participants(self) -> dict[str, Participant]:
        """Everybody who was seen, by id."""
        with self._told():
            rows = self._connection.execute("SELECT id, name, group_name FROM participants")
            return {row[0]: Participant(*row) for row in rows}

    def attempts(self) -> list[Attempt]:
        """Every attempt, in the order in which they were seen last."""
        with self._told():
            rows = self._connection.execute(
                "SELECT participant, label, content, position, display_name, problem, path,"
                " submitted FROM attempts ORDER BY position"
            )
            return [Attempt(*row) for row in rows]

    def results(self) -> list[Graded]:
        """The last result of each content under each settings, oldest first."""
        return self._last_results("record", from_json)

    def briefs(self) -> list[Graded]:
        """As `results`, with records in brief, which takes a fraction of the time."""
        return self._last_results(_BRIEF, brief_from_json)

    def record(self, number: int) -> Record:
        """The whole record of a result. Raises StoreError where there is no such result."""
        with self._told():
            found = self._connection.execute(
                "SELECT record FROM results WHERE id = ?", (number,)
            ).fetchone()
        if found is None:
            raise StoreError(f"{self._path}: there is no result {number}")
        return self._decoded(number, found[0], from_json)

    def keep_check(self, report: CheckReport) -> None:
        """Keep what `check` found in a submission; the newest of the same files counts."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO checks (digest, created, profile, tilelang, verdict, report)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    *(report.submission.digest, report.created, report.profile.name),
                    *(report.tilelang, report.verdict, msgspec.json.encode(report)),
                ),
            )

    def check(self, digest: str) -> CheckReport | None:
        """The newest check of the files with this digest, None where there was none."""
        from judge.check_report import check_from_json

        with self._told():
            found = self._connection.execute(
                "SELECT id, report FROM checks WHERE digest = ? ORDER BY id DESC LIMIT 1",
                (digest,),
            ).fetchone()
        return None if found is None else self._decoded(*found, check_from_json)

    def decide(self, decision: Decision) -> None:
        """Add a decision to those that were made; none is ever changed or taken away."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO decisions (participant, attempt, kind, score, reason, author, made)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                astuple(decision),
            )

    def decisions(self) -> list[Decision]:
        """Every decision, the oldest first."""
        with self._told():
            rows = self._connection.execute(
                "SELECT participant, attempt, kind, score, reason, author, made"
                " FROM decisions ORDER BY id"
            )
            return [Decision(*row[:2], Kind(row[2]), *row[3:]) for row in rows]

    def count(self) -> int:
        """How many results there are, those included that a later one has replaced."""
        with self._told():
            return self._connection.execute("SELECT count(*) FROM results").fetchone()[0]

    def _insert(self, values: dict[str, object], brief: bytes) -> int:
        names, marks = ", ".join(values), ", ".join("?" for _ in values)
        with self._transaction() as connection:
            number = connection.execute(
                f"INSERT INTO results ({names}) VALUES ({marks})", tuple(values.values())
            ).lastrowid
            connection.execute("INSERT INTO briefs (result, brief) VALUES (?, ?)", (number, brief))
        assert number is not None
        return number

    def _set_room_aside(self) -> None:
        """Take up the room for one more result while there is some."""
        if not self._reserve.exists():
            try:
                self._reserve.write_bytes(bytes(_RESERVE_BYTES))
            except OSError:
                self._reserve.unlink(missing_ok=True)

    def _write_ahead(self) -> None:
        """Let readers and a writer work at once; SQLite does not wait by itself for this change."""
        deadline = time.monotonic() + _WAIT_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _last_results(self, text: str, decode: Callable[[bytes], AnyRecord]) -> list[Graded]:
        with self._told(), uncollected():
            rows = self._connection.execute(
                f"SELECT id, participant, content, settings, {text} FROM results WHERE id IN"
                " (SELECT max(id) FROM results GROUP BY participant, content, settings)"
                " ORDER BY id"
            )
            return [Graded(n, *row, self._decoded(n, text, decode)) for n, *row, text in rows]

    def _decoded(self, number: int, text: bytes, decode: Callable[[bytes], _Decoded]) -> _Decoded:
        try:
            return decode(text)
        except (ValueError, msgspec.MsgspecError) as error:
            raise StoreError(f"{self._path}: result {number}: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) in _NO_ROOM:
                raise StoreFullError(f"{self._path}: {error}; {MAKE_ROOM}") from None
            text = f"{self._path}: {error}; name another file with --store"
            raise StoreError(text) from None
