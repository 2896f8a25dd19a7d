"""What a Dask worker of this machine does first; Dask finds the function by its name."""

from __future__ import annotations

import os


def dask_setup(worker: object) -> None:
    """Leave the terminal's process group: its Ctrl-C is for the judge, which ends its workers."""
    os.setpgid(0, 0)
