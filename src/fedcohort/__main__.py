"""Run the command line with `python -m fedcohort`, where the script is not on the path."""

from fedcohort.cli import main

main()
