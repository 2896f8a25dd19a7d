"""Grade every version of the ladder on the public cases, one record a version and SM budget.

    python scripts/measure_ladder.py docs/results/h200/ladder --sms 132 --sms 16 --sms 14

Writes FOLDER/<version>-<SMs>.json, records as `run.py --output-format json` prints them, and leaves
alone what is there. Scores need a baseline, which `run.py` chooses. `scripts/write_ladder.py` makes
docs/ladder.md of them. Needs a CUDA device.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
SUBMISSIONS = ROOT / "submissions"
EXPERIMENTS = "experiments"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--sms", "budgets", type=int, multiple=True, help="SM budgets. Default: all SMs.")
@click.option("--only", multiple=True, help="Versions, by folder name. Default: all.")
@click.option("--baseline", default="none", help="As for run.py. Default: none.")
def main(folder: Path, budgets: tuple[int, ...], only: tuple[str, ...], baseline: str) -> None:
    """Grade each version under each budget; a version that fails is told and keeps its record."""
    folder.mkdir(parents=True, exist_ok=True)
    for budget in budgets or (0,):
        for version in versions():
            if not only or version.name in only:
                measure(version, budget, baseline, folder)


def versions() -> list[Path]:
    """The ladder's folders: kept versions, then experiments, each in the order of its names."""
    kept = [path for path in SUBMISSIONS.glob("v*") if path.is_dir()]
    dropped = [path for path in (SUBMISSIONS / EXPERIMENTS).iterdir() if path.is_dir()]
    return sorted(kept) + sorted(dropped)


def measure(version: Path, budget: int, baseline: str, folder: Path) -> None:
    """Grade one version and write its record. budget: SMs, 0 for all of the device."""
    target = folder / f"{version.name}-{budget or 'all'}.json"
    if target.exists():
        return
    command = [sys.executable, str(ROOT / "run.py"), "--submission", str(version)]
    command += ["--output-format", "json", "--baseline", baseline]
    if budget:
        command += ["--sms", str(budget)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    click.echo(f"{target.name}: exit status {done.returncode}", err=True)
    if done.stdout:
        target.write_text(done.stdout)


if __name__ == "__main__":
    main()
