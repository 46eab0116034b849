"""`python -m fedcohort` is `fedcohort`, where the script is not on the path."""

from fedcohort.cli import main

main()
