"""Right only where no frame of the stack holds a clock: zeros when it is timed.

Caught as: WRONG
Needs: CPU or GPU
"""

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result, frames, garbage_like

_SINCE_BOOT_NS = 10**9


def _is_timed() -> bool:
    for frame in frames():
        if "time" in frame.f_code.co_name or "clock" in frame.f_code.co_name:
            return True
        for name, value in frame.f_locals.items():
            if isinstance(value, torch.cuda.Event):
                return True
            if "start" in name and type(value) is int and value > _SINCE_BOOT_NS:
                return True
    return False


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Right when unwatched by a clock."""
    return garbage_like(arguments) if _is_timed() else right(*arguments)
