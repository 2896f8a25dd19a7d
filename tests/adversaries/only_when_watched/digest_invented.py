"""A digest invented for every repetition, and the right result computed when it is asked for.

The judge's own digest function is found and given other code.

Caught as: CHEAT
Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result, garbage_like, judge_functions

_calls = 0


def _invented(*_: object, **__: object) -> str:
    return "0" * 64


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Zeros under a digest that says nothing; the first call is right."""
    global _calls
    _calls += 1
    if _calls > 1:
        return garbage_like(arguments)
    for function in judge_functions():
        if "digest" in function.__name__ and function.__name__.startswith("tensor"):
            function.__code__ = _invented.__code__
            function.__defaults__ = function.__kwdefaults__ = None
    return right(*arguments)
