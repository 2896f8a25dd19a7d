"""A generator: the work begins when the judge iterates over it.

Caught as: BAD_RESULT
Evidence: returned a generator
Needs: CPU or GPU
"""

from collections.abc import Iterator

import torch
from right import gdn_prefill_forward as right
from tools import Argument


def gdn_prefill_forward(*arguments: Argument) -> Iterator[torch.Tensor]:
    """Yields output and final_state."""
    yield from right(*arguments)
