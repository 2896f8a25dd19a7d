"""Ask the compiler how much shared memory v14_cuda_graph takes. Needs nvcc, no GPU.

    python scripts/measure_shared_memory.py docs/results/check_v14_cuda_graph.json

Writes what `run.py check submissions/v14_cuda_graph --suite public --output-format json` prints,
without the folders of log and cache, which mean nothing elsewhere. scripts/write_ladder.py holds it
against the kernel's own list of buffers.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from judge.check_report import check_from_json, check_to_json  # noqa: E402
from scripts.ladder.versions import SUBMITTED, VERSIONS  # noqa: E402


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def main(file: Path) -> None:
    """Check the submission and write the report to FILE."""
    path = VERSIONS[SUBMITTED].path
    command = [sys.executable, "run.py", "check", path, "--suite", "public"]
    done = subprocess.run(
        [*command, "--output-format", "json"], stdout=subprocess.PIPE, cwd=ROOT, check=False
    )
    if not done.stdout:
        sys.exit(done.returncode)
    report = check_from_json(done.stdout)
    submission = replace(report.submission, log=Path(report.submission.log).name)
    shortened = replace(report, submission=submission, cache=Path(report.cache).parent.name)
    file.write_text(check_to_json(shortened) + "\n")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
