"""``python -m onlearn`` is ``onlearn``."""

from onlearn.cli import main

if __name__ == "__main__":  # processes that compile import this file too
    main()
