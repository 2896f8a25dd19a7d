"""The generated parts of docs/champion.md, each as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from judge.case import CHUNK
from judge.floor import Ceilings
from judge.implementations import CORE, FULL
from judge.record import CaseResult, Environment, Record
from judge.submission import find_submission
from judge.text import plain
from judge.verdict import Verdict
from scripts.cells import NOISY, NONE, cell, number, yes
from scripts.champion.goals import (
    AIMS_MS,
    LEAST_SCORE,
    MOST_HOST_MS,
    MOST_MEAN_RATIO,
    every_shape,
    geometric_mean,
    goals,
    missing_shapes,
    public_score,
)
from scripts.champion.outcomes import UNCHANGED, Outcome, Outcomes
from scripts.champion.pictures import Kernel, draw_roofline, draw_sweep
from scripts.champion.raw import (
    CEILINGS,
    CHAMPION,
    FLASH_QLA,
    Raw,
    gpu_ms,
    results_of,
    rival_of,
    times_of,
)
from scripts.champion.work import H200, work_of
from scripts.goal import goal_table
from scripts.in_process import module_of
from scripts.ladder.versions import FIRST, FULL_SUITES, SUBMITTED, VERSIONS
from scripts.markdown import NOT_MEASURED, link, picture, table

CLEAR = 0.01
"""A variant whose mean ratio is closer to 1 than this makes no difference."""
_WORST_ROWS = 10
_PUBLIC_KERNELS = (
    *(("FlashQLA, core", FLASH_QLA, CORE), ("FlashQLA, whole", FLASH_QLA, FULL)),
    *(("FlashInfer, whole", "flashinfer", FULL), ("FLA, whole", "fla", FULL)),
)


@dataclass(frozen=True)
class Material:
    """All that the page is made of. submission: the champion. pictures: the folder they go to."""

    raw: Raw
    submission: Path
    page: Path
    pictures: Path

    @property
    def ceilings(self) -> Ceilings:
        """The device's measured ones, else what an H200 was measured to reach before."""
        return self.raw.ceilings or H200

    @cached_property
    def is_measured(self) -> bool:
        """Whether the champion is still, byte for byte, what public.json measured."""
        digest = find_submission(self.submission).digest
        return self.raw.public is not None and self.raw.public.submission.digest == digest


def conditions(material: Material) -> Iterator[str]:
    """What was measured when and on what, a line a file, and what is missing."""
    raw = material.raw
    folder = link(raw.folder, material.page)
    found: list[tuple[str, str, Environment, str]] = []
    for record, of in (
        (raw.public, "times beside the public kernels"),
        (raw.few, "the score"),
        (raw.suites, "correctness"),
    ):
        if record is not None:
            found.append((of, record.created, record.environment, _protocol(record)))
    if raw.variants is not None:
        found.append(
            ("variants", raw.variants.run.created, raw.variants.run.environment, "the lab's loop")
        )
    for sweep in raw.sweeps:
        found.append((sweep.file.stem, sweep.run.created, sweep.run.environment, "the lab's loop"))
    if not found:
        yield NOT_MEASURED
        return
    for of, created, machine, how in found:
        yield f"- {of}: {created[:10]}, {_machine(machine)}; {how}"
    if raw.public is not None and raw.public.rivals:
        known = dict.fromkeys(
            f"{one.implementation} {plain(one.version)}" for one in raw.public.rivals if one.version
        )
        yield f"- public kernels: {', '.join(known)}"
    if raw.versions:
        days = sorted({record.created[:10] for record in raw.versions.values()})
        yield f"- other versions: {', '.join(raw.versions)}; {' to '.join(dict.fromkeys(days))}"
    digests = {record.submission.digest for record in (raw.public, raw.few, raw.suites) if record}
    digests |= {raw.variants.run.digests[CHAMPION]} if raw.variants is not None else set()
    digests |= {sweep.run.digests[CHAMPION] for sweep in raw.sweeps}
    yield ""
    if len(digests) > 1:
        yield "These files are not of one champion: its source differs between them."
    else:
        yield f"All are of one source, whose digest begins with {min(digests)[:12]}."
    yield f"Raw files: [{folder}]({folder})."


def _machine(machine: Environment) -> str:
    part = f"{machine.sms} of {machine.sms_of}" if machine.sms_of else f"{machine.sms}"
    return (
        f"{plain(machine.device_name)}, {part} SMs, driver {machine.driver}, "
        f"PyTorch {machine.torch}, TileLang {machine.tilelang}"
    )


def _protocol(record: Record) -> str:
    protocol = record.protocol
    return f"{protocol.name} protocol, {protocol.repetitions} calls"


