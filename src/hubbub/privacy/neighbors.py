"""Neighbouring relations: the pairs of datasets whose answers must look alike."""

from enum import StrEnum


class Neighbors(StrEnum):
    """The neighbouring relation a claim is about. Two claims are only comparable under the same one."""

    ADD_REMOVE = "add-remove"
    """One unit, with all its rows, is added or removed."""

    REPLACE_ONE = "replace-one"
    """One unit, with all its rows, is replaced by another: a group of two under add/remove."""

    LOCAL = "local"
    """One device's whole input is replaced by any other; the collector sees only its report."""
