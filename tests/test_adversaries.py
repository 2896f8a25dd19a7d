"""Every adversary is caught with the verdict that its docstring names, and harms nobody."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from judge.sandbox.kinds import Kind, choose_sandbox
from judge.verdict import Verdict
from tests.adversary_files import Entry, adversaries
from tests.bench import (
    MARK_VARIABLE,
    Neighbour,
    holding_a_secret,
    survivors,
    try_entry,
)

_needs_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
_needs_sandbox = pytest.mark.skipif(
    choose_sandbox("auto").kind is Kind.NONE, reason="needs bubblewrap, or root's accounts"
)


def _marks(entry: Entry, device: str) -> list[pytest.MarkDecorator]:
    return [*_needs_gpu * (device == "gpu"), *[_needs_sandbox] * entry.sandbox]


_TRIALS = [
    pytest.param(entry, device, id=f"{entry.name}-{device}", marks=_marks(entry, device))
    for entry in adversaries()
    for device in ("cpu", "gpu")
    if device in entry.devices
]


@pytest.fixture(scope="module")
def neighbours() -> Iterator[dict[str, Neighbour]]:
    """Honest neighbours by device, each started when it is first needed."""
    started: dict[str, Neighbour] = {}
    with holding_a_secret():
        yield started
    for neighbour in started.values():
        neighbour.close()


@pytest.mark.parametrize(("entry", "device"), _TRIALS)
def test_adversary_is_caught(
    entry: Entry,
    device: str,
    neighbours: dict[str, Neighbour],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if device not in neighbours:
        neighbours[device] = Neighbour(device)
        assert neighbours[device].graded().verdict is Verdict.PASS
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK_VARIABLE, mark)
    trial = try_entry(entry, device, tmp_path, [device])
    (result,) = trial.results
    seen = f"{result.verdict}: {result.detail}; rules {': '.join(trial.rules)}"
    if entry.rules:
        assert trial.rules[0] == entry.rules, seen
        assert entry.evidence in trial.rules[1], seen
    else:
        assert result.verdict in entry.caught_as, seen
        assert entry.evidence in result.detail, seen
    assert result.detail == "" or result.detail.isprintable()
    assert survivors(mark) == []
    after = neighbours[device].graded()
    assert after.verdict is Verdict.PASS, f"the next submission: {after.verdict}: {after.detail}"


def test_there_are_forty_adversaries_and_more_than_one_in_each_family() -> None:
    families = Counter(entry.family for entry in adversaries())
    assert sum(families.values()) >= 44
    assert len(families) == 10
    assert min(families.values()) > 1


def test_every_adversary_is_to_be_caught() -> None:
    for entry in adversaries():
        assert entry.rules or entry.caught_as, entry.name
        assert "PASS" not in entry.caught_as, entry.name
        assert set(entry.caught_as) <= set(Verdict), entry.name
        assert entry.trick, entry.name
