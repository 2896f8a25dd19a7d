"""Write docs/champion.md's tables and pictures from raw files. Nothing is run.

    python scripts/write_champion.py docs/results/h200/champion

FOLDER holds what scripts/champion/raw.py names, and need not exist: times beside the public kernels
and the score are else the baselines' newest tables of the champion, correctness and other versions
the ladder's records. docs/champion.md has the commands. What is missing is said in the page. In the
page the script writes what lies between <!-- champion: NAME --> and <!-- champion: end -->, and
pictures into docs/pictures; all other text stays as it is.

On standard output it says what is missing, which demands are not met or not known, and which aims
are missed. Exit status: 0 where all demands are met, 1 where one is not, or cannot be told yet.
Needs matplotlib.
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
from scripts.champion.goals import goals  # noqa: E402
from scripts.champion.material import Material  # noqa: E402
from scripts.champion.page import BLOCKS  # noqa: E402
from scripts.champion.raw import PUBLIC, Raw, RawError, read_raw  # noqa: E402

PAGE = ROOT / "docs" / "champion.md"
PICTURES = ROOT / "docs" / "pictures"
FOLDER = ROOT / "docs" / "results" / "h200" / "champion"
LADDER = ROOT / "docs" / "results" / "h200" / "ladder"
BASELINES = ROOT / "docs" / "results" / "h200" / "baselines"
SUBMISSION = ROOT / "submissions" / "champion"
READ = click.Path(exists=True, file_okay=False, path_type=Path)


def with_blocks(document: str, material: Material) -> str:
    """The document with its blocks written anew; draws the pictures.

    Raises RawError where a marker does not fit.
    """
    try:
        return markdown.with_blocks(
            document,
            "champion",
            {name: partial(block, material) for name, block in BLOCKS.items()},
        )
    except markdown.MarkerError as error:
        raise RawError(f"{material.page}: {error}") from None


def remarks(raw: Raw) -> Iterator[str]:
    """What is missing; a line for each demand not met or not known, and each aim that is missed."""
    if not raw.folder.is_dir():
        yield f"{raw.folder}: no such folder"
    if raw.missing:
        yield f"not measured yet: {', '.join(raw.missing)}"
    for goal in goals(raw):
        if goal.holds is None:
            yield f"not known: {goal.asked}: {goal.found}"
        elif not goal.holds:
            yield f"{'aim missed' if goal.aim else 'not met'}: {goal.asked}: {goal.found}"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER)
@click.option("--ladder", type=READ, default=LADDER)
@click.option("--baselines", type=READ, default=BASELINES)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE)
@click.option("--pictures", type=click.Path(path_type=Path), default=PICTURES)
def main(folder: Path, ladder: Path, baselines: Path, page: Path, pictures: Path) -> None:
    """Write the page's blocks and pictures; the module's docstring says from what."""
    pictures.mkdir(parents=True, exist_ok=True)
    try:
        material = Material(read_raw(folder, ladder, baselines), SUBMISSION, page, pictures)
        document = with_blocks(page.read_text(), material)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    page.write_text(document)
    for line in remarks(material.raw):
        click.echo(line)
    if material.raw.public is not None and not material.is_measured:
        measured = material.raw.files[PUBLIC]
        click.echo(f"the champion is no longer what {measured} measured")
    sys.exit(not all(goal.holds for goal in goals(material.raw) if not goal.aim))


if __name__ == "__main__":
    main()
