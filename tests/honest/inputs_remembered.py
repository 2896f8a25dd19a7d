"""The inputs of the last call kept alive, and compared by address with those of this one.

Needs: CPU or GPU
"""

from right import gdn_prefill_forward as right
from tools import Argument, Result

_last: list[tuple[Argument, ...]] = []


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result."""
    same = bool(_last) and _last[-1][0].data_ptr() == arguments[0].data_ptr()
    print("same addresses" if same else "new addresses")
    _last[:] = [arguments]
    return right(*arguments)
