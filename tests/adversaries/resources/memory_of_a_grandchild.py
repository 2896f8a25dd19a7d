"""Memory taken by a process that the child starts, where a look at the child alone misses it.

Caught as: CRASH
Evidence: limit of 2.0 GiB
Needs: CPU, sandbox
Limit: memory 2
"""

import subprocess
import sys

from tools import Argument, Result, garbage_like

_HOG = "import time; hoard = bytearray(b'x' * (5 << 29)); time.sleep(60)"


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Waits for a process that holds 2.5 GiB."""
    subprocess.run([sys.executable, "-c", _HOG], check=False)
    return garbage_like(arguments)
