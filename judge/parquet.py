"""A gradebook as a Parquet file, whose columns keep their types; needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.gradebook import Entry

HOW_TO_GET = "pip install -e '.[parquet]'"


class ParquetError(OSError):
    """A Parquet file that cannot be written; the text is one line that says what to change."""


def write_parquet(entries: Sequence[Entry], path: Path) -> None:
    """Write a row an entry, whole or not at all; submitted is a time, UTC. Raises ParquetError."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise ParquetError(f"--parquet needs pyarrow: {HOW_TO_GET}") from None
    schema = arrow.schema(
        [
            *((name, arrow.string()) for name in ("id", "name", "group")),
            *(("score", arrow.float64()), ("attempt", arrow.string())),
            *(("submitted", arrow.timestamp("s", tz="UTC")), ("late", arrow.bool_())),
            *(("tries", arrow.int64()), ("remark", arrow.string())),
        ]
    )
    rows = [asdict(e) | {"submitted": _instant(e.submitted)} for e in entries]
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), unfinished)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise ParquetError(f"{path}: {error.strerror or error}; name another file") from None


def _instant(submitted: str) -> datetime | None:
    return datetime.fromisoformat(submitted) if submitted else None
