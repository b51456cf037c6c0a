"""diffprivlib's logistic regression in its own environment: scores of test rows, for as many fits as are asked."""

import json
import sys
import time

import numpy as np
from diffprivlib.models import LogisticRegression

if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    held = np.load(task["path"])
    found = []
    for epsilon in task["epsilons"]:
        for seed in range(task["runs"]):
            begun = time.process_time()
            model = LogisticRegression(
                epsilon=epsilon, data_norm=task["norm"], max_iter=1000, random_state=seed, fit_intercept=True
            )
            model.fit(held["x"], held["y"])
            spent = time.process_time() - begun
            scores = model.predict_proba(held["test"])[:, 1]
            found.append({"epsilon": epsilon, "seconds": spent, "scores": [round(float(one), 6) for one in scores]})
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(found, out)
