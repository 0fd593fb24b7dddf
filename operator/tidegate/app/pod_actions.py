"""Carries out the actions on pods, and enters the API server's answers in the index. Does I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.app import actions as do
from tidegate.app.builders.configuration import secret_for
from tidegate.app.plan_run import PlanRun
from tidegate.cache import refusal_messages
from tidegate.cache.pods.act import delete_pod, restore_labels
from tidegate.cache.pods.limit_ranges import learn_floors
from tidegate.engine import write_messages
from tidegate.engine.outcome import ObserveAgain, Outcome, must
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, AlreadyExists, Forbidden, Invalid, NotFound, is_about_object
from tidegate.kube.paths import collection_of, item
from tidegate.pods.records.read_pods import Pod, build_record, launch_of
from tidegate_spark.contract.reasons import Reason


@dataclass(slots=True)
class PodActions:
    """Carries out actions about pods on a cluster."""

    _client: KubeClient
    _secrets: LaunchSecrets

    async def carry_out(self, run: PlanRun, action: do.PodAction) -> Outcome:
        """Carry out one action.

        Returns:
            ObserveAgain if the world is not the observed one, else None.

        Raises:
            RetryLaterError: the API server cannot or does not want to; the reason is in the text.
        """
        match action:
            case do.CreatePod(manifest=manifest, strict=strict):
                outcome = await self._create(run, manifest, strict=strict)
                run.launched = run.launched or (outcome is None and isinstance(action, do.CreateDriver))
                return outcome
            case do.DeletePod(pod=pod):
                return await delete_pod(self._client, run.index, pod)
            case do.RestoreLabels(pods=pods):
                return await restore_labels(self._client, run.index, pods)
            case do.ConfirmDriverGone(pod_name=name, needs_name=needs_name):
                return await self._confirm_gone(run, name, needs_name=needs_name)
            case do.ProvideConfiguration():
                return await self._provide_configuration(run, action)
            case _:
                assert_never(action)

    async def _confirm_gone(self, run: PlanRun, name: str, *, needs_name: bool) -> Outcome:
        answer = await self._client.get(item("Pod", run.key[0], name), Pod)
        if isinstance(answer, NotFound):
            _forget_found(run, name, is_free=True)
            return None
        if isinstance(answer, FAILURES):
            raise RetryLaterError(f"read of the driver pod: {answer}")
        if not needs_name and build_record(answer).app != run.key[1] and not _runs_our_program(run, answer):
            _forget_found(run, name, is_free=False)
            return None  # a name is of one pod at a time
        return _take_in_found(run, answer, recorded=False)

    async def _create(self, run: PlanRun, manifest: dict[str, Any], *, strict: bool) -> Outcome:
        answer = await self._client.create(collection_of(manifest), manifest, Pod, strict=strict)
        name = manifest["metadata"]["name"]
        if isinstance(answer, AlreadyExists):
            return await self._inspect_occupant(run, name)
        if isinstance(answer, Invalid | Forbidden | NotFound):
            return await self._take_in_refusal(run, manifest, answer)
        # Whatever else was said, the pod is there or may be: whoever tries again is another launch, of another epoch.
        run.remember(refusal=None)
        if isinstance(answer, FAILURES):
            run.remember(not_created=answer.message)
            raise RetryLaterError(f"creation of pod {name}: {answer}")
        run.index.put_pod(build_record(answer))
        return None

    async def _take_in_refusal(
        self, run: PlanRun, manifest: dict[str, Any], answer: Invalid | Forbidden | NotFound
    ) -> Outcome:
        name, namespace = manifest["metadata"]["name"], run.key[0]
        # The reason may be a removed ServiceAccount: what was known of the access is no longer relied on.
        run.index.checked_access.discard(run.key)
        if isinstance(answer, Forbidden) and answer.namespace_terminating:
            message = refusal_messages.namespace_terminating(namespace)
            run.refuse(name, Reason.NAMESPACE_TERMINATING, message, recorded=True)
        else:
            # What a LimitRange demands is known now: the next pod has it, so nobody believes this refusal.
            learned = await learn_floors(self._client, run.index, namespace, answer) is not None
            server_message = answer.message if is_about_object(answer) and not learned else ""
            message = refusal_messages.pod_refused(manifest, answer, run.index.floors_of(namespace))
            run.refuse(
                name, Reason.LAUNCH_REFUSED, message, recorded=True, server_message=server_message, at_once=learned
            )
        return ObserveAgain("the pod was refused")

    async def _inspect_occupant(self, run: PlanRun, name: str) -> Outcome:
        answer = await self._client.get(item("Pod", run.key[0], name), Pod)
        if isinstance(answer, FAILURES):
            run.remember(refusal=None)  # it may be, or have been, ours
            if isinstance(answer, NotFound):
                return ObserveAgain("the pod was there a moment ago")
            raise RetryLaterError(f"read of pod {name}: {answer}")
        return _take_in_found(run, answer, recorded=True)

    async def _provide_configuration(self, run: PlanRun, action: do.ProvideConfiguration) -> Outcome:
        pod = next((each for each in run.index.pods(run.key) if each.name == action.pod_name), None)
        if pod is None:
            return ObserveAgain("the pod is gone")
        failure = await self._secrets.provide(secret_for(action.secret, pod.name, pod.uid), replace=action.replace)
        if isinstance(failure, Invalid | Forbidden):
            # Nothing of the pod has begun: without the Secret the kubelet starts no container of it.
            reason, message = refusal_of(failure, refusal_messages.CONFIGURATION, run.key[0])
            run.refuse(pod.name, reason, message, recorded=False)
            return await delete_pod(self._client, run.index, pod) or ObserveAgain(message)
        must(failure, f"creation of {refusal_messages.CONFIGURATION}")
        return None


def refusal_of(answer: Invalid | Forbidden, what: str, namespace: str) -> tuple[Reason, str]:
    """Return reason and text of what the API server does not create for a launch.

    In a namespace that is being deleted nobody has anything to correct, and no purge needs to be waited for.
    """
    if isinstance(answer, Forbidden) and answer.namespace_terminating:
        return Reason.NAMESPACE_TERMINATING, refusal_messages.namespace_terminating(namespace)
    return Reason.LAUNCH_REFUSED, write_messages.refused(what, answer.message)


def _runs_our_program(run: PlanRun, pod: Pod) -> bool:
    launch = launch_of(pod)
    return launch is not None and (launch.namespace, launch.app) == run.key


def _forget_found(run: PlanRun, name: str, *, is_free: bool) -> None:
    """Name a pod no more that is gone from the driver's place; people's own may be there now, and holds no end."""
    known = run.index.memory(run.key).refusal
    if known is None or (known.pod_name, known.reason) != (name, Reason.POD_NAME_TAKEN):
        return
    of_launch = known.recorded and known.epoch == run.app.status.epoch  # which goes on with the epoch that it has
    if not of_launch and (is_free or known.holds_end):
        run.remember(refusal=None)


def _take_in_found(run: PlanRun, pod: Pod, *, recorded: bool) -> Outcome:
    record = build_record(pod)
    if record.app != run.key[1]:
        may_write = _runs_our_program(run, pod)
        text = refusal_messages.driver_disowned if may_write else refusal_messages.pod_name_taken
        message = text(record.name)
        run.refuse(record.name, Reason.POD_NAME_TAKEN, message, recorded=recorded, holds_end=may_write)
        return ObserveAgain(message)
    run.remember(refusal=None)
    run.index.put_pod(record)
    return ObserveAgain("the pod is there")
