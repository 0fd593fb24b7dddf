"""The Makefile's own rules: whatever a person can type is listed, and no file's name can get in its way."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE)


def test_no_target_is_a_file() -> None:
    phony = [name for names in re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE) for name in names.split()]
    assert sorted(phony) == sorted(TARGETS), (
        f"in .PHONY of the Makefile, add {sorted(set(TARGETS) - set(phony))}, "
        f"remove {sorted(set(phony) - set(TARGETS))}"
    )


def test_make_alone_lists_every_target_with_one_line_that_fits() -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    listing = subprocess.run(["make"], cwd=ROOT, env=alone, check=True, capture_output=True, text=True)
    lines = listing.stdout.splitlines()
    assert [line.split()[1] for line in lines] == TARGETS, "write '## what it does' behind each target of the Makefile"
    assert [line for line in lines if len(line.split()) < 4 or len(line) > 120] == [], (
        "Makefile: these say too little after ##, or do not fit into 120 characters"
    )
