"""The generated parts of docs/ladder.md, each as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from scripts.cells import NOISY
from scripts.conditions import days, machine_and_protocol
from scripts.goal import goal_table
from scripts.ladder.goals import goals
from scripts.ladder.kernels import memory, stalls
from scripts.ladder.material import Material
from scripts.ladder.scores import scores
from scripts.ladder.times import experiments, long_cases, order, public, speed_up, times
from scripts.ladder.verdicts import verdicts
from scripts.ladder.versions import VERSIONS
from scripts.markdown import NOT_MEASURED, link


def conditions(material: Material) -> Iterator[str]:
    """On what, with what and when each budget was measured, and what is missing."""
    if not material.ladders:
        yield f"{NOT_MEASURED} Until then the tables hold the report's figures."
        return
    for ladder in material.ladders:
        told = dict.fromkeys(
            machine_and_protocol(record, part=True) for record in ladder.records.values()
        )
        yield f"- {ladder.title}, {days(ladder.records.values())}: {'; '.join(told)}."
        if len(told) > 1:
            yield "  These records are not of one kind: differences between them mean little."
        if missing := [name for name in VERSIONS if name not in ladder.records]:
            yield f"  Not measured yet: {', '.join(missing)}."
    noisy = [
        f"{name} on {result.case.name} ({ladder.title})"
        for ladder in material.ladders
        for name, record in ladder.records.items()
        for result in record.results
        if result.noisy
    ]
    if noisy:
        yield f"- Noisy although timed twice, marked {NOISY} below: {', '.join(noisy)}."
    yield ""
    folder = link(material.folder, material.page)
    yield f"Raw records: [{folder}]({folder})."


def held(material: Material) -> Iterator[str]:
    """What the ladder is held to, and whether it holds."""
    yield from goal_table(goals(material.ladders))


BLOCKS: Mapping[str, Callable[[Material], Iterator[str]]] = {
    "conditions": conditions,
    "verdicts": verdicts,
    "times": times,
    "speed-up": speed_up,
    "long-cases": long_cases,
    "order": order,
    "experiments": experiments,
    "scores": scores,
    "public": public,
    "memory": memory,
    "stalls": stalls,
    "held": held,
}
"""By the name in the page's markers."""
