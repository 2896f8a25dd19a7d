"""The words of a judgement: one verdict a case, one rules word a submission."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What became of one case."""

    PASS = "PASS"
    WRONG = "WRONG"
    BAD_RESULT = "BAD_RESULT"
    CHEAT = "CHEAT"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    IMPORT_ERROR = "IMPORT_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    NOT_RUN = "NOT_RUN"


class Rules(StrEnum):
    """Whether a submission keeps the lab's rules; anything but OK earns no graded score."""

    OK = "ok"
    NO_TILELANG = "no_tilelang"
    FORBIDDEN_IMPORT = "forbidden_import"
