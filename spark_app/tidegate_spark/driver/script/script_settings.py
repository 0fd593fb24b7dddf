"""Which settings of a script's builder or SparkConf are used, and why the others are not. Pure.

All are in force as under ``spark-submit``, except those that a field of the spec owns or that the spec sets too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_spark.contract.protocol import DriverConfig, is_reserved_label
from tidegate_spark.jvm import entry_messages as messages
from tidegate_spark.process.redaction import values_of_launch
from tidegate_spark.process.spark import executor_memory, s3a_settings, sparkconf

DRIVER_HEAP = "spark.driver.memory"
VARIABLES_OF_STORAGE = "spark.executorEnv.AWS_"
NAMES_A_LABEL = "spark.kubernetes.executor.decommissionLabel"


@dataclass(frozen=True)
class Unused:
    """A setting that is not used."""

    key: str
    value: str
    why: str
    """What decides, or what to use."""
    owned: bool
    """Whether a field, or Tidegate, has it for its own, and what it has is no key to a store."""

    @property
    def shown(self) -> str:
        """The value, empty if it may be a secret: of a setting that nobody owns nobody here knows that it is none."""
        return self.value if self.owned and not values_of_launch({self.key: self.value}, ()) else ""


@dataclass(frozen=True)
class Judged:
    """The settings of a script."""

    used: dict[str, str]
    unused: tuple[Unused, ...]


def judge(asked: Mapping[str, str], config: DriverConfig) -> Judged:
    """Return which of the settings that a script asks for are used.

    Args:
        asked: the script's.
        config: of the driver.
    """
    unused = [found for key, value in asked.items() if (found := _unused(key, value, config)) is not None]
    used = {key: value for key, value in asked.items() if key not in {each.key for each in unused}}
    memory = {key: used[key] for key in executor_memory.KEYS & used.keys()}
    if memory and not executor_memory.fits(config, memory):
        unused += [Unused(key, value, messages.MEMORY_IS_THE_SPECS, True) for key, value in sorted(memory.items())]
        used = {key: value for key, value in used.items() if key not in memory}
    return Judged(used, tuple(unused))


def _unused(key: str, value: str, config: DriverConfig) -> Unused | None:
    if s3a_settings.is_of_own_path(key, config.storage):
        return Unused(key, value, messages.STORAGE_IS_THE_SPECS, False)
    if key.startswith(VARIABLES_OF_STORAGE):
        return Unused(key, value, messages.EXECUTORS_REACH_THE_STORAGE, False)
    remedy = "" if key in s3a_settings.FOR_ALL else sparkconf.remedy_for(key)
    if key == NAMES_A_LABEL and is_reserved_label(value.strip()):
        remedy = sparkconf.LABELS_REMEDY
    if remedy:
        return Unused(key, value, remedy, True)
    spec = sparkconf.settings_of_spec(config)
    if key in spec:
        return None if spec[key] == value else Unused(key, value, messages.SPEC_DECIDES, False)
    if s3a_settings.is_another_implementation(key, value):
        return Unused(key, value, messages.ONE_CLASS_FOR_ALL_BUCKETS, True)
    return Unused(key, value, messages.DRIVER_HEAP_IS_THE_SPECS, True) if key == DRIVER_HEAP else None
