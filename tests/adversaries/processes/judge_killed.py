"""The judge killed, so that nobody reports a verdict.

Caught as: CRASH
Needs: CPU or GPU, sandbox
"""

import os
import signal

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, when the parent has been sent a signal that cannot be caught."""
    os.kill(os.getppid(), signal.SIGKILL)
    return right(*arguments)
