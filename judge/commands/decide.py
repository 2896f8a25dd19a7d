"""`run.py void`, `override` and `decisions`: options and wiring."""

from __future__ import annotations

import getpass
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from judge.commands.store_option import attempts_of, open_store, store_option
from judge.commands.usage import WrongUsage, light_usage_errors, say
from judge.roster import normal
from judge.scoring import BEST_SCORE
from judge.store.decisions import Decision, Kind, Standing, standing
from judge.text import plain

_SETTINGS = {"help_option_names": ["-h", "--help"]}


def _decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        store_option,
        click.option(
            "--reason", required=True, metavar="TEXT", help="Why; it stands on the board."
        ),
        click.option(
            "--attempt", metavar="NAME", help="That attempt alone. Default: all, later ones too."
        ),
        click.argument("participant", metavar="ID"),
    ):
        command = option(command)
    return command


@click.command("void", context_settings=_SETTINGS)
@_decision_options
@click.option(
    "--lift", is_flag=True, help="Undo what stands about the same, a void or an override."
)
def void_command(
    participant: str, attempt: str | None, reason: str, store_file: Path | None, lift: bool
) -> None:
    """Take the rank of a participant's results away; the record stays, and so does the decision.

    With --lift, undo a void or an override. Exit status: 0, or 2 wrong usage.
    """
    _decide(store_file, participant, attempt, Kind.LIFT if lift else Kind.VOID, None, reason)


@click.command("override", context_settings=_SETTINGS)
@_decision_options
@click.option(
    "--score",
    type=click.FloatRange(0, BEST_SCORE),
    required=True,
    help="The total in place of the judge's.",
)
def override_command(
    participant: str, attempt: str | None, reason: str, store_file: Path | None, score: float
) -> None:
    """Set the total of a participant's results; the board says so and keeps the judge's figures.

    `void --lift` undoes it. Exit status: 0, or 2 wrong usage.
    """
    if math.isnan(score):  # click's range lets nan through
        raise WrongUsage("--score: nan is no score")
    _decide(store_file, participant, attempt, Kind.OVERRIDE, score, reason)


@click.command("decisions", context_settings=_SETTINGS)
@store_option
def decisions_command(store_file: Path | None) -> None:
    """Print every void, override and lift ever made, the oldest first.

    Exit status: 0, or 2 wrong usage.
    """
    with light_usage_errors(), open_store(store_file) as store:
        trail = store.decisions()
    for one in trail:
        attempt = f" {one.attempt}" if one.attempt is not None else ""
        score = f" {one.score:g}" if one.score is not None else ""
        line = f"{one.made} {one.author}: {one.kind}{score} {one.participant}{attempt}: "
        click.echo(plain(line + one.reason, 1000))


def _decide(
    store_file: Path | None,
    participant: str,
    attempt: str | None,
    kind: Kind,
    score: float | None,
    reason: str,
) -> None:
    if not plain(reason):
        raise WrongUsage("--reason: must say why")
    made = datetime.now(UTC).isoformat(timespec="seconds")
    who = normal(participant)
    label = normal(attempt) if attempt is not None else None
    author = plain(getpass.getuser(), 60)
    one = Decision(who, label, kind, score, plain(reason, 500), author, made)
    whom = who if label is None else f"{who} {label}"
    with light_usage_errors(), open_store(store_file) as store:
        attempts_of(store, participant, attempt)
        effect = _effect(one, standing(store.decisions()))
        if not effect:
            raise WrongUsage(plain(f"{whom}: there is nothing to lift; see run.py decisions", 1000))
        store.decide(one)
    say(plain(f"{whom}: {effect}", 1000))


def _effect(one: Decision, stands: Standing) -> str:
    """What a decision does, and what stands beside it; empty where it would lift nothing."""
    before = stands.get((one.participant, one.attempt))
    match one.kind:
        case Kind.VOID:
            effect = "no rank until lifted"
        case Kind.OVERRIDE:
            effect = f"total {one.score:g} until lifted"
        case Kind.LIFT:
            effect = f"the {before.kind} is lifted" if before is not None else ""
    beside = [
        f"{other.kind} of {'all attempts' if label is None else f'attempt {label}'}"
        for (who, label), other in stands.items()
        if who == one.participant and label != one.attempt and None in (label, one.attempt)
    ]
    return f"{effect}; still stands: {', '.join(beside)}" if effect and beside else effect
