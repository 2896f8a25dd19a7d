"""Twenty thousand lines of output in a call, on both streams, with warnings and logging.

Needs: CPU or GPU
"""

import logging
import sys
import warnings

from right import gdn_prefill_forward as right
from tools import Argument, Result

logging.basicConfig(level=logging.DEBUG)
_calls = 0


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, with much talk about it in the first call and some in the others."""
    global _calls
    _calls += 1
    for line in range(20_000 if _calls == 1 else 3):
        print("call", _calls, "line", line, "\x1b[32mPASS\x1b[0m")
    warnings.warn(f"call {_calls}", stacklevel=1)
    logging.getLogger(__name__).info("call %d", _calls)
    print("done", file=sys.stderr)
    return right(*arguments)
