"""Work on a stream of its own that nothing waits for.

The events stand on the default stream and see an empty one.

Caught as: WRONG or BAD_RESULT or CHEAT
Needs: GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result

_stream = torch.cuda.Stream()


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Starts the work and returns."""
    with torch.cuda.stream(_stream):
        return right(*arguments)
