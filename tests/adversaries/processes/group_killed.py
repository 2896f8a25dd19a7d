"""Everything killed that belongs to the same process group.

Caught as: CRASH
Evidence: SIGKILL
Needs: CPU or GPU
"""

import os
import signal

from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Kills the group, itself included."""
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("unreachable")
