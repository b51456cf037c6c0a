"""Inference: estimates that agree with each other, out of noisy measurements."""
