"""What happens in a world, by name: one of all misfortunes, and those in which a few of them follow one another.

Each of the latter lies with the test that runs some seeds of it. A fault that needs three of them in a row shows in
these in hundreds of schedules, and in the mix of all in hundreds of thousands.
"""

from importlib import import_module

from tests.scenario.events import choose
from tests.scenario.schedule import Course, misfortune

MIXED = "mixed"
COURSES: dict[str, tuple[str, str]] = {
    "adopted-places": ("test_repartition_marks", "adopted"),
    "claims-put-back": ("test_claims_put_back", "put_back"),
    "claims-put-back-to-state-given-up": ("test_claims_put_back", "put_back_to_state_that_was_given_up"),
    "copied-drivers": ("test_copied_drivers", "COPIED"),
    "copies-at-the-gate": ("test_copies_before_repartitions", "at_the_gate"),
    "copies-before-the-driver": ("test_copies_before_repartitions", "before_the_driver"),
    "copies-of-a-stable-version": ("test_copies_before_repartitions", "stable_before"),
    "lost-labels": ("test_lost_labels", "LABELS"),
    "lost-statuses": ("test_losses", "LOSSES"),
    "lost-statuses-of-repartitions": ("test_repartition_marks", "status_lost"),
    "older-copies": ("test_older_copies", "COPIES"),
    "older-marks": ("test_repartition_marks", "mark_put_back"),
    "older-storages": ("test_repartition_marks", "backup_put_back"),
    "other-offsets": ("test_other_offsets", "ELSEWHERE"),
    "other-stores": ("test_places", "PLACES"),
    "refused-launches": ("test_refused_launches", "refused"),
    "removed-secrets": ("test_removed_secrets", "REMOVALS"),
    "restored-clusters": ("test_restored_clusters", "RESTORED"),
    "rollbacks-and-older-statuses": ("test_rollbacks_once", "OLDER"),
    "rollbacks-asked-for": ("test_rollbacks_once", "asked_for"),
    "rollbacks-of-failures": ("test_rollbacks_once", "failed"),
    "rollbacks-on-older-copies": ("test_rollbacks_on_older_copies", "ROLLBACKS"),
    "rollbacks-of-what-was-stable": ("test_rollbacks_once", "passed"),
    "rollbacks-that-never-ran": ("test_rollbacks_on_older_copies", "UNDONE"),
    "taken-places": ("test_taken_places", "TAKEN"),
}
"""Name -> module and name in it."""
NAMES = (MIXED, *COURSES)


def load(name: str) -> Course:
    """Return a course by its name; raise KeyError if there is none."""
    if name == MIXED:
        return misfortune(choose)
    module, attribute = COURSES[name]
    found: Course = getattr(import_module(f"tests.scenario.{module}"), attribute)
    return found
