"""``python -m rejoinder``, where the command is not on the path."""

from rejoinder.cli.main import main

if __name__ == "__main__":
    main()
