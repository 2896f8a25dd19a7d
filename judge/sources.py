"""Where a run's uploads come from: a list, or a folder that more arrive in."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol as Interface

from judge.submission import SubmissionError
from judge.uploads import NoUploadsError, Place, find_uploads, upload_state

WATCH_PERIOD_S = 2.0


class Source(Interface):
    """Hands out each upload of a run once."""

    total: int
    """How many there are, as far as is known."""

    def take(self) -> Place | None:
        """The next upload, None where there is none now.

        Raises SubmissionError where there may be some that cannot be reached now; a later call may.
        """

    def ended(self) -> bool:
        """Whether there will be no further one."""


class Listed:
    """Uploads that are known from the start."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.total = len(places)
        self._places = deque(places)

    def take(self) -> Place | None:
        """The next upload."""
        return self._places.popleft() if self._places else None

    def ended(self) -> bool:
        """Whether all are handed out."""
        return not self._places


class Watched:
    """A folder that is looked at again and again, without end.

    An upload is handed out when two looks, `period_s` seconds apart, have found it the same, since
    one that is being written is not; and again whenever it has changed since. A look
    that fails is told of once, by the exception, and the next looks go on.
    """

    def __init__(self, folder: Path, period_s: float = WATCH_PERIOD_S) -> None:
        self.total = 0
        self._folder = folder
        self._period_s = period_s
        self._next_look = 0.0
        self._problem = ""
        self._last: dict[Place, str] = {}
        self._taken: dict[Place, str] = {}
        self._ready: deque[Place] = deque()

    def take(self) -> Place | None:
        """The next upload that has come to rest. Raises SubmissionError."""
        if time.monotonic() >= self._next_look:
            try:
                self._look()
            finally:
                self._next_look = time.monotonic() + self._period_s
        return self._ready.popleft() if self._ready else None

    def ended(self) -> bool:
        """Never: whoever watches ends it."""
        return False

    def _look(self) -> None:
        try:
            places = find_uploads(self._folder)
        except NoUploadsError:
            places = []  # nothing has arrived yet
        except SubmissionError as error:
            told, self._problem = self._problem, str(error)
            if told != self._problem:
                raise
            return
        self._problem = ""
        now = {place: upload_state(place) for place in places}
        for place, state in now.items():
            if self._last.get(place) == state != self._taken.get(place):
                self._taken[place] = state
                self._ready.append(place)
                self.total += 1
        self._last = now
