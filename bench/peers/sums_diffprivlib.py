"""diffprivlib's regression, components and naive Bayes in its own environment: fits on given rows."""

import json
import sys
import time
from typing import Any

import numpy as np
from diffprivlib.models import PCA, GaussianNB, LinearRegression


def main() -> None:
    """Reads a task (path, kind, epsilons, components) and writes a list of fits, one for each split and ε."""
    task = json.loads(sys.argv[1])
    data = np.load(task["path"])
    found = []
    for epsilon in task["epsilons"]:
        for run in range(task["runs"]):
            begun = time.process_time()
            answer = _fitted(task, data, epsilon, run)
            found.append({"epsilon": epsilon, "seconds": time.process_time() - begun, "answer": answer.tolist()})
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(found, out)


def _fitted(task: Any, data: Any, epsilon: float, run: int) -> Any:
    low, high = data["low"], data["high"]
    if task["kind"] == "regression":
        train, test = data["train"][run], data["test"][run]
        model = LinearRegression(
            epsilon=epsilon, bounds_X=(low, high), bounds_y=tuple(task["y_bounds"]), random_state=run
        )
        return model.fit(data["x"][train], data["y"][train]).predict(data["x"][test])
    if task["kind"] == "components":
        norm = float(np.linalg.norm((high - low) / 2))
        model = PCA(task["components"], epsilon=epsilon, bounds=(low, high), data_norm=norm, random_state=run)
        return model.fit(data["x"]).components_
    model = GaussianNB(epsilon=epsilon, bounds=(low, high), random_state=run)
    return model.fit(data["x"], data["y"]).predict_log_proba(data["test"])


if __name__ == "__main__":
    main()
