"""The generated parts of docs/baselines.md, each as lines of Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from judge.implementations import FULL
from judge.record import CaseResult, Record
from judge.verdict import Verdict
from scripts.baselines.demands import (
    difference,
    score_difference,
    spread_of,
)
from scripts.baselines.material import Material
from scripts.baselines.sessions import BUDGETS, FEW, RUNS, Pair, budget_title
from scripts.baselines.times import (
    COLUMNS,
    WHOLE_PUBLIC,
    WITHOUT_SIMPLE,
    Implementation,
    found,
    gpu_ms,
    median,
    own_result,
    predicted,
)
from scripts.baselines.waves import COUNTS
from scripts.cells import NOISY, NONE, cell, change, number, quotient, yes
from scripts.conditions import days, machine_and_protocol
from scripts.goal import goal_table
from scripts.markdown import NOT_MEASURED, link, table
from scripts.names import LARGE, PUBLIC_NAMES
from scripts.work import work_of

_PROFILER = "*"


def conditions(material: Material) -> Iterator[str]:
    """On what, with what and when, and what is missing."""
    measured = material.measured
    if not measured.records and not measured.waves:
        yield NOT_MEASURED
        return
    told = dict.fromkeys(machine_and_protocol(record, part=False) for record in measured.records)
    if when := days(measured.records):
        sessions = "one session" if measured.sessions == 1 else f"{measured.sessions} sessions"
        yield f"- {when}, {sessions}: {'; '.join(told)}."
    for budget, record in measured.tables.items():
        versions = {one.implementation: one.version for one in record.rivals if one.version}
        there = [
            f"{title} {versions[name]}" if name in versions else f"{title} not installed"
            for name, title in PUBLIC_NAMES.items()
        ]
        yield f"- Table on {budget_title(budget)}: {record.submission.name}, {', '.join(there)}."
        failed = [
            f"{one.case}: {one.implementation} ({one.scope}) {one.verdict}: {cell(one.detail)}"
            for one in record.rivals
            if one.verdict is not Verdict.PASS
        ]
        yield from (f"  Left out: {line}" for line in failed)
    missing = [f"the table on {budget_title(one)}" for one in BUDGETS if one not in measured.tables]
    missing += [f"scores of {one}" for one in material.submissions if one not in measured.pairs]
    missing += [f"waves on {sms} SMs" for sms in FEW if sms not in measured.waves]
    complete = any(len(runs) == RUNS for runs in measured.runs.values())
    missing += [] if complete else ["repeated runs"]
    if missing:
        yield f"- Not measured yet: {', '.join(missing)}."
    yield ""
    folder = link(material.folder, material.page)
    yield f"Raw records: [{folder}]({folder})."


def times(material: Material) -> Iterator[str]:
    """The floor, and the event median and gpu_ms of every implementation, a table a budget."""
    if not material.measured.tables:
        yield NOT_MEASURED
        return
    ceilings = material.earlier.ceilings.rates
    for budget in BUDGETS:
        record = material.measured.tables.get(budget)
        if record is None:
            yield from (f"On {budget_title(budget)}: not measured yet.", "")
            continue
        yield from (f"On {budget_title(budget)}, {record.submission.name} as the submission:", "")
        rows = [
            [
                case.name,
                f"{work_of(case).floor_ms(ceilings):.3f}",
                *(_time_cell(record, case.name, one) for one in COLUMNS),
            ]
            for case in material.cases
        ]
        yield from table(["case", "floor", *(one.title for one in COLUMNS)], rows)
        yield ""


def graphs(material: Material) -> Iterator[str]:
    """gpu_ms beside what was published for the same implementations, on the large cases."""
    record = material.measured.tables.get("all")
    if record is None:
        yield NOT_MEASURED
        return
    rows = []
    for scope, by_name in material.earlier.graph_ms.items():
        for name, published in by_name.items():
            one = Implementation(name, scope)
            for case in LARGE:
                share = difference(record, case, one, published[case])
                here = number(gpu_ms(record, case, one), 3)
                rows.append([one.title, case, f"{published[case]:.3f}", here, change(share)])
    titles = ["implementation", "case", "published graph ms", "gpu ms", "difference"]
    yield from table(titles, rows, left=(0, 1))
    yield ""
    earlier = material.earlier
    yield f"Published: measured on an {earlier.machine}; {earlier.protocol['graph_ms']}."


def scores(material: Material) -> Iterator[str]:
    """Every submission's scores, live and by the calibrated file of the same session."""
    pairs = material.measured.pairs
    if not pairs:
        yield NOT_MEASURED
        return
    rows = [
        [name, *(_score_cell(pair, case) for case in material.names)]
        for name, pair in pairs.items()
    ]
    yield from table(["live / calibrated", *material.names], rows)
    yield ""
    small = [case for case in material.names if case not in LARGE]
    rows = [
        [
            name,
            *(number(_public_mean(record), 2) for record in (pair.live, pair.calibrated)),
            *(_largest(pair, cases) for cases in (LARGE, small)),
        ]
        for name, pair in pairs.items()
    ]
    titles = ["submission", "public, live", "calibrated"]
    yield from table([*titles, "largest difference, four large", "four small"], rows)


