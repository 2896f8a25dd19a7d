"""The generated parts of docs/champion.md, each as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from judge.record import Environment
from judge.text import plain
from scripts.champion.ablation import ablation, trials
from scripts.champion.goals import goals
from scripts.champion.judged import correctness, score
from scripts.champion.material import Material
from scripts.champion.raw import CHAMPION
from scripts.champion.sweep import sweep
from scripts.champion.times import binds, roofline, times
from scripts.conditions import days, protocol_and_calls
from scripts.goal import goal_table
from scripts.markdown import NOT_MEASURED, link
from scripts.names import PUBLIC_NAMES


def conditions(material: Material) -> Iterator[str]:
    """What was measured when and on what, a line a file, and what is missing."""
    raw = material.raw
    found: list[tuple[str, str, Environment, str]] = []
    for record, of in (
        (raw.public, "times beside the public kernels"),
        (raw.few, "the score"),
        (raw.suites, "correctness"),
    ):
        if record is not None:
            how = f"{protocol_and_calls(record)}, judge {record.judge_version}"
            found.append((of, record.created, record.environment, how))
    if raw.variants is not None:
        found.append(
            ("variants", raw.variants.run.created, raw.variants.run.environment, "the lab's loop")
        )
    for one in raw.sweeps:
        found.append((one.file.stem, one.run.created, one.run.environment, "the lab's loop"))
    if not found:
        yield NOT_MEASURED
        return
    for of, created, machine, how in found:
        yield f"- {of}: {created[:10]}, {_machine(machine)}; {how}"
    if raw.public is not None and raw.public.rivals:
        known = dict.fromkeys(
            f"{one.implementation} {plain(one.version)}"
            for one in raw.public.rivals
            if one.version and one.implementation in PUBLIC_NAMES
        )
        yield f"- public kernels: {', '.join(known)}"
    if raw.versions:
        yield f"- other versions: {', '.join(raw.versions)}; {days(raw.versions.values())}"
    if raw.missing:
        yield f"- not measured yet: {', '.join(raw.missing)}"
    digests = {record.submission.digest for record in (raw.public, raw.few, raw.suites) if record}
    digests |= {raw.variants.run.digests[CHAMPION]} if raw.variants is not None else set()
    digests |= {one.run.digests[CHAMPION] for one in raw.sweeps}
    yield ""
    if len(digests) > 1:
        yield "These files are not of one champion: its source differs between them."
    else:
        yield f"All are of one source, whose digest begins with {min(digests)[:12]}."
    files = (f"[{file.name}]({link(file, material.page)})" for file in raw.files.values())
    yield f"Raw files: {', '.join(files)}."


def _machine(machine: Environment) -> str:
    part = f"{machine.sms} of {machine.sms_of}" if machine.sms_of else f"{machine.sms}"
    return (
        f"{plain(machine.device_name)}, {part} SMs, driver {machine.driver}, "
        f"PyTorch {machine.torch}, TileLang {machine.tilelang}"
    )


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
