"""The blocks of the champion's page about GPU times: beside floor, aims and other kernels."""

from __future__ import annotations

from collections.abc import Iterator

from judge.case import CHUNK
from judge.implementations import CORE, FULL
from judge.record import Record
from judge.text import plain
from scripts.cells import NOISY, NONE, number, yes
from scripts.champion.goals import AIMS_MS, MOST_HOST_MS, MOST_MEAN_RATIO, geometric_mean
from scripts.champion.material import Material
from scripts.champion.pictures import Kernel, draw_roofline
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
from scripts.in_process import module_of
from scripts.ladder.versions import FIRST, SUBMITTED, VERSIONS
from scripts.markdown import NOT_MEASURED, link, picture, table
from scripts.work import work_of

_PUBLIC_KERNELS = (
    *(("FlashQLA, core", FLASH_QLA, CORE), ("FlashQLA, whole", FLASH_QLA, FULL)),
    *(("FlashInfer, whole", "flashinfer", FULL), ("FLA, whole", "fla", FULL)),
)


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
            rows.append([case, *[NONE] * 8])
            continue
        shape, work = result.case, work_of(result.case)
        chains, chunks = shape.batch * shape.v_heads, -(-shape.tokens // CHUNK)
        cells = [NONE] * 5
        if module is not None:
            sms = record.environment.sms
            columns, (segments, _, size) = module.division(chunks, chains, sms)
            ctas = chains * (module.HEAD_DIM // columns) * segments
            waves = -(-ctas // sms)
            steps = size + (module.WARM_UP if segments > 1 else 0)
            per_step = f"{1e3 * gpu / (waves * steps):.2f}"
            cells = [str(columns), str(ctas), str(waves), str(steps), per_step]
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
    titles = ["case", "chains × chunks", "columns", "CTAs", "waves", "chunks a CTA", "us a chunk"]
    yield from table([*titles, "of the tensor rate", "of the memory rate"], rows)
    yield ""
    if module is None:
        yield "The champion has changed since, so that its cuts are not known here."
    else:
        yield (
            "Columns: value columns of a CTA. Chunks a CTA: of the longest, its warm-up counted as "
            "`segmentation` does; what starting and ending takes is in the time a chunk."
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
