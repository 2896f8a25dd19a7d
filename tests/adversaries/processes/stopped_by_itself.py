"""The process stopped by its own signal: it neither works nor ends.

Caught as: TIMEOUT
Evidence: first call: no answer within 3 s
Needs: CPU or GPU
Limit: first_call 3
"""

import os
import signal

from tools import Argument, Result, garbage_like


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Stops."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGSTOP)
    return garbage_like(arguments)
