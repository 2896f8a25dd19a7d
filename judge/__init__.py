"""The judge of the Gated DeltaNet prefill lab: right or wrong, how fast, what score."""

__version__ = "0.4.0"
