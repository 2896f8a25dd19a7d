"""A file of a tebibyte: the disk that the judge writes its records to.

It is sparse, so that it takes no room even where nothing stops it.

Caught as: CRASH
Needs: CPU or GPU, sandbox
"""

import os
import tempfile

from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where files may grow like this."""
    with tempfile.NamedTemporaryFile() as file:
        os.truncate(file.name, 1 << 40)
    return right(*arguments)
