"""Which ServiceAccount an application's pods run as. No I/O."""

from __future__ import annotations

from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.pods import messages
from tidegate.pods.records.names import ACCESS_PREFIX, access_name


def service_account(app: StreamingApp) -> str:
    """Return the ServiceAccount of the application's pods."""
    return app.spec.service_account_name or access_name(app.metadata.name)


def refuse_others_account(app: StreamingApp) -> None:
    """Raise if an application names the ServiceAccount that Tidegate makes for another one.

    By that name the API server knows whose executors a driver may touch (admissionPolicies.access of the chart).

    Raises:
        SpecError: it does.
    """
    named = app.spec.service_account_name
    if named.startswith(ACCESS_PREFIX) and named != access_name(app.metadata.name):
        raise SpecError("spec.serviceAccountName", messages.account_of_another_application(named))
