"""Make a store as large as a class's and time what reads it.

    python scripts/bench_board.py STORE [--participants N] [--tries N] [--site DIR]

Every result has 14 cases with 100 samples each: 8 public, 4 hidden and 2 of the gate. Prints
seconds of wall time of several runs, the best first, and the CPU seconds of that run, of
`leaderboard` in each format and of the site; and the size of the site's largest page.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from judge.card import Card  # noqa: E402
from judge.case import Case, Suite  # noqa: E402
from judge.record import (  # noqa: E402
    SCHEMA_VERSION,
    Audit,
    Baseline,
    CaseResult,
    Environment,
    Protocol,
    Record,
    SubmissionInfo,
    TensorError,
    Witness,
)
from judge.roster import Participant  # noqa: E402
from judge.scoring import result_score, score_run  # noqa: E402
from judge.store.schema import StoreError  # noqa: E402
from judge.store.store import Store  # noqa: E402
from judge.suites import load_suites  # noqa: E402
from judge.timing import summarize  # noqa: E402
from judge.uploads import Place, Upload  # noqa: E402
from judge.verdict import Rules, Verdict  # noqa: E402

COUNTS = {"public": 8, "hidden": 4, "correctness": 2}
SAMPLES = 100
RUNS = 3
FORMATS = ("table", "csv", "json", "md")
FAILURES = (Verdict.WRONG, Verdict.CRASH, Verdict.TIMEOUT, Verdict.COMPILE_ERROR)
GIVEN = ("Zoë", "<b>Max</b>", "王小明", "Ana María", "Jürgen", "Ελένη", "李华", "O'Neil & Co")


def suites() -> list[Suite]:
    """The judge's own suites, cut to 14 cases."""
    loaded = {suite.name: suite for suite in load_suites(sorted((ROOT / "cases").glob("*.yaml")))}
    return [
        replace(loaded[name], cases=loaded[name].cases[:count]) for name, count in COUNTS.items()
    ]


def baseline(every: list[Suite]) -> Baseline:
    """Times that grow with a case's work."""
    timed = [case for suite in every for case in suite.cases if case.timed]
    t100 = {case.name: 0.05 + case.tokens * case.v_heads * 6e-6 for case in timed}
    t60 = {name: 4 * ms for name, ms in t100.items()}
    return Baseline("checkpoints", "made up", t100, t60, {})


def results(
    every: list[Suite], base: Baseline, dice: random.Random, skill: float
) -> Iterator[CaseResult]:
    """A result of each case, of a submission at about `skill` times the speed of t100."""
    for suite in every:
        for case in suite.cases:
            verdict = dice.choice(FAILURES) if dice.random() < 0.03 else Verdict.PASS
            yield result(suite.name, case, verdict, base, dice, skill)


def result(
    suite: str, case: Case, verdict: Verdict, base: Baseline, dice: random.Random, skill: float
) -> CaseResult:
    """A result of one case."""
    timing = witness = None
    if case.timed and verdict is Verdict.PASS:
        median = base.t100_ms[case.name] / (skill * dice.uniform(0.8, 1.25))
        samples = [median * (1 + dice.gammavariate(2, 0.006)) for _ in range(SAMPLES)]
        timing = summarize(samples)
        floor = base.t100_ms[case.name] / 3
        witness = Witness(median, median, 2 * median, 0.02, 0.0, 0.01, 0.0, floor)
    errors = [
        TensorError(name, dice.random() / 1e3, dice.random(), [0, 3, 1, 7], 0.0)
        for name in ("output", "final_state")
    ]
    audits = [Audit(f"repetition {n}", dice.getrandbits(63), None, 5e-3, errors) for n in range(3)]
    return CaseResult(
        suite=suite,
        case=case,
        verdict=verdict,
        detail="" if verdict is Verdict.PASS else "output: 3 of 1000 elements, worst at [0, 1, 2]",
        errors=errors if verdict is Verdict.PASS else None,
        timing=timing,
        score=result_score(case, verdict, timing, base),
        seconds={"prepare": 0.1, "first_call": 0.2, "run": 0.5},
        audits=audits,
        witness=witness,
    )


