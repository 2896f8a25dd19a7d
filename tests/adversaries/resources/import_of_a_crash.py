"""An import that ends the process.

Caught as: CRASH
Evidence: import: the process exited with status 0
Needs: CPU or GPU
"""

import os

os._exit(0)
