from __future__ import annotations

from dataclasses import fields

import pytest

from headway.domain import Configuration
from headway.errors import InputError
from headway.sparkconf import KNOBS, applies_when, knob_named, query_options, spark_conf
from tests.factories import a_configuration


def test_every_setting_of_a_configuration_has_a_knob() -> None:
    # What limits tasks besides cores is seen, and set by amounts of resources, if at all.
    settings = {field.name for field in fields(Configuration)} - {"tasks_per_executor"}
    assert settings <= set(KNOBS)


def test_every_knob_is_set_in_the_configuration_or_in_the_query() -> None:
    configuration = a_configuration(max_offsets_per_trigger=7, task_cpus=2)
    in_conf = set(spark_conf(configuration, executor_memory="2g"))
    of_query = set(query_options(configuration))
    assert {knob.key for knob in KNOBS.values()} <= in_conf | of_query


def test_memory_is_left_out_when_it_is_not_known() -> None:
    assert "spark.executor.memory" not in spark_conf(a_configuration(), executor_memory=None)


@pytest.mark.parametrize(
    ("given", "emitted"),
    [("8g", "8g"), ("8Gi", "8g"), ("1.5g", "1536m"), ("900m", "900m"), ("4096", "4g")],
)
def test_memory_is_spelt_as_every_spark_reads_it(given: str, emitted: str) -> None:
    conf = spark_conf(a_configuration(), executor_memory=given)
    assert conf["spark.executor.memory"] == emitted


@pytest.mark.parametrize("given", ["64m", "plenty", "", "-1g"])
def test_memory_that_spark_would_refuse_is_refused(given: str) -> None:
    with pytest.raises(InputError):
        spark_conf(a_configuration(), executor_memory=given)


@pytest.mark.parametrize(
    ("trigger_s", "text"), [(0.0, "0 seconds"), (0.25, "250 milliseconds"), (60.0, "60 seconds")]
)
def test_the_trigger_is_in_words(trigger_s: float, text: str) -> None:
    assert query_options(a_configuration(trigger_s=trigger_s)) == {"trigger": text}


@pytest.mark.parametrize("setting", list(KNOBS))
def test_a_knob_is_found_by_each_of_its_names(setting: str) -> None:
    knob = KNOBS[setting]
    for name in (knob.setting, knob.setting.replace("_", " "), knob.key, knob.label):
        assert knob_named(name) is knob


def test_state_fixes_the_partitions_and_nothing_else() -> None:
    pinned = {
        setting
        for setting, knob in KNOBS.items()
        if applies_when(knob, stateful=True, spark_version="4.3.0") == "new checkpoint"
    }
    assert pinned == {"shuffle_partitions"}


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"4\.3\.0"):
        applies_when(KNOBS["shuffle_partitions"], stateful=False, spark_version="latest")
