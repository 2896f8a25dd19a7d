"""The operator in PyTorch: float64 truth, untimed preprocessing, baselines and an error model."""
