"""How busy the lanes of a class's run were, from the run's log beside the store.

    python scripts/measure_class.py ~/.cache/gdn-judge/store.sqlite [--run N] [--json FILE]

For each lane: submissions, seconds of the lane for each, and the share of wall time in which it was
measuring, from the moment at which the first lane began to that at which the last one was done.
"""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.run_log import run_log_path


@dataclass
class LaneUse:
    """One lane. seconds: of each submission; busy_share: their sum over the run's wall time."""

    lane: str
    submissions: int
    seconds: list[float]
    busy_share: float


@dataclass
class ClassUse:
    """One run.

    wall_s: from the first submission that a lane began to the last that was finished.
    whole_s: of the run, reading uploads and compiling ahead included. lane_s_median, lane_s_max: of
    a submission. waiting_s: for children to be ready, of all submissions, which is part of lane_s.
    timing_s: in the timed calls alone. compile_s: in the compile workers, beside the lanes.
    submissions_per_min: over wall_s. begin: what the run itself said at its start.
    """

    begin: dict[str, object]
    submissions: int
    wall_s: float
    whole_s: float
    submissions_per_min: float
    lane_s_median: float
    lane_s_max: float
    busy_share: float
    waiting_s: float
    timing_s: float
    compile_s: float
    lane_deaths: int
    states: dict[str, int]
    lanes: list[LaneUse] = field(default_factory=list)
    uploads: list[dict[str, object]] = field(default_factory=list)


def runs_of(lines: list[str]) -> list[list[dict[str, object]]]:
    """The events of each run of a log, in the order in which the runs began.

    Raises ValueError where a line is no event.
    """
    runs: list[list[dict[str, object]]] = []
    for line in lines:
        event = json.loads(line)
        if event["event"] == "begin":
            runs.append([])
        if runs:
            runs[-1].append(event)
    return runs


def use_of(events: list[dict[str, object]]) -> ClassUse:
    """What one run's events say. Raises ValueError where no lane finished anything."""
    begin, *rest = events
    uploads = [event for event in rest if event["event"] == "upload"]
    measured = [upload for upload in uploads if "lane_s" in upload]
    if not measured:
        raise ValueError("no lane finished a submission in this run")
    wall_s = max(u["finished"] for u in measured) - min(u["began"] for u in measured)
    by_lane = {
        lane: [u["lane_s"] for u in measured if u["lane"] == lane] for lane in begin["lanes"]
    }
    lanes = [
        LaneUse(lane, len(seconds), seconds, round(sum(seconds) / wall_s, 4))
        for lane, seconds in by_lane.items()
    ]
    states = [upload["state"] for upload in uploads]
    every = [upload["lane_s"] for upload in measured]
    return ClassUse(
        begin=begin,
        submissions=len(measured),
        wall_s=round(wall_s, 3),
        whole_s=events[-1]["at"],
        submissions_per_min=round(60 * len(measured) / wall_s, 3),
        lane_s_median=round(statistics.median(every), 3),
        lane_s_max=max(every),
        busy_share=round(statistics.mean(lane.busy_share for lane in lanes), 4),
        waiting_s=_phase(measured, "start"),
        timing_s=_phase(measured, "run"),
        compile_s=round(sum(upload.get("compile_s", 0.0) for upload in measured), 3),
        lane_deaths=sum(upload.get("lane_deaths", 0) for upload in uploads),
        states={state: states.count(state) for state in dict.fromkeys(states)},
        lanes=lanes,
        uploads=measured,
    )


def _phase(uploads: list[dict[str, object]], name: str) -> float:
    return round(sum(upload.get("phases", {}).get(name, 0.0) for upload in uploads), 3)


@click.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--run", "number", type=int, default=-1, help="Which, from 0; default: the last.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also as JSON, raw.")
def main(store: Path, number: int, json_file: Path | None) -> None:
    """Print how busy the lanes of a run were that wrote to STORE."""
    log = run_log_path(store)
    try:
        runs = runs_of(log.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{log}: no run log ({error}); name a store of `grade`") from None
    if not -len(runs) <= number < len(runs):
        raise click.UsageError(f"{log}: there are {len(runs)} runs; --run counts them from 0")
    try:
        use = use_of(runs[number])
    except (KeyError, ValueError) as error:
        raise click.ClickException(f"{log}: run {number} is not whole: {error}") from None
    states = ", ".join(f"{count} {state}" for state, count in use.states.items())
    click.echo(
        f"{use.begin['device']}, {len(use.lanes)} lanes, {use.begin['cases']} cases: {states}"
    )
    click.echo(
        f"{use.submissions} submissions in {use.wall_s:.1f} s of measuring "
        f"({use.submissions_per_min:.2f} a minute), {use.whole_s:.1f} s in all"
    )
    click.echo(
        f"lane seconds a submission: median {use.lane_s_median:.1f}, max {use.lane_s_max:.1f}; "
        f"in all {use.waiting_s:.1f} s waited for children, {use.timing_s:.1f} s timed, "
        f"{use.compile_s:.1f} s compiled beside the lanes"
    )
    for lane in use.lanes:
        click.echo(f"{lane.lane}: {lane.submissions} submissions, busy {lane.busy_share:.1%}")
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(use), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
