"""A plain tensor with a method of its own, which computes when the judge looks at the form.

An attribute of the one tensor hides the class's method of that name: nothing is replaced, and the
judge asks whether a negation is left when the clock has stopped and before it copies the result.

Caught as: WRONG or BAD_RESULT
Needs: CPU or GPU
"""

from __future__ import annotations

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Zeros, until somebody asks the output whether it is negated, or for its like."""
    output, state = garbage_like(arguments)
    detach = output.detach

    def pay() -> None:
        vars(output).clear()
        for mine, late in zip((output, state), right(*arguments), strict=True):
            mine.copy_(late)

    def is_neg() -> bool:
        pay()
        return False

    def detached() -> object:
        pay()
        return detach()

    output.is_neg, output.detach = is_neg, detached
    return output, state
