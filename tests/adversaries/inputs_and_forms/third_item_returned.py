"""A third item in the tuple, whose class would like to be asked about equality and length.

Caught as: BAD_RESULT
Evidence: expected a tuple (output, final_state)
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument


class _Agreeable:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


def gdn_prefill_forward(*arguments: Argument) -> tuple[object, ...]:
    """The right result and one more thing."""
    return *right(*arguments), _Agreeable()
