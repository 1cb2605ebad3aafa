"""Runs the command line client: python -m client."""

import sys

from client.main import main

if __name__ == "__main__":
    sys.exit(main())
