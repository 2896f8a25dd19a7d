"""Write the ladder's tables and pictures from the records that scripts/measure_ladder.py made.

    python scripts/write_ladder.py docs/results/h200/ladder

Replaces what lies between the two markers in docs/ladder.md, and the pictures that it names under
docs/pictures. The report's own figures come from docs/results/report_ladder.csv (docs/lab.md names
the report). Needs matplotlib.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import matplotlib

matplotlib.use("agg")
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge.record import CaseResult, Record, from_json
from judge.verdict import Verdict

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "ladder.md"
PICTURES = ROOT / "docs" / "pictures"
REPORT = ROOT / "docs" / "results" / "report_ladder.csv"
BEGIN = "<!-- ladder: written by scripts/write_ladder.py -->"
END = "<!-- ladder: end -->"
FIRST, REFERENCE = "v01_gemm", "v07_gva_dv"
KEPT = (
    *("v01_gemm", "v02_tma", "v02b_tma_dv32", "v05_adaptive_dv", "v06_warp_specialized"),
    *("v07_gva_dv", "v14_cuda_graph"),
)
LONG = ("long_low_gva", "batch_split_gva", "wide_gva_state", "deep_gva_state")
_WIDTH_INCHES, _DPI = 7.2, 200
_COLOURS = ("#1f4e79", "#c55a11", "#548235", "#7f6000")


@dataclass(frozen=True)
class Ladder:
    """Results of one SM budget: by version, then by case."""

    budget: str
    record: Record
    results: dict[str, dict[str, CaseResult]]

    @property
    def cases(self) -> list[str]:
        """The public cases, in the order in which they ran."""
        return [result.case.name for result in self.record.results]

    def median(self, version: str, case: str) -> float | None:
        """Median in ms of a case that passed, else None."""
        result = self.results.get(version, {}).get(case)
        passed = result is not None and result.verdict is Verdict.PASS and result.timing
        return result.timing.median_ms if passed else None

    def versions(self, names: Sequence[str]) -> list[str]:
        """Those of the names that were measured."""
        return [name for name in names if name in self.results]

    @property
    def dropped(self) -> list[str]:
        """The measured experiments, by name."""
        return sorted(self.results.keys() - set(KEPT))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Read every record in FOLDER and write docs/ladder.md and its pictures."""
    ladders = read(folder)
    PICTURES.mkdir(parents=True, exist_ok=True)
    before, begin, rest = DOCUMENT.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise click.ClickException(f"{DOCUMENT}: has no place for the tables: {BEGIN} and {END}")
    body = "\n".join(line for ladder in ladders for line in section(ladder))
    DOCUMENT.write_text(f"{before}{begin}\n\n{body}\n{end}{after}")


def read(folder: Path) -> list[Ladder]:
    """The records of a folder, by SM budget, most SMs first."""
    budgets: dict[str, dict[str, Record]] = defaultdict(dict)
    for file in sorted(folder.glob("*-*.json")):
        version, _, budget = file.stem.rpartition("-")
        budgets[budget][version] = from_json(file.read_bytes())
    ladders = []
    for budget, records in budgets.items():
        results = {
            version: {result.case.name: result for result in record.results}
            for version, record in records.items()
        }
        first = records.get(FIRST) or next(iter(records.values()))
        ladders.append(Ladder(budget, first, results))
    return sorted(ladders, key=lambda ladder: -_sms(ladder))


def _sms(ladder: Ladder) -> int:
    whole = ladder.record.environment.sms or 0
    return whole if ladder.budget == "all" else int(ladder.budget)


def section(ladder: Ladder) -> Iterator[str]:
    """Tables of one budget, and the links to its pictures, as lines of Markdown."""
    sms, environment = _sms(ladder), ladder.record.environment
    yield f"## {sms} SMs"
    yield ""
    yield (
        f"{environment.device_name}, TileLang {environment.tilelang}, torch {environment.torch}, "
        f"{ladder.record.created[:10]}; event medians in ms, in brackets the spread (p90 − p10) / "
        f"median, {ladder.record.protocol.name} protocol."
    )
    yield ""
    yield from table(ladder, ladder.versions(KEPT))
    yield ""
    if ladder.dropped:
        yield "Experiments:"
        yield ""
        yield from table(ladder, ladder.dropped)
        yield ""
    for name, draw in (
        ("speed-up", draw_speed_up),
        ("long", draw_long_cases),
        ("experiments", draw_experiments),
    ):
        stem = PICTURES / f"ladder-{name}-{sms}"
        if draw(ladder, stem):
            yield f"![{name}, {sms} SMs](pictures/{stem.name}.png)"
            yield ""
    yield from beside_the_report(ladder)
    yield ""


