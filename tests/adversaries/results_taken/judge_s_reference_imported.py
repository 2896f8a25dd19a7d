"""The judge's reference imported by its path, the name put together at run time.

Caught as: rules forbidden_import or CRASH
Needs: CPU or GPU
"""

import importlib
import sys

import tilelang  # noqa: F401
from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_root


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the judge's chunked forward says."""
    right(*arguments)  # on CUDA some TileLang kernel has to have run
    sys.path.append(judge_root())
    chunked = importlib.import_module("".join(("refer", "ence.chunked")))
    q, k, v, g_cumsum, beta, A, initial_state = arguments
    output, state = chunked.chunked_forward(q, k, v, g_cumsum, beta, A, initial_state)
    return output.to(v.dtype), state.float()
