"""What to run next follows from what was not separable."""

from __future__ import annotations

from dataclasses import replace

from headway.domain import ObservedSetting, Pins, Separation
from headway.models.job.advice import advised_runs
from tests.factories import a_configuration, a_profile


def setting(**changes: object) -> ObservedSetting:
    return replace(a_profile().settings[0], **changes)  # type: ignore[arg-type]


def test_one_run_needs_other_rows_other_partitions_other_slots_and_a_repeat() -> None:
    fewer, rows, partitions, slots, again = advised_runs(a_profile(pins=Pins(state_partitions=8)))
    assert fewer.configuration == a_configuration(trigger_s=0.0)
    assert rows.configuration == a_configuration(trigger_s=3.0)
    assert partitions.configuration == a_configuration(trigger_s=2.0, shuffle_partitions=32)
    assert slots.configuration == a_configuration(executors=4)
    assert again.configuration == a_configuration()
    assert [run.new_checkpoint for run in (fewer, rows, partitions, slots, again)] == [
        False, False, True, False, False,
    ]  # fmt: skip
    assert all(10 <= run.num_batches <= 60 and run.rate_per_s == 5000 for run in (rows, again))


def test_what_was_predicted_is_not_run_again() -> None:
    separated = [replace(one, separation=Separation.BATCHES) for one in a_profile().stages]
    profile = a_profile(
        stages=tuple(separated),
        settings=(
            setting(rows_per_batch_low=1000.0, rows_per_batch_high=1000.0),
            setting(configuration=a_configuration(shuffle_partitions=32)),
            setting(configuration=a_configuration(executors=1)),
            setting(),
            setting(),
        ),
    )
    assert advised_runs(profile) == ()


def test_back_to_back_batches_count_by_their_duration() -> None:
    back_to_back = setting(
        configuration=a_configuration(trigger_s=0.0),
        rows_per_batch_low=900.0,
        rows_per_batch_high=1000.0,
    )
    rows, *_ = advised_runs(a_profile(settings=(back_to_back,)))
    assert rows.configuration.trigger_s == 1.0  # the first choice above three times 0.31 s


def test_a_job_whose_batches_are_hardly_smaller_without_a_trigger_needs_none_of_them() -> None:
    # 900 rows in a batch as fast as possible: theirs is the duration at which they settle.
    small = setting(rows_per_batch_low=2600.0, rows_per_batch_high=2700.0)
    assert advised_runs(a_profile(settings=(small,)))[0].configuration.trigger_s == 3.0


def test_many_partitions_are_tried_with_fewer() -> None:
    many = setting(configuration=a_configuration(shuffle_partitions=200))
    _, partitions, *_ = advised_runs(a_profile(settings=(many,)))
    assert partitions.configuration.shuffle_partitions == 50


def test_noisier_batches_need_more_of_them() -> None:
    noise = a_profile().noise
    calm, wild = (
        advised_runs(a_profile(noise=replace(noise, batch_ratio=ratio)))[1] for ratio in (0.02, 0.6)
    )
    assert calm.num_batches < wild.num_batches
