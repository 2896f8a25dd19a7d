"""An import that never ends.

Caught as: TIMEOUT
Evidence: import: no answer within 3 s
Needs: CPU or GPU
Limit: load 3
"""

import threading

threading.Event().wait()
