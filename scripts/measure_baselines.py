"""Make the raw files of docs/baselines.md on a GPU, part by part; what is there is left alone.

    python scripts/measure_baselines.py docs/results/h200/baselines table-all scores
    python scripts/measure_baselines.py docs/results/h200/baselines table-16 table-14 waves spread
    python scripts/write_baselines.py docs/results/h200/baselines

Writes FOLDER/<session>/…: a session is a machine since its start and one of its GPUs, named by
eight digits of a digest. Records are as `run.py --output-format json` prints them, with two paths
shortened, and each is written as soon as it is finished, so that what is cut off goes on with the
same command, elsewhere too. Parts are measured one after the other, never two at once.

How long each takes on an H200 is estimated from how often it calls what, where it is not said to be
measured. On a machine where no public implementation ran before, its kernels are compiled first,
which comes on top: minutes. `grade` names TileLang's target, and kernels of a named target are kept
apart from others; with TILELANG_TARGET and TILELANG_DEFAULT_TARGET set to TARGET of
judge/profiles.py, all parts share theirs.

- table-all: `run.py --reference-benchmarks --baseline live` of one submission on all public cases,
  the lab's CSV beside its record: of six rivals a check against float64, 120 calls in turns and 50
  more a case. 175 s, measured, where FLA's kernels of three of six pairs of head counts were there
  (scripts/compile_fla.py). What is not installed is said on standard error, what fails stands in
  the record's notes, which are printed.
- table-16, table-14: the same on 16 SMs and on the lab's slice. 3 minutes each: calls take up to
  nine times as long there.
- scores: `calibrate` on the public cases (75 s); then the ladder's versions, wrong ones aside, all
  by that file in one `grade` (3 minutes: 10 s a version after the start), and all live in another
  one (5 minutes: 15 to 22 s a version, measured, since public implementations are tried out anew
  beside each). A version's two records and the calibration are always of one session: what was cut
  off before both were there is measured again in the next session.
- waves: scripts/measure_waves.py on 14 and on 16 SMs. 15 s, most of it two starts.
- spread: one submission on all public cases, five times, without a baseline, in one `grade`: five
  children, one judge. 90 s, measured by the shell. All five are of one session; of another
  submission (--submission) there can be five more.

A row that is noisy is timed twice, by the judge itself: where many are, half as long again.

Exit status: 0 all is there, 1 some of it is not, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from judge.record import from_json  # noqa: E402
from judge.views.benchmarks import benchmark_csv  # noqa: E402
from scripts.baselines.sessions import (  # noqa: E402
    BUDGETS,
    CALIBRATED,
    FEW,
    LIVE,
    RUNS,
    SessionFolder,
    session_folders,
)
from scripts.grading import (  # noqa: E402
    INTERRUPTED,
    WRONG_USAGE,
    Entry,
    budget_options,
    grade_entries,
    keep_record,
)
from scripts.ladder.versions import PUBLIC_SUITE, VERSIONS, Version, right  # noqa: E402

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WHICH_GPU = (
    "import sys; from judge.device import choose_device, gpu_identity; "
    "device = choose_device(sys.argv[1]); "
    "print('cpu' if device.type == 'cpu' else gpu_identity(device))"
)


@dataclass(frozen=True)
class Job:
    """What a part works with. version: of tables and repeated runs; scored: of `scores`.

    suite: whose cases are run.
    """

    folder: Path
    session: SessionFolder
    device: str
    version: Version
    scored: Sequence[Version]
    suite: str = PUBLIC_SUITE

    def anywhere(self, there: Callable[[SessionFolder], bool]) -> bool:
        """Whether any session has something."""
        return any(there(session) for session in session_folders(self.folder))


def table(job: Job, budget: str) -> int:
    """The extended table on a budget, as a record and as the lab's CSV."""
    if job.anywhere(lambda session: session.table(budget).is_file()):
        return 0
    status, printed = printed_by(table_command(job, budget))
    if status not in (0, 1) or not printed.strip():
        return status
    record = from_json(printed)
    file = job.session.table(budget)
    keep_record(record, job.version.path, file)
    file.with_suffix(".csv").write_text(benchmark_csv(record))
    for note in record.notes:
        click.echo(f"table-{budget}: {note}")
    return 0


def table_command(job: Job, budget: str) -> list[str]:
    """The command behind `table`."""
    options = ["--submission", str(ROOT / job.version.path), "--suite", job.suite]
    options += ["--reference-benchmarks", "--baseline", "live", "--output-format", "json"]
    return _run_py(*options, "--device", job.device, *budget_options(budget))


