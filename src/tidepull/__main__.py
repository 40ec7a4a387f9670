"""`python -m tidepull` is the command `tidepull`."""

from tidepull.cli import main

if __name__ == "__main__":
    main()
