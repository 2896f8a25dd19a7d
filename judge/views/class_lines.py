"""One line of plain text for each upload of a run, and one at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.class_run import Outcome
from judge.record import Record
from judge.text import plain
from judge.uploads import Place
from judge.verdict import Rules


def place_name(place: Place) -> str:
    """Whose upload it is, and which attempt."""
    return plain(f"{place.participant} {place.label}", 60)


def outcome_line(number: int, total: int, outcome: Outcome) -> str:
    """How an upload came out: state, scores, how many cases got which verdict."""
    told = [outcome.state.value]
    if outcome.record is not None:
        told += _told(outcome.record)
    told += [text for text in (outcome.problem, *outcome.remarks) if text]
    return f"{number}/{total} {place_name(outcome.place)}: {plain('; '.join(told), 600)}"


def closing_line(outcomes: Sequence[Outcome], total: int) -> str:
    """How many came out how, of how many."""
    states = Counter(outcome.state.value for outcome in outcomes)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    return f"{len(outcomes)} of {total} uploads: {counts or 'none reached'}"


def _told(record: Record) -> list[str]:
    scores = [f"{s.suite} {s.score:.2f}" for s in record.score.suites if s.score is not None]
    if record.score.total is not None:
        scores.insert(0, f"total {record.score.total:.2f}")
    verdicts = Counter(result.verdict.value for result in record.results)
    told = [", ".join(scores)] if scores else []
    told.append(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    if record.submission.rules is not Rules.OK:
        told.append(record.submission.rules.value)
    return told
