"""Estimators as a session fits them, as subjects of an audit: formulas sent to where the rows are."""

from typing import Any

import numpy as np

from hubbub.audit.subjects.estimators import EstimatorTable, OfEstimator


class OfAsked(OfEstimator):
    """The same, through the formulas; what an engine makes of them is what ``in_process.totals`` does, by test."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"learn, in an engine: {self.estimator}{self.words}"

    def _fit(self, made: Any, table: EstimatorTable) -> str:
        from hubbub.audit.subjects.in_process.totals import asked
        from hubbub.learn.statistics.crowd import Crowd

        rows, targets, owners = self._fill(table)
        classes = getattr(made, "classes", None)  # 0, 1, …: what is none of them has the code −1
        coded = targets if classes is None else np.where(np.isin(targets, classes), targets, -1.0)
        columns = np.column_stack([rows, coded])
        crowd = Crowd.of(owners if self.grouped else None, rows=len(rows), most=made.max_rows)
        names = [f"x{place}" for place in range(self.columns)]
        features = asked(columns, crowd, names=names)
        try:
            made.fit(features, features)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "fitted"