def table(ladder: Ladder, versions: Sequence[str]) -> Iterator[str]:
    """Medians and spreads, a version a row; the verdict where a case did not pass."""
    yield "| version | " + " | ".join(ladder.cases) + " |"
    yield "| --- |" + " ---: |" * len(ladder.cases)
    for version in versions:
        cells = (_cell(ladder.results[version].get(case)) for case in ladder.cases)
        yield f"| {version} | " + " | ".join(cells) + " |"


def _cell(result: CaseResult | None) -> str:
    if result is None:
        return "–"
    if result.verdict is not Verdict.PASS or result.timing is None:
        return str(result.verdict)
    return f"{result.timing.median_ms:.3f} ({result.timing.spread:.0%})"


def beside_the_report(ladder: Ladder) -> Iterator[str]:
    """The report's figures on its slice of 14 SMs, ours, and their ratio."""
    with REPORT.open(newline="") as file:
        rows = [
            (row["version"], row["case"], float(row["median_ms"])) for row in csv.DictReader(file)
        ]
    yield "| version | case | the report, 14 SMs | here | here / report |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for version, case, theirs in rows:
        ours = ladder.median(version, case)
        if ours is not None:
            yield f"| {version} | {case} | {theirs:.3f} | {ours:.3f} | {ours / theirs:.2f} |"


def draw_speed_up(ladder: Ladder, stem: Path) -> bool:
    """Heat map of v01's median over each version's; nothing where v01 was not measured."""
    versions = ladder.versions(KEPT)
    if FIRST not in versions or len(versions) < 2:
        return False
    ratios = [
        [_ratio(ladder, FIRST, version, case) for case in ladder.cases] for version in versions
    ]
    figure = Figure(figsize=(_WIDTH_INCHES, 0.42 * len(versions) + 1.9), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(
        [[value or float("nan") for value in row] for row in ratios], cmap="Blues", aspect="auto"
    )
    dark = max(value or 0 for row in ratios for value in row) * 0.6
    for y, row in enumerate(ratios):
        for x, value in enumerate(row):
            text = "–" if value is None else f"{value:.2f}"
            colour = "white" if value is not None and value > dark else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(ladder.cases)), ladder.cases, rotation=30, ha="right", fontsize=8)
    axes.set_yticks(range(len(versions)), versions, fontsize=8)
    axes.set_title(f"Speed-up over {FIRST} (ratio of medians), {_sms(ladder)} SMs", fontsize=10)
    figure.colorbar(image, ax=axes, label="times as fast")
    return _save(figure, stem)


def draw_long_cases(ladder: Ladder, stem: Path) -> bool:
    """Medians of the four long cases by version, on one logarithmic scale."""
    versions = ladder.versions(KEPT)
    if len(versions) < 2:
        return False
    figure = Figure(figsize=(_WIDTH_INCHES, 3.6), layout="constrained")
    axes = figure.subplots()
    for case, colour in zip(LONG, _COLOURS, strict=True):
        medians = [ladder.median(version, case) or float("nan") for version in versions]
        axes.plot(range(len(versions)), medians, marker="o", color=colour, label=case)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.tick_params(axis="y", which="both", labelsize=8)
    axes.set_xticks(range(len(versions)), versions, rotation=20, ha="right", fontsize=8)
    axes.set_ylabel("median of a call, ms (logarithmic)")
    axes.set_title(f"The four long cases, {_sms(ladder)} SMs", fontsize=10)
    axes.grid(axis="y", which="both", alpha=0.3)
    axes.legend(fontsize=8)
    return _save(figure, stem)


def draw_experiments(ladder: Ladder, stem: Path) -> bool:
    """Medians of the experiments that passed, relative to v07's, on the long cases."""
    bars = [
        (version, [_ratio(ladder, version, REFERENCE, case) for case in LONG])
        for version in ladder.dropped
    ]
    bars = [(version, ratios) for version, ratios in bars if any(ratios)]
    if not bars:
        return False
    figure = Figure(figsize=(_WIDTH_INCHES, 0.6 * len(bars) + 1.4), layout="constrained")
    axes = figure.subplots()
    for offset, (case, colour) in enumerate(zip(LONG, _COLOURS, strict=True)):
        places = [y + (offset - 1.5) * 0.2 for y in range(len(bars))]
        widths = [ratios[offset] or 0.0 for _, ratios in bars]
        axes.barh(places, widths, height=0.18, color=colour, label=case)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(bars)), [version for version, _ in bars], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"median relative to {REFERENCE} (1 is as fast, more is slower)")
    axes.set_title(f"Dropped experiments, {_sms(ladder)} SMs", fontsize=10)
    axes.legend(fontsize=8)
    return _save(figure, stem)


def _ratio(ladder: Ladder, above: str, below: str, case: str) -> float | None:
    first, second = ladder.median(above, case), ladder.median(below, case)
    return first / second if first is not None and second is not None else None


def _save(figure: Figure, stem: Path) -> bool:
    for kind in ("png", "svg"):
        figure.savefig(stem.with_suffix(f".{kind}"), dpi=_DPI)
    return True


if __name__ == "__main__":
    main()
