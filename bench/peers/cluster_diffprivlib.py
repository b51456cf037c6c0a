"""diffprivlib's k-means in its own environment: fits on given rows, and writes the centres."""

import json
import sys
import time

import numpy as np
from diffprivlib.models import KMeans


def main() -> None:
    """Reads a task (path, clusters, runs, epsilons) and writes a list of fits."""
    task = json.loads(sys.argv[1])
    rows = np.load(task["path"])
    found = []
    for epsilon in task["epsilons"]:
        for seed in range(task["runs"]):
            model = KMeans(task["clusters"], epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed)
            begun = time.process_time()
            model.fit(rows)
            spent = time.process_time() - begun
            found.append({"epsilon": epsilon, "seconds": spent, "centres": model.cluster_centers_.tolist()})
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main()
