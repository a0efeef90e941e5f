"""`python -m milepost` is the same as `milepost`."""

from milepost.cli.main import main

if __name__ == "__main__":
    main()
