"""Start the supervisor of one block: ``python -I …/sandboxed/__main__.py CONTROL PARENT``.

The folder above is on the path only while the parts are imported: a program must not find Hubbub's engines there.
"""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    supervisor = importlib.import_module("sandboxed.supervisor")
    del sys.path[0]
    supervisor.main(control=int(sys.argv[1]), parent=int(sys.argv[2]))
