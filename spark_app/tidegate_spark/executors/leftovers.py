"""Removes executor pods of an earlier process of this driver pod. Talks to the API server.

After a restart in place Spark numbers its executors from 1 again, and the old pods still have these names.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.executors.pods_api import EXECUTORS, PodsApi, executors_of
from tidegate_spark.process.environment import Environment

GRACE_SECONDS = 5
"""An executor without its driver ends by itself; this is for putting its log into storage."""
LONGEST_WAIT_SECONDS = 20.0
POLL_SECONDS = 0.2

log = logging.getLogger("tidegate")


def leftovers(pods: dict[str, Any], prefix: str, pod_uid: str) -> dict[str, str]:
    """Return names and uids, in a PodList, of the executors under ``prefix`` that this driver's pod owns; pure.

    Names and labels are anybody's to choose: what this pod does not own is left alone.
    """
    found = (pod["metadata"] for pod in executors_of(pods, prefix, pod_uid))
    return {each["name"]: each["uid"] for each in found}


def begin_removal(config: DriverConfig, environment: Environment) -> Callable[[], object]:
    """Remove them in a thread, while everything else starts; the returned function waits until that is done."""
    thread = threading.Thread(target=remove_leftovers, args=(config, environment), name="leftovers", daemon=True)
    thread.start()
    return thread.join


def remove_leftovers(config: DriverConfig, environment: Environment) -> int:
    """Delete executor pods of this epoch that exist already, wait until their names are free, return their number.

    What the API server refuses is logged, not raised: without leftovers, the usual case, nothing is lost.
    """
    prefix, uid, began = config.executor.pod_name_prefix, environment.pod_uid, time.monotonic()
    try:
        api = PodsApi(config.namespace, environment.master.removeprefix("k8s://"))
        found = leftovers(api.list(EXECUTORS), prefix, uid)
        for name, its in found.items():
            api.delete(name, its, GRACE_SECONDS)
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while found and (left := leftovers(api.list(EXECUTORS), prefix, uid)):
            if time.monotonic() > deadline:
                # Their node does not answer; the processes have lost their driver in any case.
                for name, its in left.items():
                    api.delete(name, its, 0)
                break
            time.sleep(POLL_SECONDS)
    except OSError as error:
        log.warning("executors of an earlier process could not be removed: %s", error)
        return 0
    if found:
        took = time.monotonic() - began
        log.info("removed executors of an earlier process in %.1f s: %s", took, ", ".join(found))
    return len(found)