def times(material: Material) -> Iterator[str]:
    """The champion on all SMs beside the floor, the aim and FlashQLA's core."""
    record = material.raw.public
    if record is None:
        yield NOT_MEASURED
        return
    found = times_of(record)
    rows = []
    for case, aim in AIMS_MS.items():
        one = found.get(case)
        if one is None:
            rows.append([case, *[NONE] * 9])
            continue
        floor = work_of(one.result.case).floor_ms(material.ceilings)
        mark = NOISY if one.result.noisy else ""
        rows.append(
            [
                case,
                mark + number(one.events, 4) if one.events else str(one.result.verdict),
                number(one.gpu, 4),
                number(one.host, 4),
                number(floor, 4),
                number(one.gpu / floor if one.gpu else None, 1),
                f"{aim:.3f}",
                yes(None if one.gpu is None else one.gpu <= aim),
                number(one.core, 4),
                number(one.ratio, 2),
            ]
        )
    titles = ["case", "events", "GPU", "host", "floor", "GPU / floor", "aim", "reached"]
    yield from table([*titles, "FlashQLA core, GPU", "champion / it"], rows)
    ratios = [found[case].ratio if case in found else None for case in AIMS_MS]
    mean = geometric_mean(ratios)
    yield ""
    yield (
        f"Geometric mean of the ratios: {number(mean, 3)} (at most {MOST_MEAN_RATIO:g} is "
        f"asked, and each below 1). The host may add {MOST_HOST_MS:.3f} ms. {_methods(record)}"
    )
    yield ""
    yield _ceilings(material)
    noisy = [
        f"{case} ({plain(one.result.noisy)})" for case, one in found.items() if one.result.noisy
    ]
    if noisy:
        yield f"Noisy although timed twice, marked {NOISY}: {', '.join(noisy)}."


def _methods(record: Record) -> str:
    """How GPU times were taken; they are not all taken in one way."""
    results = results_of(record)
    own = {one.gpu_ms_by for one in results.values() if one.gpu_ms_by}
    cores = (rival_of(record, case, FLASH_QLA, CORE) for case in results)
    other = {one.gpu_ms_by for one in cores if one is not None and one.gpu_ms_by}
    told = [
        f"{name}'s by {' and '.join(sorted(methods))}"
        for name, methods in (("the champion", own), ("FlashQLA", other))
        if methods
    ]
    return f"GPU times: {', '.join(told)}." if told else ""


def _ceilings(material: Material) -> str:
    ceilings = material.ceilings
    told = f"{ceilings.bytes_per_s / 1e12:.2f} TB/s and {ceilings.flops_per_s / 1e12:.0f} TFLOP/s"
    if material.raw.ceilings is None:
        return (
            f"Ceilings: {told}, what copies and bfloat16 products reached on an H200 before; "
            "not measured with these times."
        )
    file = link(material.raw.folder / CEILINGS, material.page)
    return f"Ceilings: {told}, as the judge measured them on this device ([{CEILINGS}]({file}))."


