"""The block of the champion's page about shapes beyond the public cases."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.cells import number
from scripts.champion.goals import every_shape, missing_shapes
from scripts.champion.material import Material
from scripts.champion.pictures import draw_sweep
from scripts.markdown import NOT_MEASURED, picture, table

_WORST_ROWS = 10


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
