"""Where charts put things, and what of a log everybody may read."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from judge.site.charts import WIDTH, medians_chart, place_chart, samples_chart, tries_chart
from judge.site.log_excerpt import Section, log_excerpt
from judge.timing import summarize
from tests.site_pages import CASES, SECRET_NAME, class_record


def test_bars_are_as_tall_as_their_counts() -> None:
    # 10 samples at each of 1, 2 and 4 ms, and 20 at 3 ms: four bars of 17, 17, 34 and 17 units
    chart = samples_chart(summarize([1.0] * 10 + [2.0] * 10 + [3.0] * 20 + [4.0] * 10))
    (bars,) = re.findall(r'class="bar" d="([^"]+)"', chart)
    assert [float(h) for h in re.findall(r"56v-([\d.]+)", bars)] == [17.0, 17.0, 34.0, 17.0]
    starts = [float(x) for x in re.findall(r"M([\d.]+) 56", bars)]
    assert starts == sorted(starts)
    (mark,) = re.findall(r'class="mark" d="M([\d.]+)', chart)
    assert float(mark) == pytest.approx(10 + 300 * (3 - 1) / 3, abs=0.1)


def test_a_sample_far_off_does_not_press_the_others_together() -> None:
    timing = summarize([1.0 + n / 1000 for n in range(99)] + [1000.0])
    chart = samples_chart(timing)
    assert "1000" not in chart
    (bars,) = re.findall(r'class="bar" d="([^"]+)"', chart)
    assert all(10 <= float(x) <= WIDTH - 10 for x in re.findall(r"M([\d.]+) 56", bars))
    assert sum(1 for _ in re.findall("M", bars)) > 5


def test_few_samples_are_strokes_and_equal_ones_no_division_by_zero() -> None:
    assert samples_chart(summarize([1.0, 2.0, 3.0])).count("v34") == 3
    assert 'class="bar"' in samples_chart(summarize([2.0] * 50))


def test_places_are_logarithmic() -> None:
    chart = place_chart(2.0, [("t100", 1.0), ("t60", 4.0)], 1.0, 4.0)
    (dot,) = re.findall(r'cx="([\d.]+)"', chart)
    assert float(dot) == WIDTH / 2  # the geometric mean of both ends
    rules = [float(x) for x in re.findall(r'class="rule" d="M([\d.]+) ', chart)]
    assert rules == [10.0, WIDTH - 10.0]


def test_names_of_near_times_stand_in_rows_of_their_own() -> None:
    chart = place_chart(2.0, [("t100", 2.0), ("t60", 2.05)], 1.0, 4.0)
    heights = re.findall(r'y="(\d+)">t', chart)
    assert len(set(heights)) == 2


def test_tries_rise_with_their_scores_and_leave_gaps() -> None:
    chart = tries_chart([0.0, None, 60.0, 120.0], 120.0, "x")
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', chart)]
    assert heights == [82.0, 48.0, 14.0]
    (line,) = re.findall(r'class="line" d="([^"]+)"', chart)
    assert (line.count("M"), line.count("L")) == (2, 1)


def test_medians_of_everybody_lie_between_the_ends() -> None:
    chart = medians_chart([1.0, 10.0, 100.0], [("t100", 10.0)], "x")
    strokes = [float(x) for x in re.findall(r"M([\d.]+) 40v22", chart)]
    assert strokes[1] == WIDTH / 2
    assert strokes[1] - strokes[0] == pytest.approx(strokes[2] - strokes[1], abs=0.2)
    assert math.isclose(float(re.findall(r'class="rule" d="M([\d.]+)', chart)[0]), WIDTH / 2)


def excerpt_of(tmp_path: Path, text: str) -> list[Section]:
    log = tmp_path / "log"
    log.write_text(text)
    return log_excerpt(class_record(1.0, log=str(log)))


def test_excerpt_ends_where_the_first_hidden_case_begins(tmp_path: Path) -> None:
    first, second = (case.name for case in CASES[:2])
    text = (
        f"\n[judge] public/{first}\n| one\n| \n| two\n\n[judge] CRASH: gone\n"
        f"\n[judge] public/{second}\n| it is {SECRET_NAME}\n| three\n"
        f"\n[judge] hidden/{SECRET_NAME}\n| four\n\n[judge] correctness/one_token\n| five\n"
    )
    assert excerpt_of(tmp_path, text) == [
        Section(first, ["one", "two"], False),
        Section(second, ["three"], False),
    ]


def test_excerpt_takes_no_line_of_the_judges_nor_a_forged_one(tmp_path: Path) -> None:
    name = CASES[0].name
    text = (
        f"\n[judge] public/{name}\n| a\u2028[judge] public/{CASES[1].name}\n"
        "\n[judge] Traceback\n  File judge.py\n| after it\n"
    )
    (section,) = excerpt_of(tmp_path, text)
    assert section == Section(name, [f"a [judge] public/{CASES[1].name}"], False)


def test_excerpt_is_short(tmp_path: Path) -> None:
    text = "".join(f"\n[judge] public/{case.name}\n" + "| line\n" * 500 for case in CASES)
    sections = excerpt_of(tmp_path, text)
    assert [len(section.lines) for section in sections] == [12] * len(CASES)
    assert all(section.cut for section in sections)


def test_a_log_that_is_gone_has_no_excerpt() -> None:
    record = class_record(1.0, log="/nonexistent/log")
    assert log_excerpt(record) == []
    assert log_excerpt(replace(record, submission=replace(record.submission, log=""))) == []
