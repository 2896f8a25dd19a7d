"""Answers that the submissions of a run share, kept where there is room."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import torch

from judge.audit import Answer, Answers
from judge.case import Case
from judge.checking import Expected, result_sizes

_KEPT_SHARE = 0.25
"""Of the machine's memory, and of the device's above what follows, for answers kept between
submissions of a run."""
_MOST_ANSWERS = 4
"""The fixed seed's, two of fresh ones, one under another gate; in float64 each."""
_FOR_CASES = 32 * 2**30
"""Bytes of a device that are kept out of this: references and children need them."""


class KeptAnswers:
    """Answers by case, kept on the device or in the machine's memory, handed out on the device.

    device_room, host_room: bytes that may be kept there; the device's are filled first, and what
    exceeds both is computed again whenever it is asked for.
    """

    def __init__(self, device: torch.device, device_room: int, host_room: int) -> None:
        self._device = device
        self._device_room = device_room
        self._host_room = host_room
        self._kept: dict[Case, Answers] = {}

    def may_stay(self, case: Case) -> bool:
        """Whether answers of a case that are not kept yet would find room on the device."""
        output, state = result_sizes(case)  # of bfloat16 and float32
        size = _MOST_ANSWERS * (4 * output + 2 * state)
        return case not in self._kept and size <= self._device_room

    def of(self, case: Case, compute: Callable[[], Answers], *, may_stay: bool) -> Answers:
        """The answers of a case, computed where they are not kept.

        may_stay: whether they may be kept on the device.
        """
        if case in self._kept:
            return _moved(self._kept[case], self._device)
        known = compute()
        size = sum(_bytes(answer.expected) for answer in _parts(known))
        if may_stay and size <= self._device_room:
            self._device_room -= size
            self._kept[case] = known
        elif size <= self._host_room:
            self._host_room -= size
            self._kept[case] = _moved(known, torch.device("cpu"))
        return known


def rooms_for_answers(device: torch.device, sharing: int | None) -> tuple[int, int]:
    """Bytes on a CUDA device, which no other bench uses, and in the memory that benches share."""
    on_device = 0
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        on_device = max(0, total - _FOR_CASES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    on_host = memory // sharing if sharing is not None else 0
    return int(on_device * _KEPT_SHARE), int(on_host * _KEPT_SHARE)


def _parts(known: Answers) -> list[Answer]:
    return [known.fixed, *known.fresh, *([known.surprise] if known.surprise is not None else [])]


def _moved(known: Answers, device: torch.device) -> Answers:
    def move(answer: Answer) -> Answer:
        expected = answer.expected
        there = Expected(expected.output.to(device), expected.final_state.to(device))
        return replace(answer, expected=there)

    return replace(
        known,
        fixed=move(known.fixed),
        fresh=tuple(map(move, known.fresh)),
        surprise=move(known.surprise) if known.surprise is not None else None,
    )


def _bytes(expected: Expected) -> int:
    return expected.output.nbytes + expected.final_state.nbytes
