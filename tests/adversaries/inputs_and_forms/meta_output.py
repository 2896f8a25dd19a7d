"""Output on the meta device, which has a shape and no contents.

Caught as: BAD_RESULT
Evidence: output is on meta
Needs: CPU or GPU
"""

from tools import Argument, Result, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """A shape."""
    output, state = garbage_like(arguments)
    return output.to("meta"), state
