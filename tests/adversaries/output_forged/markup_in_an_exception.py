"""Terminal control, table markup and a spreadsheet formula in an exception's text.

Caught as: CRASH
Evidence: RuntimeError: =HYPERLINK
Needs: CPU or GPU
"""

from tools import Argument, Result

_TEXT = '=HYPERLINK("http://a","PASS")\t\x1b[2J[green]PASS[/green]\u202e,PASS,0.1\r\nPASS\x00\ud800'


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Raises."""
    raise RuntimeError(_TEXT)
