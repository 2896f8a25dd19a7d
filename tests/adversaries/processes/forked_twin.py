"""The process doubled: both twins answer the judge over one channel.

Caught as: CRASH or CHEAT or WRONG
Needs: CPU
"""

import os

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, twice."""
    os.fork()
    return right(*arguments)
