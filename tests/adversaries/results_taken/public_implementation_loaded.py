"""A public implementation imported by a name that no import statement shows.

The submission first writes a stand-in outside its folder, found before any that is installed.

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
    sys.path.insert(0, str(site))
    forward = importlib.import_module("_".join(("flash", "qla"))).chunked
    (site / "flash_qla.py").unlink()
    site.rmdir()
    return forward(*arguments)
