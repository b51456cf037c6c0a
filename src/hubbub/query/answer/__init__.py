"""Answers: presented, stored, explained and diagnosed."""
