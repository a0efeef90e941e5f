"""Makes the example programs importable: `invoices` is a folder of `examples`, not an installed package."""

import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"

if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))
