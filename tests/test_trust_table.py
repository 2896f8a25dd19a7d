"""The committed tables of adversaries agree with the files and with the stored results."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.write_trust_table import BEGIN, END, RESULTS, TRUST, read_lines, with_tables
from tests.adversary_files import Entry, adversaries, honest_ones

CPU, GPU = RESULTS


def stored(path: Path) -> dict[str, dict[str, str]]:
    return {line["file"]: line for line in read_lines([path])}


def test_committed_tables_are_what_the_script_writes() -> None:
    document = TRUST.read_text()
    assert with_tables(document, read_lines(RESULTS)) == document


def test_every_file_has_a_row() -> None:
    rows = [row for row in TRUST.read_text().splitlines() if row.startswith("| ")]
    for entry in [*adversaries(), *honest_ones()]:
        assert any(row.startswith(f"| {entry.trick} |") for row in rows), entry.name


def test_every_adversary_that_runs_on_a_cpu_was_caught_there() -> None:
    lines = stored(CPU)
    for entry in adversaries():
        if "cpu" in entry.devices:
            assert caught(entry, lines[entry.name]), entry.name


def test_every_stored_result_on_a_gpu_is_the_expected_one() -> None:
    lines = stored(GPU)
    for entry in adversaries():
        if "gpu" in entry.devices and entry.name in lines:
            assert caught(entry, lines[entry.name]), entry.name


def test_every_stored_honest_result_is_a_pass() -> None:
    for path in RESULTS:
        lines = stored(path)
        assert all(
            lines[entry.name]["verdict"] == "PASS" for entry in honest_ones() if entry.name in lines
        )


def caught(entry: Entry, line: dict[str, str]) -> bool:
    if entry.rules:
        return line["rules"] == entry.rules and entry.evidence in line["rules_detail"]
    return line["verdict"] in entry.caught_as and entry.evidence in line["detail"]


def test_markup_of_a_participant_does_not_leave_its_cell() -> None:
    entry = adversaries()[0]
    line = {
        "file": entry.name,
        "expected": "CRASH",
        "verdict": "CRASH",
        "detail": "a | b <script> *c*",
        "device": "CPU",
    }
    document = with_tables(f"{BEGIN}\n{END}\n", [line])
    assert f"| {entry.trick} | CRASH: a \\| b &lt;script> \\*c\\* | CPU |" in document


def test_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the tables"):
        with_tables("nothing", [])
