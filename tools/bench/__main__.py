"""`python -m tools.bench [NAME …]`: run every benchmark, or the named ones, and print its table."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))

for name in sys.argv[1:] or NAMES:
    if name not in NAMES:
        sys.exit(f"There is no benchmark {name!r}: pick from {', '.join(NAMES)}.")
    import_module(f"tools.bench.{name}").main()
