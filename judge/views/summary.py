"""The lines below the table: scores, gate, rules, and what everything was measured with."""

from __future__ import annotations

from rich.text import Text

from judge.record import Record, SuiteScore
from judge.scoring import GATE_SUITE
from judge.sm_budget import WHOLE_MEMORY
from judge.text import plain
from judge.verdict import Rules, Verdict

_CLOCKS = {"cuda_events": "CUDA events", "host_clock": "host clock"}


def summary_lines(record: Record) -> list[tuple[str, Text]]:
    """Name and value of every line; a name is empty where its line continues the one above."""
    lines = [
        *_named("Suites", [_suite(record, suite) for suite in record.score.suites]),
        ("Total", _total(record)),
        ("Gate", _gate(record)),
        ("Rules", _rules(record)),
        ("Baseline", _baseline(record)),
        ("Timing", _timing(record)),
        *_named("Noisy", _noisy(record)),
        *([("Sandbox", _sandbox(record))] if record.protocol.sandbox else []),
        ("Device", _device(record)),
        ("Versions", _versions(record)),
        *([("Log", _log(record))] if record.submission.log else []),
    ]
    return lines + _named("Notes", [Text(plain(n), style="yellow") for n in record.notes])


def _named(name: str, values: list[Text]) -> list[tuple[str, Text]]:
    return [("" if index else name, value) for index, value in enumerate(values)]


def _suite(record: Record, suite: SuiteScore) -> Text:
    name = plain(suite.suite, 40)
    if suite.score is None:
        passed = sum(r.verdict is Verdict.PASS for r in record.results if r.suite == suite.suite)
        ran = f"{suite.cases_run} of {suite.cases_total} cases ran, {passed} passed"
        return Text(f"{name}: {ran}")
    weight = f", weight {suite.weight:g}" if suite.weight is not None else ""
    ran = f"mean of {suite.cases_run} of {suite.cases_total} timed cases{weight}"
    return Text.assemble(f"{name}: ", (f"{suite.score:.2f}", "bold"), f"  ({ran})")


def _total(record: Record) -> Text:
    score = record.score
    if score.total is None:
        # why there is none comes first; gate, rules and timing have lines of their own
        return Text(plain(score.why_not.partition("; ")[0], 1000), style="yellow")
    total = f"{score.total:.2f}"
    if score.graded:
        return Text(total, style="bold green" if score.gate == "passed" else "bold red")
    return Text.assemble(
        (total, "bold"), (f"  practice, not graded: {plain(score.why_not, 1000)}", "yellow")
    )


def _gate(record: Record) -> Text:
    gate = record.score.gate
    if gate == "failed":
        failed = sum(
            r.verdict not in (Verdict.PASS, Verdict.NOT_RUN)
            for r in record.results
            if r.suite == GATE_SUITE
        )
        cases = "case" if failed == 1 else "cases"
        return Text(
            f"failed: {failed} {GATE_SUITE} {cases}, which sets the total to 0", style="bold red"
        )
    style = {"passed": "green"}.get(gate, "yellow")
    return Text(gate.replace("_", " "), style=style)


def _rules(record: Record) -> Text:
    submission = record.submission
    if submission.rules is Rules.OK:
        return Text("ok", style="green")
    return Text.assemble(
        (submission.rules.value, "bold red"), f"  {plain(submission.rules_detail)}"
    )


def _baseline(record: Record) -> Text:
    baseline = record.baseline
    meaning = "; speed-up is t100 / median" if baseline.t100_ms else ""
    return Text(plain(f"{baseline.source}: {baseline.name}{meaning}"))


def _timing(record: Record) -> Text:
    protocol = record.protocol
    clock = _CLOCKS.get(protocol.clock, plain(protocol.clock))
    text = Text(
        f"{clock}, median of {protocol.repetitions} after {protocol.warmup} warm-ups, "
        f"seed {protocol.seed}, {plain(protocol.name, 40)} protocol"
    )
    if not protocol.official:
        text.append("; timing is not official", style="bold yellow")
    return text


def _noisy(record: Record) -> list[Text]:
    return [
        Text(
            plain(f"{result.case.name}, {'twice' if result.repeated else 'once'}: {result.noisy}"),
            style="yellow",
        )
        for result in record.results
        if result.noisy
    ]


def _sandbox(record: Record) -> Text:
    sandbox = record.protocol.sandbox
    return Text(plain(sandbox, 40), style="" if sandbox == "bubblewrap" else "yellow")


def _device(record: Record) -> Text:
    environment = record.environment
    parts = [environment.device_name]
    if environment.sms_of is not None:
        parts.append(f"{environment.sms} of {environment.sms_of} SMs, {WHOLE_MEMORY}")
    elif environment.sms is not None:
        parts.append(f"{environment.sms} SMs")
    if environment.memory_gib is not None:
        parts.append(f"{environment.memory_gib:.1f} GiB")
    if environment.driver is not None:
        parts.append(f"driver {environment.driver}")
    if environment.sms is None:
        parts.append(f"{environment.threads} threads")
    return Text(plain(", ".join(parts)))


def _versions(record: Record) -> Text:
    environment = record.environment
    cuda = f" (CUDA {environment.cuda})" if environment.cuda else ""
    parts = [
        f"judge {record.judge_version}",
        f"TileLang {environment.tilelang or 'not installed'}",
        f"torch {environment.torch}{cuda}",
        f"Python {environment.python}",
    ]
    return Text(plain(", ".join(parts)))


def _log(record: Record) -> Text:
    cut = " (cut: too long)" if record.submission.log_cut else ""
    return Text(plain(record.submission.log, 1000) + cut)