def budgets(material: Material) -> Iterator[str]:
    """t(14) / t(16) / t(132) of every implementation, and the ratio of the first two."""
    tables = material.measured.tables
    if not tables:
        yield NOT_MEASURED
        return
    order = [budget for budget in reversed(BUDGETS) if budget in tables]
    if len(order) < len(BUDGETS):
        missing = [budget_title(budget) for budget in BUDGETS if budget not in tables]
        yield from (f"Not measured yet: {', '.join(missing)}.", "")
    titles = [one.title for one in WITHOUT_SIMPLE]
    rows = [
        [
            case,
            *(
                " / ".join(number(median(tables[budget], case, one), 3) for budget in order)
                for one in WITHOUT_SIMPLE
            ),
        ]
        for case in material.names
    ]
    corner = " / ".join(f"t({_count(tables[budget])})" for budget in order)
    yield from table([corner, *titles], rows)
    for above, below in (("14", "16"), ("16", "all")):
        if above in tables and below in tables:
            first, second = tables[above], tables[below]
            rows = [
                [case, *(_ratio(first, second, case, one) for one in WITHOUT_SIMPLE)]
                for case in material.names
            ]
            corner = f"t({_count(first)}) over t({_count(second)})"
            yield from ("", *table([corner, *titles], rows))


def waves(material: Material) -> Iterator[str]:
    """Waves of equal CTAs: what they must be, and what they took."""
    if not material.measured.waves:
        yield NOT_MEASURED
        return
    rows = []
    for sms in FEW:
        measured = material.measured.waves.get(sms)
        for count in COUNTS if measured else ():
            found = measured.found(count)
            milliseconds = measured.milliseconds.get(count)
            rows.append(
                [
                    *(str(sms), str(count), str(measured.expected(count))),
                    number(found, 3),
                    number(statistics.median(milliseconds), 3) if milliseconds else NONE,
                ]
            )
    yield from table(["SMs", "CTAs", "waves expected", "time over one CTA's", "ms"], rows, left=())
    missing = [f"{sms} SMs" for sms in FEW if sms not in material.measured.waves]
    if missing:
        yield from ("", f"Not measured yet: {', '.join(missing)}.")


def slice_(material: Material) -> Iterator[str]:
    """The public implementations predicted for the lab's slice, beside the lab's figures."""
    record = material.measured.tables.get("14")
    if record is None or record.prediction is None:
        yield NOT_MEASURED
        return
    told = [Implementation(name, FULL) for name in material.report.public_ms]
    rows = []
    for case in material.names:
        cells = []
        for one in told:
            guess = predicted(record, case, one)
            theirs = material.report.public_ms[one.name].get(case)
            cells += [number(guess, 3), number(theirs, 3), quotient(guess, theirs)]
        guesses = [predicted(record, case, one) for one in WHOLE_PUBLIC]
        fastest = min((guess for guess in guesses if guess is not None), default=None)
        held = material.lab.cases.get(case)
        t100 = held.t100_ms if held else None
        rows.append([case, *cells, number(fastest, 3), number(t100, 3), quotient(fastest, t100)])
    titles = ["case"]
    for one in told:
        titles += [f"{one.title}, predicted", "the report", "ratio"]
    yield from table([*titles, "fastest, predicted", "the lab's t100", "ratio"], rows)
    yield ""
    prediction, report = record.prediction, material.report
    yield (
        f"Predictions for {prediction.slice}: times on {_count(record)} SMs times "
        f"{prediction.clock_factor:.3f}, not measured there. The report: {report.machine}, "
        f"{report.sms} SMs."
    )


