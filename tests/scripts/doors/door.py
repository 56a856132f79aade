"""Does what door.c does, through the Python package. Usage: door.py DATA SPEC"""

import json
import sys
import warnings

import tritgrad

warnings.simplefilter("ignore")  # of short runs
try:
    model = tritgrad.train({**json.loads(sys.argv[1]), **json.loads(sys.argv[2])})
    print(json.dumps(model.result, separators=(",", ":")))
except (OSError, ValueError, RuntimeError, MemoryError) as error:
    sys.exit(f"tritgrad: {error}")