def record(every: list[Suite], base: Baseline, dice: random.Random, skill: float) -> Record:
    """A run of all cases on a made-up device."""
    done = list(results(every, base, dice, skill))
    environment = Environment(
        *("cuda:0", "NVIDIA H800 MIG 1g.10gb", 16, 9.8, "570.86.15", "12.8", "2.11.0", "0.1.15"),
        *("3.11.7", "Linux", 16),
    )
    return Record(
        schema_version=SCHEMA_VERSION,
        judge_version="0.1.0",
        created=f"2026-02-{dice.randint(1, 28):02}T12:34:56+00:00",
        interrupted=False,
        submission=SubmissionInfo("made up", "made up", "0" * 64, Rules.OK, "", "", False),
        environment=environment,
        protocol=Protocol(10, SAMPLES, 42, "cuda_events", True, 300.0, "strict", "bubblewrap"),
        baseline=base,
        results=done,
        score=score_run(every, done, gate_on=True, rules=Rules.OK, official=True),
        notes=[],
        seconds=20.0,
    )


def fill(path: Path, participants: int, tries: int) -> None:
    """Make the store anew."""
    dice = random.Random(1)
    every = suites()
    base = baseline(every)
    for old in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        old.unlink(missing_ok=True)
    with Store(path) as store:
        for number in range(participants):
            who = Participant(f"32101{number:05}", f"{GIVEN[number % len(GIVEN)]} {number}", "")
            skill = dice.uniform(0.3, 1.9)
            for attempt in range(tries):
                content = f"c{number}-{attempt}"
                place = Place(Path("uploads") / who.id / str(attempt), who.id, str(attempt))
                store.see(Upload(place, None, Card(), "", "2026-02-01T00:00:00"), who, content)
                store.add(who.id, content, "s", record(every, base, dice, skill))
                skill *= 1.05


def report(name: str, arguments: list[str]) -> None:
    """Run a command several times, its output thrown away, and print a line."""
    runs = sorted(once(arguments) for _ in range(RUNS))
    walls = ", ".join(f"{wall:.2f}" for wall, _ in runs)
    click.echo(f"{name:6} {walls} s; {runs[0][1]:.2f} s of CPU")


def once(arguments: list[str]) -> tuple[float, float]:
    """Seconds of wall time and of CPU time of one run."""
    before = os.times()
    start = time.perf_counter()
    command = [sys.executable, str(ROOT / "run.py"), "leaderboard", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user - before.children_user
    return wall, cpu + after.children_system - before.children_system


@click.command()
@click.argument("store_file", type=click.Path(path_type=Path), metavar="STORE")
@click.option("--participants", type=click.IntRange(1), default=1000, help="Default: 1000.")
@click.option("--tries", type=click.IntRange(1), default=1, help="Of each. Default: 1.")
@click.option(
    "--site", type=click.Path(path_type=Path), help="Also write the site, to this folder."
)
def main(store_file: Path, participants: int, tries: int, site: Path | None) -> None:
    """Make the store and print how long it takes to read. Neither it nor the site may be there."""
    for path in (store_file, site):
        if path is not None and path.exists():
            raise click.UsageError(f"{path} is there already; name one that is not")
    start = time.perf_counter()
    try:
        fill(store_file, participants, tries)
    except StoreError as error:
        raise click.UsageError(str(error)) from None
    size = store_file.stat().st_size / 2**20
    click.echo(
        f"{participants * tries} results, {size:.0f} MiB, made in "
        f"{time.perf_counter() - start:.0f} s"
    )
    for name in FORMATS:
        report(name, ["--store", str(store_file), "--format", name])
    if site is not None:
        options = ["--store", str(store_file), "--format", "html", "-o", str(site)]
        report("html", options)
        pages = sorted(site.rglob("*.html"), key=lambda page: page.stat().st_size)
        click.echo(
            f"{len(pages)} pages, the largest {pages[-1].relative_to(site)}: "
            f"{pages[-1].stat().st_size / 1000:.0f} KB"
        )
        shutil.rmtree(site)


if __name__ == "__main__":
    main()
