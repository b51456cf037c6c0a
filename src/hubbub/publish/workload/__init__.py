"""Workloads: the linear queries that a publication is made for, and its expected error on them."""
