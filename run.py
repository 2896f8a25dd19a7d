"""Grade a submission: `python run.py --help` says how."""

import os

# Idle threads of torch must sleep, not spin: judge and child take turns on the same cores. It is
# read once, when torch is first imported, and inherited by the children.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from judge.entry import start

if __name__ == "__main__":
    start()
