"""What a run did when, as JSON Lines beside the store: it tells how busy the lanes were."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def run_log_path(store: Path) -> Path:
    """The log of the runs that wrote to a store."""
    return store.with_name(f"{store.name}-runs.jsonl")


class RunLog:
    """Appends a line for each event; `at` is in seconds since the run began.

    path: None to keep no log. A log is no result: where it cannot be written the run goes on.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._start = time.monotonic()

    def now(self) -> float:
        """Seconds since the run began."""
        return round(time.monotonic() - self._start, 3)

    def begin(self, **values: object) -> None:
        """A run begins."""
        self.write("begin", created=datetime.now(UTC).isoformat(timespec="seconds"), **values)

    def write(self, event: str, **values: object) -> None:
        """Something happened."""
        if self._path is None:
            return
        line = json.dumps({"event": event, "at": self.now(), **values}, ensure_ascii=False)
        with suppress(OSError, UnicodeEncodeError), self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
