"""Settings that every test shares."""

from __future__ import annotations

import torch

# One thread: on a core that other processes use too, a second one makes torch many times slower.
torch.set_num_threads(1)
