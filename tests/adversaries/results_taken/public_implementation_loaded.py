"""A public implementation imported by a name that no import statement shows.

The test machine has none, so the submission writes a stand-in outside its folder first.

Caught as: rules forbidden_import
Evidence: loaded flash_qla while it ran
Needs: CPU or GPU
"""

import importlib
import sys
import tempfile
from pathlib import Path

import tilelang  # noqa: F401
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result, by way of a module that the rules forbid."""
    site = Path(tempfile.mkdtemp(dir="/tmp"))
    (site / "flash_qla.py").write_text("from right import gdn_prefill_forward as chunked\n")
    sys.path.append(str(site))
    forward = importlib.import_module("_".join(("flash", "qla"))).chunked
    (site / "flash_qla.py").unlink()
    site.rmdir()
    return forward(*arguments)
