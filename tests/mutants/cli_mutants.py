"""Bugs in the command line."""

from mutant import Mutant

MUTANTS = (
    Mutant(
        "seconds are cut instead of rounded",
        "cli/watch.py",
        "divmod(round(seconds), 60)",
        "divmod(int(seconds), 60)",
        ("tests/cli/test_watch.py",),
    ),
    Mutant(
        "all clients count as unnamed",
        "cli/watch.py",
        "unnamed = len(selector.asked) - MAX_NAMED",
        "unnamed = len(selector.asked)",
        ("tests/cli/test_watch.py",),
    ),
    Mutant(
        "an empty word between commas stays",
        "cli/parse.py",
        'for word in text.split(",") if word.strip())',
        'for word in text.split(","))',
        ("tests/cli/test_cli.py", "tests/cli/test_hostile_arguments.py"),
    ),
    Mutant(
        "infinity is null in JSON",
        "cli/console.py",
        "return None if isnan(value) else str(value)",
        "return None",
        ("tests/cli/test_console.py",),
    ),
    Mutant(
        "published values stand above ours",
        "cli/console.py",
        'f"{value}\\n{published[key]}"',
        'f"{published[key]}\\n{value}"',
        ("tests/cli/test_console.py",),
    ),
)
