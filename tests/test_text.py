"""Hostile text comes out as one harmless line."""

from __future__ import annotations

import pytest

from judge.text import csv_cell, plain


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("all is well", "all is well"),
        ("\x1b[31mred\x1b[0m and \x1b[2J\x1b[Hcleared", "red and cleared"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ended", "never ended"),
        ("\x1b(Bcharset", "charset"),
        ("ends in \x1b", "ends in"),
        ("one\ntwo\r\nthree\tfour\x0bfive\u2028six\x85seven", "one two three four five six seven"),
        ("PASS\rFAIL", "PASS FAIL"),
        ("back\x08\x08space nul\x00", "backspace nul"),
        ("\u202eevil\u202c \u2066x\u2069 \u200fy", "evil x y"),
        ("zero\u200bwidth\u200d\ufeff\u00adjoin", "zerowidthjoin"),
        ("tag\U000e0041s", "tags"),
        ("half \ud800 a pair", "half a pair"),
        ("[red]markup[/red]", "[red]markup[/red]"),
        ("误差过大 · Größe", "误差过大 · Größe"),
        (" \n\t ", ""),
    ],
)
def test_plain(text: str, line: str) -> None:
    assert plain(text) == line


def test_plain_is_cut_with_a_mark() -> None:
    assert plain("a" * 300) == "a" * 300
    assert plain("a" * 301) == "a" * 299 + "…"
    assert plain("abcdef", limit=4) == "abc…"
    assert plain("ab cdef", limit=4) == "ab…"
    assert plain("\x1b[0m" * 1000 + "tail", limit=10) == "…"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("+1+1", "'+1+1"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'=1+1"),
        ("\r\n=1+1", "'=1+1"),
        ("\u200b=1+1", "'=1+1"),
        ("\x1b[0m=1+1", "'=1+1"),
        ("＝1+1", "'＝1+1"),
        ("-0.5", "-0.5"),
        ("-1e-05", "-1e-05"),
        ("0.067000", "0.067000"),
        ("-", "'-"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_csv_cell(text: str, cell: str) -> None:
    assert csv_cell(text) == cell
