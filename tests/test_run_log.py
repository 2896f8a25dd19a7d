"""What the log of a run says of how busy its lanes were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.run_log import RunLog, run_log_path
from scripts.measure_class import runs_of, use_of


def test_busy_shares_follow_from_what_lanes_took(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    for lanes in (["old"], ["a", "b"]):
        log = RunLog(run_log_path(store))
        log.begin(device="H200", lanes=lanes, cases=2)
        log.write("upload", participant="x", label="", state="unchanged")
        for lane, began, finished in (("a", 10.0, 14.0), ("a", 14.0, 19.0), ("b", 12.0, 20.0)):
            log.write(
                "upload",
                participant="张三",
                label="1",
                state="graded",
                lane=lane,
                lane_deaths=0,
                compile_s=3.0,
                began=began,
                finished=finished,
                lane_s=finished - began,
                phases={"start": 0.5, "run": 0.25},
            )
        log.write("end", interrupted=False)
    runs = runs_of(run_log_path(store).read_text().splitlines())
    assert [run[0]["lanes"] for run in runs] == [["old"], ["a", "b"]]
    use = use_of(runs[1])
    assert (use.submissions, use.wall_s) == (3, 10.0)
    assert [(lane.submissions, lane.busy_share) for lane in use.lanes] == [(2, 0.9), (1, 0.8)]
    assert use.busy_share == 0.85
    assert (use.lane_s_median, use.lane_s_max) == (5.0, 8.0)
    assert (use.waiting_s, use.timing_s, use.compile_s) == (1.5, 0.75, 9.0)
    assert use.submissions_per_min == 18.0
    assert use.states == {"unchanged": 1, "graded": 3}
    assert json.loads(run_log_path(store).read_text().splitlines()[2])["participant"] == "张三"
    with pytest.raises(ValueError, match="no lane finished"):
        use_of(runs[0][:2])


def test_a_log_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "none" / "log.jsonl")
    log.begin(lanes=[])
    log.write("end")
    assert not list(tmp_path.iterdir())