def spread(material: Material) -> Iterator[str]:
    """Medians of repeated runs of each submission that has some, and how far they lie apart."""
    if not material.measured.runs:
        yield NOT_MEASURED
        return
    for name, runs in material.measured.runs.items():
        yield f"{name}:"
        yield ""
        yield from _spread_table(runs, material.names)
        if len(runs) < RUNS:
            yield from ("", f"Not measured yet: {RUNS - len(runs)} of {RUNS} runs of {name}.")
        yield ""
    yield "Range: largest median less smallest, over the median of medians."


def held(material: Material) -> Iterator[str]:
    """What all this is held to, and whether it holds."""
    if not material.measured.records and not material.measured.waves:
        yield NOT_MEASURED
        return
    yield from goal_table(material.goals)


BLOCKS: Mapping[str, Callable[[Material], Iterator[str]]] = {
    "conditions": conditions,
    "times": times,
    "graphs": graphs,
    "scores": scores,
    "budgets": budgets,
    "waves": waves,
    "slice": slice_,
    "spread": spread,
    "held": held,
}
"""By the name in the page's markers."""


def _spread_table(runs: Sequence[Record], cases: Sequence[str]) -> Iterator[str]:
    rows = []
    for case in cases:
        found = spread_of(runs, case)
        if found is None:
            rows.append([case, *[NONE] * (RUNS + 4), "no run passed"])
            continue
        medians = [number(value, 3) for value in found.medians]
        rows.append(
            [
                case,
                *(medians + [NONE] * (RUNS - len(medians))),
                number(found.gpu_ms, 3),
                f"{100 * found.range_ms / statistics.median(found.medians):.2f} %",
                f"{1000 * found.range_ms:.1f}",
                NONE if found.limit_ms is None else f"{1000 * found.limit_ms:.1f}",
                yes(found.within) + (f", noisy in {found.noisy}" if found.noisy else ""),
            ]
        )
    titles = [f"run {run}" for run in range(1, RUNS + 1)]
    titles += ["gpu ms", "range", "range µs", "limit µs", "within"]
    yield from table(["case", *titles], rows, left=(0, -1))


def _time_cell(record: Record, case: str, one: Implementation) -> str:
    result = found(record, case, one)
    if result is None:
        return NONE
    if result.verdict is not Verdict.PASS or result.timing is None:
        return str(result.verdict)
    noisy = NOISY if isinstance(result, CaseResult) and result.noisy else ""
    gpu = number(result.gpu_ms, 3)
    by = _PROFILER if result.gpu_ms_by == "profiler" else ""
    return f"{noisy}{result.timing.median_ms:.3f} / {gpu}{by}"


def _score_cell(pair: Pair, case: str) -> str:
    cells = []
    for record in (pair.live, pair.calibrated):
        result = own_result(record, case)
        if result is None or result.verdict is not Verdict.PASS:
            cells.append(NONE if result is None else str(result.verdict))
        else:
            cells.append((NOISY if result.noisy else "") + number(result.score, 2))
    return " / ".join(cells)


def _largest(pair: Pair, cases: Sequence[str]) -> str:
    points = [score_difference(pair, case) for case in cases]
    known = [point for point in points if point is not None]
    return f"{max(known, key=abs):+.2f}" if known and len(known) == len(points) else NONE


def _public_mean(record: Record) -> float | None:
    suites = record.score.suites
    return next((one.score for one in suites if one.suite == "public" and one.complete), None)


def _ratio(above: Record, below: Record, case: str, one: Implementation) -> str:
    return quotient(median(above, case, one), median(below, case, one))


def _count(record: Record) -> int | None:
    return record.environment.sms
