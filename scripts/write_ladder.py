"""Write docs/ladder.md's tables and pictures from raw files. Nothing is run.

    python scripts/write_ladder.py docs/results/h200/ladder

FOLDER holds the records of scripts/measure_ladder.py, and calibration*.json of `run.py calibrate`
if there is one; figures of ncu come from docs/results/h200/profile (`run.py profile`), v14's
compiled kernels from docs/results/check_v14_cuda_graph.json (scripts/measure_shared_memory.py), the
report's figures from docs/results/report_figures.yaml. What is missing is said in the page.

In the page the script writes what lies between <!-- ladder: NAME --> and <!-- ladder: end -->, and
pictures into docs/pictures; all other text stays as it is. On standard output it says where the
order of two versions is not the report's, which that text should explain, and what the ladder is
held to and does not hold. Needs matplotlib.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.extras import require  # noqa: E402

require("matplotlib", "profile")

from scripts import markdown  # noqa: E402
from scripts.goal import unmet  # noqa: E402
from scripts.ladder.goals import goals  # noqa: E402
from scripts.ladder.material import Material  # noqa: E402
from scripts.ladder.memory import read_check  # noqa: E402
from scripts.ladder.page import BLOCKS  # noqa: E402
from scripts.ladder.records import read_ladders, read_profiles, read_public  # noqa: E402
from scripts.ladder.report import load_report  # noqa: E402
from scripts.ladder.times import order_lines  # noqa: E402
from scripts.ladder.versions import FIRST, REFERENCE, SUBMITTED  # noqa: E402

PAGE = ROOT / "docs" / "ladder.md"
PICTURES = ROOT / "docs" / "pictures"
RESULTS = ROOT / "docs" / "results"
RECORDS = RESULTS / "h200" / "ladder"
PROFILES = RESULTS / "h200" / "profile"
CHECK = RESULTS / "check_v14_cuda_graph.json"
PROFILED = (FIRST, "v06_warp_specialized", REFERENCE, SUBMITTED)
PROFILED_CASES = ("long_low_gva", "wide_gva_state")
MARK = "ladder"


def gather(records: Path, profiles: Path, check: Path, page: Path, pictures: Path) -> Material:
    """Read everything. Raises LadderError, and ValueError where a file has another form."""
    ladders = read_ladders(records)
    return Material(
        ladders=ladders,
        report=load_report(),
        public={ladder.sms: read_public(records, ladder) for ladder in ladders},
        profiles=read_profiles(profiles, PROFILED, PROFILED_CASES),
        check=read_check(check) if check.is_file() else None,
        check_file=check,
        folder=records,
        page=page,
        pictures=pictures,
    )


def with_blocks(document: str, material: Material) -> str:
    """The document with its blocks written anew; draws the pictures. Raises MarkerError."""
    blocks = {name: partial(write, material) for name, write in BLOCKS.items()}
    return markdown.with_blocks(document, MARK, blocks)


def remarks(material: Material) -> Iterator[str]:
    """What whoever writes the rest of the page should look at."""
    for ladder in material.ladders:
        for line in order_lines(material.report, ladder):
            yield f"order, {ladder.title}: {line.removeprefix('- ')}"
    yield from unmet(goals(material.ladders))


@click.command()
@click.argument(
    "records", type=click.Path(exists=True, file_okay=False, path_type=Path), default=RECORDS
)
@click.option("--profiles", type=click.Path(path_type=Path), default=PROFILES)
@click.option("--check", type=click.Path(path_type=Path), default=CHECK)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE)
@click.option("--pictures", type=click.Path(path_type=Path), default=PICTURES)
def main(records: Path, profiles: Path, check: Path, page: Path, pictures: Path) -> None:
    """Write the page's blocks and pictures; the module's docstring says from what."""
    pictures.mkdir(parents=True, exist_ok=True)
    try:
        material = gather(records, profiles, check, page, pictures)
        document = with_blocks(page.read_text(), material)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    page.write_text(document)
    for line in remarks(material):
        click.echo(line)


if __name__ == "__main__":
    main()
