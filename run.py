"""Grade a submission: `python run.py --help` says how."""

from judge.cli import main

if __name__ == "__main__":
    main()
