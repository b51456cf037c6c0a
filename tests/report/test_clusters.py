"""Centres as a picture: only what was released, and rows only where they are given."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from hubbub.errors import ParameterError
from hubbub.report import plot_clusters

CENTRES = np.array([[0.0, 1.0], [2.0, 3.0], [-1.0, 0.5]])


def model(**more: Any) -> Any:
    return SimpleNamespace(cluster_centers_=CENTRES, **more)


def test_centres_are_drawn_where_they_are() -> None:
    axes = plot_clusters(model(low_=np.array([-2.0, 0.0]), high_=np.array([3.0, 4.0])))
    (dots,) = axes.collections
    assert np.asarray(dots.get_offsets()).tolist() == CENTRES.tolist()
    assert (axes.get_xlim(), axes.get_ylim()) == ((-2.0, 3.0), (0.0, 4.0))
    assert len(axes.images) == 1


def test_rows_are_drawn_in_the_colour_of_their_centre_below_the_centres() -> None:
    rows = np.array([[0.1, 1.0], [2.0, 2.9], [0.0, 0.9]])
    axes = plot_clusters(model(), rows=rows, title="ours")
    dots, _ = axes.collections
    colours = [tuple(one) for one in dots.get_facecolors().tolist()]
    assert colours[0] == colours[2] != colours[1]
    assert axes.get_title() == "ours"


def test_more_columns_have_no_regions_and_names_where_they_have_them() -> None:
    wide = SimpleNamespace(cluster_centers_=np.eye(4), feature_names_in_=np.array(["a", "b", "c", "d"]))
    axes = plot_clusters(wide, columns=(1, 3))
    assert not axes.images
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("b", "d")


@pytest.mark.parametrize("columns", [(0, 2), (-1, 0), (0,)])
def test_columns_that_are_not_there_are_refused(columns: Any) -> None:
    with pytest.raises(ParameterError, match="two of the 2 columns"):
        plot_clusters(model(), columns=columns)
