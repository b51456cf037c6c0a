"""Other libraries of differential privacy, each asked by a program of its own in an environment of its own."""
