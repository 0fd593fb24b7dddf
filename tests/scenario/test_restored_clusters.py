"""etcd is restored from a backup, while storages and drivers go on: each application goes on where its storage is.

The operators of before know what never was; they end, and who comes after them knows only what is there again.
"""

import pytest

from tests.scenario.events import choose_among, messages, operators, people, restored_clusters
from tests.scenario.schedule import misfortune, run_course

SEEDS = range(30)
RESTORED = misfortune(
    choose_among(
        *(restored_clusters.back_up_cluster,) * 2,
        *(restored_clusters.restore_cluster,) * 3,
        people.edit_args,
        people.repartition_stable,
        people.ask_for_rollback,
        people.break_next_version,
        people.suspend_or_resume,
        people.restart,
        *(people.create_app,) * 2,
        people.delete_app,
        messages.send_messages,
        messages.take_message_back,
        operators.crash_operator,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_goes_on_where_its_storage_is_when_all_objects_are_as_they_were(seed: int) -> None:
    assert run_course(seed, RESTORED).violations == []
