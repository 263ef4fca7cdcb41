"""`python -m toolgen` is the command `toolgen`."""

from toolgen.cli.app import main

if __name__ == "__main__":
    main()
