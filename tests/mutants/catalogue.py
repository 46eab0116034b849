"""All mutants."""

import advice_mutants
import cli_mutants
import flower_mutants
import folder_mutants
import fresh_mutants
import lab_mutants
import paper_mutants
import reports_mutants
import scheme_mutants
import selection_mutants
import world_mutants

MUTANTS = (
    *selection_mutants.MUTANTS,
    *scheme_mutants.MUTANTS,
    *lab_mutants.MUTANTS,
    *folder_mutants.MUTANTS,
    *paper_mutants.MUTANTS,
    *flower_mutants.MUTANTS,
    *reports_mutants.MUTANTS,
    *cli_mutants.MUTANTS,
    *world_mutants.MUTANTS,
    *fresh_mutants.MUTANTS,
    *advice_mutants.MUTANTS,
)
