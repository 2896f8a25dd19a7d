"""A process left behind that has cut its ties: it would disturb the next submission's times.

The test looks afterwards whether any process of this child is alive.

Caught as: CRASH
Evidence: the process exited with status 0
Needs: CPU or GPU, sandbox
"""

import os
import subprocess

from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Starts a daemon that lives for two minutes, then ends."""
    subprocess.Popen(["/bin/sleep", "120"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "120"])
        os._exit(0)
    os._exit(0)
