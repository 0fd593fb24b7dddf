"""Errors of a resource that the API server accepted. No I/O."""

from __future__ import annotations


class UnreadableAppError(ValueError):
    """A stored resource does not fit the model.

    The CRD's schema refuses such objects, so this one was stored under another version of the CRD, or past validation.

    Attributes:
        field: path of the field, such as ``spec.driver.resources``; empty if the object as a whole is no resource.
        problem: what was found there and what was expected.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)


class SpecError(ValueError):
    """The spec is well-formed, but no pod can be built from it; the API server cannot see this kind of fault.

    Attributes:
        field: path of the field, such as ``spec.executor.resources.requests.memory``.
        remedy: what is wrong and what to change, for the person who wrote the resource.
    """

    def __init__(self, field: str, remedy: str) -> None:
        self.field = field
        self.remedy = remedy
        super().__init__(f"{field}: {remedy}")


class TooLongError(SpecError):
    """The spec holds more than Kubernetes or Linux hands to a process."""
