"""What the pages call the public implementations, and which public cases are the large ones."""

from __future__ import annotations

PUBLIC_NAMES = {"flash_qla": "FlashQLA", "fla": "FLA", "flashinfer": "FlashInfer"}
LARGE = ("long_low_gva", "batch_split_gva", "wide_gva_state", "deep_gva_state")
