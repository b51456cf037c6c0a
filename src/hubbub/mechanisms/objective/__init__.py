"""Objective perturbation: minimise a convex loss with a noisy linear term."""