def binds(material: Material) -> Iterator[str]:
    """What each case takes of the ceilings, and what a chunk takes in a CTA."""
    record = material.raw.public
    if record is None:
        yield NOT_MEASURED
        return
    module = module_of(material.submission) if material.is_measured else None
    ceilings = material.ceilings
    rows = []
    for case in AIMS_MS:
        result = results_of(record).get(case)
        gpu = gpu_ms(result)
        if result is None or gpu is None:
            rows.append([case, *[NONE] * 7])
            continue
        shape, work = result.case, work_of(result.case)
        chains, chunks = shape.batch * shape.v_heads, -(-shape.tokens // CHUNK)
        cells = [NONE] * 4
        if module is not None:
            sms = record.environment.sms
            segments, _, size = module.segmentation(chunks, chains * module.SLICES, sms)
            waves = -(-chains * module.SLICES * segments // sms)
            steps = size + (module.WARM_UP if segments > 1 else 0)
            per_step = f"{1e3 * gpu / (waves * steps):.2f}"
            cells = [str(chains * module.SLICES * segments), str(waves), str(steps), per_step]
        flops, moved = work.flops / gpu / ceilings.flops_per_s, work.bytes / gpu
        rows.append(
            [
                case,
                f"{chains} × {chunks}",
                *cells,
                f"{1e5 * flops:.0f} %",
                f"{1e5 * moved / ceilings.bytes_per_s:.0f} %",
            ]
        )
    titles = ["case", "chains × chunks", "CTAs", "waves", "chunks a CTA", "us a chunk"]
    yield from table([*titles, "of the tensor rate", "of the memory rate"], rows)
    yield ""
    if module is None:
        yield "The champion has changed since, so that its cuts are not known here."
    else:
        yield (
            "Chunks a CTA: of the longest, its warm-up counted as `segmentation` does; what "
            "starting and ending takes is in the time a chunk."
        )


def roofline(material: Material) -> Iterator[str]:
    """The picture with all versions and public kernels that have GPU times."""
    raw = material.raw
    if raw.public is None:
        yield NOT_MEASURED
        return
    results = results_of(raw.public)
    cases = [results[name].case for name in AIMS_MS if name in results]
    stem = material.pictures / "champion-roofline"
    drawn = [kernel for kernel in _kernels(raw) if kernel.gpu_ms]
    if not draw_roofline(drawn, cases, material.ceilings, stem):
        yield "No GPU times in the record."
        return
    yield from picture(stem, material.page, "Roofline of the public cases")
    yield (
        "FLOPs are those of the six products of every chunk, bytes all inputs and results once; "
        f"a whole forward makes its own prefix sums and inverses besides. {_ceilings(material)}"
    )
    others = [kernel.name for kernel in drawn if kernel.other]
    if others:
        yield f"Dots: {', '.join(others)}."
    known = {kernel.name for kernel in drawn}
    wanted = [VERSIONS[SUBMITTED].short, VERSIONS[FIRST].short]
    missing = [
        name for name in (*wanted, *(one for one, *_ in _PUBLIC_KERNELS)) if name not in known
    ]
    if missing:
        yield f"Without GPU times here: {', '.join(missing)}."


def _kernels(raw: Raw) -> Iterator[Kernel]:
    assert raw.public is not None
    named = [VERSIONS[name].short for name in (SUBMITTED, FIRST)]
    versions = {VERSIONS[name].short: _gpu_times(one) for name, one in raw.versions.items()}
    yield Kernel(CHAMPION, _gpu_times(raw.public))
    yield from (Kernel(name, versions[name]) for name in named if name in versions)
    for name, implementation, scope in _PUBLIC_KERNELS:
        rivals = {case: rival_of(raw.public, case, implementation, scope) for case in AIMS_MS}
        found = {case: one.gpu_ms for case, one in rivals.items() if one and one.gpu_ms}
        yield Kernel(name, found)
    yield from (
        Kernel(name, by_case, other=True) for name, by_case in versions.items() if name not in named
    )


def _gpu_times(record: Record) -> dict[str, float]:
    found = {case: gpu_ms(result) for case, result in results_of(record).items()}
    return {case: ms for case, ms in found.items() if ms}


def score(material: Material) -> Iterator[str]:
    """The public suite on few SMs, baselines live."""
    record = material.raw.few
    if record is None:
        yield NOT_MEASURED
        return
    results = results_of(record)
    rows = [
        [
            case,
            number(result.timing.median_ms if result.timing else None, 4)
            if result.verdict is Verdict.PASS
            else str(result.verdict),
            number(result.gpu_ms, 4),
            number(record.baseline.t100_ms.get(case), 4),
            number(record.baseline.t60_ms.get(case), 4),
            number(result.score, 2),
        ]
        for case, result in results.items()
    ]
    yield from table(["case", "events", "GPU", "t100", "t60", "score"], rows)
    points = public_score(material.raw)
    told = "not known: not all cases ran" if points is None else f"{points:.2f}"
    yield ""
    yield (
        f"Public score: {told} (at least {LEAST_SCORE:g} is asked). Baseline: "
        f"{plain(record.baseline.source)}, {plain(record.baseline.name)}."
    )


def ablation(material: Material) -> Iterator[str]:
    """What the champion takes with one idea off, relative to itself."""
    yield from _variants(material, off=True)


def trials(material: Material) -> Iterator[str]:
    """What it takes with one idea more."""
    yield from _variants(material, off=False)


def _variants(material: Material, off: bool) -> Iterator[str]:
    outcomes = material.raw.variants
    if outcomes is None:
        yield NOT_MEASURED
        return
    cases = list(dict.fromkeys(one.case for one in outcomes.outcomes))
    shown = []
    for change in outcomes.changes:
        if change.off is not off:
            continue
        ratios = [_relative(outcomes, change.name, case) for case in cases]
        mean = geometric_mean([None if isinstance(one, str) else one for one in ratios])
        cells = [one if isinstance(one, str) else f"{one:.3f}" for one in ratios]
        verdict = _verdict(ratios, mean, off)
        shown.append((mean or 0.0, [change.name, *cells, number(mean, 3), verdict]))
    if off:
        shown.sort(key=lambda one: -one[0])
    base = [_outcome(outcomes, UNCHANGED, case) for case in cases]
    first = ["champion, ms", *(number(one.median_ms if one else None, 4) for one in base), NONE, ""]
    name = "without" if off else "tried"
    rows = [first, *(row for _, row in shown)]
    yield from table([name, *cases, "geometric mean", "verdict"], rows, left=(0, -1))
    yield ""
    yield from (f"- `{one.name}`: {one.text}" for one in outcomes.changes if one.off is off)


def _outcome(outcomes: Outcomes, variant: str, case: str) -> Outcome | None:
    found = [one for one in outcomes.outcomes if (one.variant, one.case) == (variant, case)]
    return found[0] if found else None


def _relative(outcomes: Outcomes, variant: str, case: str) -> float | str:
    """A variant's median over the champion's; a word where it is wrong or was not timed."""
    one, champion = (_outcome(outcomes, name, case) for name in (variant, UNCHANGED))
    if one is None or champion is None:
        return NONE
    if one.verdict is not Verdict.PASS:
        return str(one.verdict)
    return one.median_ms / champion.median_ms


def _verdict(ratios: Sequence[float | str], mean: float | None, off: bool) -> str:
    if any(isinstance(one, str) and one != NONE for one in ratios):
        return "wrong"
    if mean is None:
        return "not timed everywhere"
    if abs(mean - 1) < CLEAR:
        return "no difference"
    if off:
        return f"worth {100 * (mean - 1):.1f} %" if mean > 1 else "the champion is better without"
    return f"{100 * (mean - 1):.1f} % slower" if mean > 1 else f"{100 * (1 - mean):.1f} % faster"


def sweep(material: Material) -> Iterator[str]:
    """The picture over shapes, and the rows in which the champion is worst."""
    raw = material.raw
    stem = material.pictures / "champion-sweep"
    if not draw_sweep(raw, stem):
        yield NOT_MEASURED
        return
    yield from picture(stem, material.page, "Time relative to the fastest other, by shape")
    rows = sorted(every_shape(raw), key=lambda one: -one.ratio)
    contenders = list(dict.fromkeys(name for row in rows for name in row.medians_ms))
    missing = missing_shapes(raw)
    yield (
        f"{len(rows)} shapes{f', {missing} not measured yet' if missing else ''}; the "
        f"{min(_WORST_ROWS, len(rows))} in which the champion is worst, medians in ms:"
    )
    yield ""
    cells = [
        [
            *(str(size) for size in (one.batch, one.tokens, one.qk_heads, one.v_heads)),
            one.gate,
            *(number(one.medians_ms.get(name), 4) for name in contenders),
            f"{one.ratio:.3f}",
            f"{one.difference:.3f}",
        ]
        for one in rows[:_WORST_ROWS]
    ]
    titles = ["B", "T", "Hq", "Hv", "gate", *contenders, "ratio", "difference"]
    yield from table(titles, cells, left=(4,))


def correctness(material: Material) -> Iterator[str]:
    """Cases passed by suite, and the largest errors."""
    record = material.raw.suites
    if record is None:
        yield NOT_MEASURED
        return
    rows = []
    for suite in FULL_SUITES:
        results = list(results_of(record, suite).values())
        passed = sum(one.verdict is Verdict.PASS for one in results)
        errors = [_largest(results, tensor) for tensor in ("output", "final_state")]
        rows.append([suite, f"{passed} of {len(results)}", *errors])
    yield from table(["suite", "passed", "output", "final_state"], rows, left=(0, 2, 3))
    failed = [one for one in record.results if one.verdict is not Verdict.PASS]
    yield ""
    yield (
        f"Largest errors in units of the tolerance; 1 is the limit. {_protocol(record)}, sandbox "
        f"{record.protocol.sandbox}."
    )
    yield from (f"- {one.case.name}: {one.verdict}: {cell(one.detail)}" for one in failed)


def _largest(results: Sequence[CaseResult], tensor: str) -> str:
    found = [
        (error.max_ratio, result.case.name)
        for result in results
        for error in result.errors or ()
        if error.tensor == tensor
    ]
    return "{:.2f} ({})".format(*max(found)) if found else NONE


def held(material: Material) -> Iterator[str]:
    """What the champion is held to, and whether it holds."""
    for aim, title in ((False, "asked"), (True, "aimed at")):
        yield from goal_table((goal for goal in goals(material.raw) if goal.aim is aim), title)
        yield ""


BLOCKS: Mapping[str, Callable[[Material], Iterator[str]]] = {
    "conditions": conditions,
    "correctness": correctness,
    "times": times,
    "binds": binds,
    "roofline": roofline,
    "score": score,
    "ablation": ablation,
    "trials": trials,
    "sweep": sweep,
    "held": held,
}
"""By the name in the page's markers."""
