"""How far the medians of runs lie apart."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.card import Card
from judge.roster import Participant
from judge.store.store import Store
from judge.uploads import Place, Upload
from judge.verdict import Verdict
from scripts.compare_stores import difference, main, percentile_90
from tests.make_record import make_case, make_record, make_result, make_suite

CASES = [make_case("short"), make_case("long"), make_case("untimed", timed=False)]
SUITE = make_suite("public", CASES, 1.0)


def store_of(path: Path, medians: dict[str, tuple[float | None, float | None]]) -> Path:
    """A store with a result a participant: medians of both timed cases, None where it failed."""
    with Store(path) as store:
        for name, found in medians.items():
            results = [
                make_result("public", case, median_ms=median)
                if median is not None
                else make_result("public", case, verdict=Verdict.CRASH)
                for case, median in zip(CASES, (*found, None), strict=True)
            ]
            upload = Upload(Place(path.parent / name, name, ""), None, Card(), "")
            store.see(upload, Participant(name), name)
            store.add(name, name, "settings", make_record([SUITE], results, name=name))
    return path


def test_shares_and_microseconds_by_hand() -> None:
    a, b = ("a", "d", "public"), ("b", "d", "public")
    first = {(*a, "x"): 1.0, (*a, "y"): 0.2, (*b, "x"): None, (*b, "y"): 4.0}
    other = {(*a, "x"): 0.8, (*a, "y"): 0.25, (*b, "x"): 3.0}
    found = difference(first, other)
    assert found.shares == pytest.approx([0.25, 0.2])
    assert found.microseconds == pytest.approx([200.0, 50.0])
    assert found.left_out == 2
    assert found.figures() == pytest.approx((0.225, 0.25, 125.0, 200.0))
    with pytest.raises(ValueError, match="no submission passed"):
        difference(first, {})


@pytest.mark.parametrize(("count", "expected"), [(1, 0), (9, 8), (10, 8), (20, 17)])
def test_a_tenth_at_most_is_above_the_percentile(count: int, expected: int) -> None:
    assert percentile_90(range(count)) == expected


@pytest.mark.parametrize(("third", "status"), [(1.01, 0), (1.029, 0), (1.031, 1)])
def test_others_are_held_against_the_two_like_ones(
    third: float, status: int, tmp_path: Path
) -> None:
    stores = [
        store_of(tmp_path / "one.sqlite", {"a": (1.0, 2.0), "b": (4.0, None)}),
        store_of(tmp_path / "again.sqlite", {"a": (1.02, 2.04), "b": (4.08, None)}),
        store_of(tmp_path / "two.sqlite", {"a": (third, 2 * third), "b": (4 * third, 9.0)}),
    ]
    table = tmp_path / "medians.csv"
    done = CliRunner().invoke(main, [*map(str, stores), "--csv", str(table)])
    assert done.exit_code == status, done.output
    assert len(done.output.splitlines()) == 3
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == [
        *("participant", "digest", "suite", "case"),
        *("one_ms", "again_ms", "two_ms"),
    ]
    assert rows[4] == ["b", "cd" * 32, "public", "long", "", "", "9.000000"]
    assert len(rows) == 5


def test_two_stores_or_a_missing_one_are_wrong_usage(tmp_path: Path) -> None:
    stores = [str(tmp_path / f"{name}.sqlite") for name in "abc"]
    for words in (stores[:2], stores):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert done.output.splitlines()[-1].startswith("Error: ")