def scores(job: Job) -> int:
    """Submissions by a calibrated file of this session, and live."""
    due = [
        version
        for version in job.scored
        if not job.anywhere(lambda session, name=version.name: session.has_pair(name))
    ]
    if not due:
        return 0
    calibration = job.session.calibration
    if not calibration.is_file():
        options = ["--suite", job.suite, "--output", str(calibration), "--device", job.device]
        status, _ = printed_by(_run_py("calibrate", *options))
        if status:
            return status
    for name, baseline in ((CALIBRATED, str(calibration)), (LIVE, "live")):
        entries = [
            Entry(version.name, version.path, job.session.scored(version.name, name))
            for version in due
        ]
        status = _grade(job, entries, baseline, name)
        if status in (WRONG_USAGE, INTERRUPTED):
            return status
    return 0 if all(job.session.has_pair(version.name) for version in due) else 1


def spread(job: Job) -> int:
    """One submission, RUNS times."""
    name = job.version.name
    if job.anywhere(lambda session: len(session.runs(name)) == RUNS):
        return 0
    entries = [
        Entry(f"run-{number}", job.version.path, job.session.run(name, number))
        for number in range(1, RUNS + 1)
    ]
    return _grade(job, entries, "none", "spread")


def waves(job: Job) -> int:
    """Equal CTAs on the budgets of FEW."""
    for sms in FEW:
        if job.anywhere(lambda session, sms=sms: session.waves(sms).is_file()):
            continue
        script = str(ROOT / "scripts" / "measure_waves.py")
        job.session.path.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, script, str(job.session.waves(sms)), "--sms", str(sms)]
        status, _ = printed_by([*command, "--device", job.device])
        if status:
            return status
    return 0


PARTS: Mapping[str, Callable[[Job], int]] = {
    "table-all": lambda job: table(job, "all"),
    "scores": scores,
    "waves": waves,
    "spread": spread,
    **{
        f"table-{budget}": lambda job, budget=budget: table(job, budget)
        for budget in BUDGETS
        if budget != "all"
    },
}
"""In the order in which they are worth most."""


def session_name(device: str) -> str:
    """Eight digits that tell this machine, since its start, and the GPU from all others.

    Asked in a process of its own, lest this one hold a CUDA context beside what is timed. Raises
    click.UsageError where there is no such device.
    """
    command = [sys.executable, "-c", _WHICH_GPU, device]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["the device cannot be looked at"]
        raise click.UsageError(said[-1].partition("DeviceError: ")[2] or said[-1])
    boot = _BOOT_ID.read_text() if _BOOT_ID.is_file() else ""
    return hashlib.sha256(f"{boot}{done.stdout.strip()}".encode()).hexdigest()[:8]


def printed_by(command: Sequence[str]) -> tuple[int, str]:
    """Exit status and standard output of a command; after an interrupt, once it has ended too."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed, _ = process.communicate()
        except KeyboardInterrupt:  # the command has had it too, and ends
            process.wait()
            return INTERRUPTED, ""
    return process.returncode, printed


def _grade(job: Job, entries: Sequence[Entry], baseline: str, label: str) -> int:
    due = [entry for entry in entries if not entry.record.exists()]
    options = ["--baseline", baseline, "--device", job.device, "--suite", job.suite]
    return grade_entries(due, options, label) if due else 0


def _run_py(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "run.py"), *arguments]


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)), metavar="[PART]...")
@click.option("--device", default="cuda:0", help="As for run.py. Default: cuda:0.")
@click.option(
    "--submission",
    type=click.Choice(list(VERSIONS)),
    metavar="NAME",
    default="champion",
    help="Of the tables and the repeated runs. Default: champion.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([version.name for version in right()]),
    metavar="NAME",
    help="Of `scores`; repeatable. Default: all of the ladder that are right.",
)
def main(
    folder: Path, parts: tuple[str, ...], device: str, submission: str, only: tuple[str, ...]
) -> None:
    """Measure what has no file in FOLDER yet. Parts: table-all, scores, waves, spread, table-16,
    table-14; all of them where none is named."""
    job = Job(
        folder=folder,
        session=SessionFolder(folder / session_name(device)),
        device=device,
        version=VERSIONS[submission],
        scored=[version for version in right() if not only or version.name in only],
    )
    fine = True
    for part in parts or PARTS:
        status = PARTS[part](job)
        if status in (WRONG_USAGE, INTERRUPTED):
            sys.exit(status)
        click.echo(f"{part}: {'there' if not status else f'not finished (status {status})'}")
        fine = fine and not status
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
