import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The benchmarks are not part of the package: they are run from the root of the tree.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
