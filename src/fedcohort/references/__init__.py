"""Parts of one's own: how they are named, checked and imported.

A selector, world, aggregation, model, data set or partition is named by its registered name, by a
name that an installed package registers through an entry point, or by a reference:
`package.module:name` or `file.py:name`. `names` checks names without importing anything, so a
stored run can be shown where its source is not; only `loading` imports.
"""

from fedcohort.references.loading import (
    call_own,
    describe_own_error,
    make_own,
    resolve,
    source_digest,
)
from fedcohort.references.names import (
    as_file_name,
    check_name,
    expand_name,
    installed_names,
    is_file,
    is_reference,
    short_label,
    short_labels,
)

__all__ = [
    "as_file_name",
    "call_own",
    "check_name",
    "describe_own_error",
    "expand_name",
    "installed_names",
    "is_file",
    "is_reference",
    "make_own",
    "resolve",
    "short_label",
    "short_labels",
    "source_digest",
]
