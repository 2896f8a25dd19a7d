"""The blocks of the ladder's page about what goes on in a kernel: shared memory and stalls."""

from __future__ import annotations

from collections.abc import Iterator

from judge.profiling.stalls import label
from scripts.cells import NONE, percent
from scripts.ladder.material import Material
from scripts.ladder.memory import (
    HAND_OVER,
    INPUTS,
    KB,
    Buffer,
    buffers,
    compiled,
    dynamic_bytes,
    group_bytes,
    static_bytes,
)
from scripts.ladder.pictures import draw_stalls
from scripts.ladder.versions import FIRST, REFERENCE, SUBMITTED
from scripts.markdown import NOT_MEASURED, link, picture, table

_SHOWN_STALLS = ("long_scoreboard", "short_scoreboard", "barrier", "wait", "branch_resolving")


def memory(material: Material) -> Iterator[str]:
    """v14's shared memory, buffer by buffer, beside what the compiler says."""
    wide, narrow = buffers(128), buffers(64)
    rows = [
        [
            buffer.group,
            f"`{buffer.name}`",
            _sizes(buffer, other),
            f"{buffer.size:,}",
            f"{other.size:,}",
        ]
        for buffer, other in zip(wide, narrow, strict=True)
    ]
    titles = ["", "buffer", "sizes × bytes", "dv slice 128", "dv slice 64"]
    yield from table(titles, rows, left=(0, 1, 2))
    yield ""
    reported = material.report.shared_memory_kb
    rows = [
        [
            group,
            _kb(group_bytes(wide, group)),
            _kb(group_bytes(narrow, group)),
            f"{reported[key]:g}",
        ]
        for group, key in ((INPUTS, "inputs"), (HAND_OVER, "hand_over"))
    ]
    rows.append(
        [
            "a block, with the static part rounded up",
            *(_kb(dynamic_bytes(listed) + static_bytes(listed)) for listed in (wide, narrow)),
            f"{reported['total']:g}",
        ]
    )
    yield from table(["KB", "dv slice 128", "dv slice 64", "the report"], rows)
    yield ""
    if material.check is None:
        yield "Not compiled here yet: see scripts/measure_shared_memory.py."
        return
    yield from _compiled(material, wide, narrow)


def _sizes(buffer: Buffer, other: Buffer) -> str:
    """2 × 64 × 128 × 2; what follows the dv slice is told as both."""
    pairs = zip(buffer.sizes, other.sizes, strict=True)
    return " × ".join([*(str(a) if a == b else "dv" for a, b in pairs), str(buffer.item)])


def _compiled(material: Material, wide: list[Buffer], narrow: list[Buffer]) -> Iterator[str]:
    check = material.check
    assert check is not None
    told = []
    for name, listed in (("128", wide), ("64", narrow)):
        kernels = compiled(check, listed)
        if not kernels:
            told.append(f"no kernel with the sum of dv slice {name}")
            continue
        first = kernels[0]
        ctas = first.occupancy.ctas if first.occupancy else NONE
        told.append(
            f"dv slice {name}: {first.dynamic_shared:,} + {first.static_shared:,} B, "
            f"{first.registers} registers a thread, {ctas} block an SM"
        )
    profile = check.profile
    limit = profile.shared_per_block
    half = profile.shared_per_sm // 2 - profile.shared_reserved
    yield (
        f"The compiler says ([check]({link(material.check_file, material.page)}), TileLang "
        f"{check.tilelang}): {'; '.join(told)}. A block may have {limit:,} B ({limit / KB:g} KB); "
        f"for two on an SM each may have {_kb(half)} KB."
    )


def _kb(size: int) -> str:
    return f"{size / KB:.1f}"


def stalls(material: Material) -> Iterator[str]:
    """Where the warps' cycles go, and how busy the tensor cores are."""
    stem = material.pictures / "ladder-stalls"
    if draw_stalls(material.profiles, stem):
        yield from picture(stem, material.page, "Stall breakdown by version and case")
    else:
        yield from (f"{NOT_MEASURED} The report's figures:", "")
    titles = ["version", "case", "tensor cores active", "issue slots busy", "SMs busy"]
    titles += [label(reason) for reason in _SHOWN_STALLS]
    rows = [
        [
            f"[{profile.version}]({link(profile.file, material.page)})",
            profile.case,
            percent(profile.tensor_active_pct),
            percent(profile.issue_active_pct),
            percent(profile.sms_busy_pct),
            *(percent(100 * profile.stall(reason)) for reason in _SHOWN_STALLS),
        ]
        for profile in material.profiles
    ]
    active = material.report.tensor_active_pct
    low, high = active[SUBMITTED]
    for case, told in material.report.stalls_pct[SUBMITTED].items():
        shares = [percent(told.get(reason)) for reason in _SHOWN_STALLS]
        name = f"the report's v14, {material.report.sms} SMs"
        rows.append([name, case, f"{low:g} to {high:g} %", NONE, NONE, *shares])
    yield from table(titles, rows, left=(0, 1))
    known = {(profile.version, profile.case) for profile in material.profiles}
    wanted = (FIRST, "v06_warp_specialized", REFERENCE, SUBMITTED)
    missing = [
        f"{version} on {case}"
        for case in material.report.stalls_pct[SUBMITTED]
        for version in wanted
        if (version, case) not in known
    ]
    if missing:
        yield from ("", f"Not profiled yet: {', '.join(missing)}.")
