"""The judge's reference imported by its path, the name put together at run time.

Caught as: rules forbidden_import
Evidence: loaded reference
Needs: CPU or GPU
"""

import importlib
import sys

import tilelang  # noqa: F401
import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, judge_root


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the judge's chunked forward says."""
    right(*arguments)  # on CUDA some TileLang kernel has to have run
    sys.path.append(judge_root())
    chunked = importlib.import_module("".join(("refer", "ence.chunked")))
    output, state = chunked.chunked_forward(*arguments, dtype=torch.float32)
    return output.to(torch.bfloat16), state.float()
