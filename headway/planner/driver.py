"""The driver of a planned query: how busy it is, and the settings that give it what it needs."""

from __future__ import annotations

from headway.assumptions.resources import DRIVER_HEAP_BYTES
from headway.domain import Application
from headway.domain.driver import PlannedDriver
from headway.models.job.driver_load import driver_cores, driver_work, planned_driver
from headway.planner.explained_setting import ExplainedSetting
from headway.sparkconf.conflicts import DRIVER_CORES_KEY, DRIVER_HEAP_KEY
from headway.sparkconf.container import memory_setting_bytes
from headway.units import spark_memory_text


def driver_of(setting: ExplainedSetting) -> PlannedDriver:
    """The driver of a query that is alone in its application.

    A driver that has fewer cores than the query needs gets as many as it needs. That of a profiled
    local run is the executor, too; the planned one is not.

    Notes
    -----
    theory.md (U1)-(U4).
    """
    profile, configuration = setting.question.profile, setting.configuration
    work = driver_work(
        profile,
        batch_rows=setting.rows,
        num_slots=configuration.num_slots,
        shuffle_partitions=configuration.shuffle_partitions,
        interval_s=max(configuration.trigger_s, setting.duration_s),
        has_tasks=False,
    )
    needed = planned_driver([work])
    cores = max(needed.needed_cores, driver_cores(profile.application))
    return planned_driver([work], cores)


def driver_conf(application: Application, driver: PlannedDriver) -> dict[str, str]:
    """The settings of a driver that needs more than it had, or than Spark gives it by default.

    Examples
    --------
    >>> driver = PlannedDriver(
    ...     num_queries=30, busy_cores=1.2, cores=3, needed_cores=3, knee_queries=75.0,
    ...     knee_low_queries=60.0, knee_high_queries=93.0, heap_bytes=2**31,
    ... )
    >>> driver_conf(Application(id="app-1", name="a", spark_version="4.0.1"), driver)
    {'spark.driver.cores': '3', 'spark.driver.memory': '2g'}
    """
    conf = {}
    if driver.needed_cores > driver_cores(application):
        conf[DRIVER_CORES_KEY] = str(driver.needed_cores)
    if driver.heap_bytes > _profiled_heap_bytes(application):
        conf[DRIVER_HEAP_KEY] = spark_memory_text(driver.heap_bytes)
    return conf


def _profiled_heap_bytes(application: Application) -> int:
    """Heap of the driver of an application by its settings, or by default [bytes]."""
    stated = memory_setting_bytes(application.properties.get(DRIVER_HEAP_KEY))
    return DRIVER_HEAP_BYTES.value if application.is_local or stated is None else stated
