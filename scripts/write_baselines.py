"""Write the measured part of docs/baselines.md from raw files. Nothing is run.

    python scripts/write_baselines.py docs/results/h200/baselines

FOLDER is what scripts/measure_baselines.py writes. Beside that stand figures from elsewhere: of the
public implementations on an H200 from docs/results/earlier_h200_figures.yaml, of the lab's slice
from docs/results/report_figures.yaml and the lab's checkpoints. What is missing is said in the
page.

In the page the script writes what lies between <!-- baselines: NAME --> and
<!-- baselines: end -->; all other text stays as it is. On standard output it says what the
baselines are held to and do not hold, which that text should explain.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from judge.checkpoints import load_checkpoints  # noqa: E402
from judge.suites import load_suite  # noqa: E402
from scripts import markdown  # noqa: E402
from scripts.baselines.figures import load_earlier  # noqa: E402
from scripts.baselines.material import Material  # noqa: E402
from scripts.baselines.page import BLOCKS  # noqa: E402
from scripts.baselines.sessions import read_measured  # noqa: E402
from scripts.goal import unmet  # noqa: E402
from scripts.ladder.report import load_report  # noqa: E402
from scripts.ladder.versions import right  # noqa: E402

PAGE = ROOT / "docs" / "baselines.md"
RECORDS = ROOT / "docs" / "results" / "h200" / "baselines"
CASES = ROOT / "cases" / "public.yaml"
LAB = ROOT / "cases" / "checkpoints" / "h800-mig-1g.10gb.yaml"
MARK = "baselines"


def gather(records: Path, page: Path) -> Material:
    """Read everything. Raises BaselinesError, and ValueError where a file has another form."""
    submissions = [version.name for version in right()]
    return Material(
        measured=read_measured(records, submissions),
        earlier=load_earlier(),
        report=load_report(),
        lab=load_checkpoints(LAB),
        cases=load_suite(CASES).cases,
        submissions=submissions,
        folder=records,
        page=page,
    )


def with_blocks(document: str, material: Material) -> str:
    """The document with its blocks written anew. Raises MarkerError."""
    blocks = {name: partial(write, material) for name, write in BLOCKS.items()}
    return markdown.with_blocks(document, MARK, blocks)


@click.command()
@click.argument(
    "records", type=click.Path(exists=True, file_okay=False, path_type=Path), default=RECORDS
)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE)
def main(records: Path, page: Path) -> None:
    """Write the page's blocks; the module's docstring says from what."""
    try:
        material = gather(records, page)
        document = with_blocks(page.read_text(), material)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    page.write_text(document)
    for line in unmet(material.goals):
        click.echo(line)


if __name__ == "__main__":
    main()
