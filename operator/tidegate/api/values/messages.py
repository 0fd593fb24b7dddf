"""Messages: what is wrong with a value of a resource, and what to write instead. No I/O."""

from __future__ import annotations


def too_deep(mark: str, levels: int) -> str:
    return f"{mark}nested deeper than {levels} levels"


def too_many_values_of_object(mark: str, most: int) -> str:
    return f"{mark}more than {most:,} values"


def too_large_beside_others(mark: str) -> str:
    return (
        f"{mark}so long that older long applications, of this namespace or of all, have the memory that there is for "
        "it; make it shorter, for instance by files in the image, or delete others"
    )


def number_too_long(mark: str, digits: int) -> str:
    return f"{mark}a number of more than {digits} digits"


def answer_not_repeated(most: int) -> str:
    return f"The answer is not repeated: what it is about holds more than {most:,} secrets in plain text."


def secret_gone(field: str) -> str:
    return f"{field} is not in the spec any more, and no secret is recorded"


def no_quantity(text: str) -> str:
    return f"{text!r} is no quantity; write something like 500m, 2 or 2Gi"


def not_json(error: Exception) -> str:
    return f"not JSON: {error}"


def too_many_values(most: int) -> str:
    return f"more than {most} values; a pod has less than a thousand"


def template_too_deep(levels: int) -> str:
    return f"nested deeper than {levels} levels"


def interval(seconds: int) -> str:
    return f"every {seconds} s"


def schedule_too_long(longest: int) -> str:
    return f"a schedule and a time zone have at most {longest} characters; write something like 0 8 * * 1-5"


def unknown_time_zone(time_zone: str) -> str:
    return f"{time_zone!r} is no time zone of the IANA database, such as Europe/Berlin or Etc/UTC"


def not_five_fields(schedule: str) -> str:
    return f"{schedule!r} has not five fields: minute, hour, day of month, month, day of week; such as 0 8 * * 1-5"


def day_never_occurs(schedule: str) -> str:
    return f"{schedule!r} never occurs: none of its months has that day. Name a day that one of them has, such as 28"


def no_schedule(schedule: str, error: Exception) -> str:
    return f"{schedule!r} is no schedule ({error}). A range starts with the smaller one, such as 8-17 or MON-FRI"


def never_occurs(schedule: str) -> str:
    return f"{schedule!r} never occurs. Name days that occur"
