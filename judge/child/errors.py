"""Why a child gave no answer."""

from __future__ import annotations


class ChildError(Exception):
    """A child that gave no answer; the text is one line that says why."""


class ChildDied(ChildError):
    """It ended: by a signal, by an exit status, or killed for what it took."""


class ChildTimeout(ChildError):
    """It did not answer in time."""
