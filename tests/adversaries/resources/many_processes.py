"""Hundreds of processes started, each of which sleeps: a fork bomb with an end.

Caught as: CRASH
Needs: CPU or GPU, sandbox
"""

import subprocess
import time

from right import gdn_prefill_forward as right
from tools import Argument, Result

_PROCESSES = 700


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where so many processes can be had."""
    started = [subprocess.Popen(["/bin/sleep", "30"]) for _ in range(_PROCESSES)]
    time.sleep(5)
    for process in started:
        process.kill()
        process.wait()
    return right(*arguments)
