"""Measurements in stages, where each release decides what is measured next."""
