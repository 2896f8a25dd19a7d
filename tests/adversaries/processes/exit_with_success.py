"""The process ended with status 0, as if all had gone well.

Caught as: CRASH
Evidence: first call: the process exited with status 0
Needs: CPU or GPU
"""

import os

from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Ends the process."""
    os._exit(0)
