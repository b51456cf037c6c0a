"""Mechanisms whose noise follows the data: smooth sensitivity, tests, sample-and-aggregate."""
