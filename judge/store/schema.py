"""The tables of a store and the steps from one version of them to the next."""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x67646E6A
"""Set in a store's header, so that no other program's database is taken for one: "gdnj"."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE participants (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            group_name TEXT NOT NULL
        )""",
        """CREATE TABLE attempts (
            id INTEGER PRIMARY KEY,
            participant TEXT NOT NULL REFERENCES participants (id),
            label TEXT NOT NULL,
            content TEXT NOT NULL,
            position INTEGER NOT NULL,
            path TEXT NOT NULL,
            display_name TEXT NOT NULL,
            notes TEXT NOT NULL,
            problem TEXT NOT NULL,
            seen TEXT NOT NULL,
            submitted TEXT NOT NULL,
            UNIQUE (participant, label, content)
        )""",
        """CREATE TABLE results (
            id INTEGER PRIMARY KEY,
            participant TEXT NOT NULL REFERENCES participants (id),
            content TEXT NOT NULL,
            settings TEXT NOT NULL,
            digest TEXT NOT NULL,
            created TEXT NOT NULL,
            judge TEXT NOT NULL,
            torch TEXT NOT NULL,
            tilelang TEXT,
            device_name TEXT NOT NULL,
            sms INTEGER,
            protocol TEXT NOT NULL,
            baseline TEXT NOT NULL,
            total REAL,
            graded INTEGER NOT NULL,
            interrupted INTEGER NOT NULL,
            log TEXT NOT NULL,
            record BLOB NOT NULL
        )""",
        "CREATE INDEX results_by_content ON results (participant, content, settings)",
        """CREATE TABLE decisions (
            id INTEGER PRIMARY KEY,
            participant TEXT NOT NULL REFERENCES participants (id),
            attempt TEXT,
            kind TEXT NOT NULL,
            score REAL,
            reason TEXT NOT NULL,
            author TEXT NOT NULL,
            made TEXT NOT NULL
        )""",
        """CREATE TRIGGER decisions_stay BEFORE UPDATE ON decisions
            BEGIN SELECT raise(ABORT, 'decisions are never changed'); END""",
        """CREATE TRIGGER decisions_remain BEFORE DELETE ON decisions
            BEGIN SELECT raise(ABORT, 'decisions are never deleted'); END""",
    ),
    (
        """CREATE TABLE checks (
            id INTEGER PRIMARY KEY,
            digest TEXT NOT NULL,
            created TEXT NOT NULL,
            profile TEXT NOT NULL,
            tilelang TEXT,
            verdict TEXT NOT NULL,
            report BLOB NOT NULL
        )""",
        "CREATE INDEX checks_by_digest ON checks (digest)",
    ),
    (
        """CREATE TABLE briefs (
            result INTEGER PRIMARY KEY REFERENCES results (id),
            brief BLOB NOT NULL
        )""",
    ),
)
"""What each version adds to the one before; a step that has been released is never changed."""


class StoreError(OSError):
    """A store that cannot be used; the text is one line that says what to change."""


class StoreFullError(StoreError):
    """There is no room for more."""


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring a store to this judge's version, in one transaction that no other judge sees half of.

    Raises StoreError where the file is of a later version or another program's.
    """
    if _is_current(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if owner != APPLICATION_ID and (owner or version or tables):
            raise StoreError(
                f"{path}: is another program's database; name another file with --store"
            )
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{path}: is a store of version {version}, this judge reads up to "
                f"{len(MIGRATIONS)}; use a newer judge, or another file with --store"
            )
        for step in MIGRATIONS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_current(connection: sqlite3.Connection) -> bool:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return (owner, version) == (APPLICATION_ID, len(MIGRATIONS))
