"""Inside the child: what the function under test is called with, and what is done untimed before.

Submissions get preprocessed inputs, as the lab hands them out. What they are compared with may
take raw ones, or prepare them in a way of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum

import torch

from judge.case import Case
from judge.child.renewal import Arguments
from judge.problem import draw_inputs
from reference.preprocess import Prepared, Preprocess

Function = Callable[..., object]
Untimed = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Prepared]
"""From k, raw_g and beta; the judge's own preprocessing or a module's."""
PREPARE = "prepare_arguments"
"""Name under which a module exports its own untimed preparation, for OWN."""

_PREPARED = ("q", "k", "v", "g_cumsum", "beta", "A", "initial_state")
_RAW = ("q", "k", "v", "raw_g", "beta", "initial_state")


class InputForm(StrEnum):
    """What a function takes.

    PREPARED: g_cumsum and A from the judge's preprocessing, which is not timed. OWN: the same from
    its module's `prepare_arguments(k, raw_g, beta)`. RAW: raw_g in their place. WHOLE: the function
    is a submission's, and each call of it is preceded by the judge's preprocessing, timed with it.
    """

    PREPARED = "prepared"
    OWN = "own"
    RAW = "raw"
    WHOLE = "whole"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return _PREPARED if self in (InputForm.PREPARED, InputForm.OWN) else _RAW


def untimed_part(form: InputForm, function: Function, preprocess: Preprocess) -> Untimed | None:
    """What makes g_cumsum and A of a form before the call, None where nothing does.

    preprocess: the judge's own. Raises AttributeError where the function's module has none of
    its own and should.
    """
    match form:
        case InputForm.PREPARED:
            return preprocess
        case InputForm.OWN:
            return getattr(sys.modules[function.__module__], PREPARE)
    return None


def timed_part(form: InputForm, function: Function, preprocess: Preprocess) -> Function:
    """What is timed: the function, or for WHOLE the judge's preprocessing and the function.

    For one case: its prepared inputs of WHOLE lie in the same memory at every call, as those of
    PREPARED do, so that a submission finds the addresses again for which it captured a graph.
    """
    if form is not InputForm.WHOLE:
        return function
    kept: Prepared | None = None

    def whole_forward(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        raw_g: torch.Tensor,
        beta: torch.Tensor,
        initial_state: torch.Tensor | None,
    ) -> object:
        nonlocal kept
        kept = preprocess(k, raw_g, beta, kept)
        g_cumsum, inverse = kept
        return function(q, k, v, g_cumsum, beta, inverse, initial_state)

    return whole_forward


def draw_arguments(case: Case, generator: torch.Generator, untimed: Untimed | None) -> Arguments:
    """All arguments of one call, drawn from the generator, in the order of the form's names."""
    inputs = draw_inputs(case, generator)
    if untimed is None:
        middle = (inputs.raw_g, inputs.beta)
    else:
        g_cumsum, inverse = untimed(inputs.k, inputs.raw_g, inputs.beta)
        middle = (g_cumsum, inputs.beta, inverse)
    return (inputs.q, inputs.k, inputs.v, *middle, inputs.initial_state)
