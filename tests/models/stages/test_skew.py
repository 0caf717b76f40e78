"""Key skew: Spark's own hashes, loads of partitions, combined rows, stages with a hot task."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.stages.skew import (
    KeyShares,
    combined_rows,
    hot_start_makespan,
    random_partition_loads,
    zipf_key_shares,
)
from headway.models.stages.spark_hash import KeyKind, known_partition_loads, spark_hash
from tests.oracles.closed_forms import max_load_bound
from tests.oracles.list_scheduling import list_scheduling_makespan

# Printed by Spark 4.3.0: hash(k), pmod(hash(k), 8), pmod(hash(k), 200). For the strings, the
# middle number is also the partition that `repartition(8, "k")` put the row into.
STRINGS = [
    ("", 142593372, 4, 172),
    ("a", 1485273170, 2, 170),
    ("ab", -97053317, 3, 83),
    ("abc", 1322437556, 4, 156),
    ("abcd", -396302900, 4, 100),
    ("abcde", 814637928, 0, 128),
    ("user-1", -802825514, 6, 86),
    ("Grüße", 1598803708, 4, 108),
    ("鍵", 526347310, 6, 110),
    ("0123456789abcdef", -1729524877, 3, 123),
    ("\U0001f600", 1877935379, 3, 179),
    ("ÿ", 1533202516, 4, 116),
]
INTS = [
    (0, 933211791, 7, 191),
    (1, -559580957, 3, 43),
    (-1, -1604776387, 5, 13),
    (42, 29417773, 5, 173),
    (2147483647, 133916647, 7, 47),
    (-2147483648, 723455942, 6, 142),
]
LONGS = [
    (0, -1670924195, 5, 5),
    (1, -1712319331, 5, 69),
    (-1, -939490007, 1, 193),
    (42, 1316951768, 0, 168),
    (2147483648, 238268309, 5, 109),
    (9223372036854775807, -1604625029, 3, 171),
    (-9223372036854775808, -853646085, 3, 115),
    (1234567890123, 1304145252, 4, 52),
]


def partition(hash_value: int, shuffle_partitions: int) -> int:
    loads = known_partition_loads(np.array([hash_value], np.int32), np.ones(1), shuffle_partitions)
    return int(loads.argmax())


def test_strings_hash_as_in_spark() -> None:
    assert spark_hash([row[0] for row in STRINGS], "string").tolist() == [r[1] for r in STRINGS]


@pytest.mark.parametrize(("kind", "table"), [("int", INTS), ("long", LONGS)])
def test_integers_hash_as_in_spark(kind: KeyKind, table: list[tuple[int, ...]]) -> None:
    assert spark_hash([row[0] for row in table], kind).tolist() == [row[1] for row in table]


def test_rows_go_to_the_partition_that_spark_chose() -> None:
    for _, hashed, of_8, of_200 in [*STRINGS, *INTS, *LONGS]:
        assert (partition(hashed, 8), partition(hashed, 200)) == (of_8, of_200)


def test_several_columns_chain_their_hashes() -> None:
    first = spark_hash(["a"], "string")
    assert spark_hash([7], "int", first).tolist() == [1979526307]
    assert spark_hash([7], "long", first).tolist() == [165437524]
    # A null hashes to the seed, and the window [0 s, 60 s) to its two ends in microseconds.
    assert spark_hash([7], "int", 42).tolist() == [1079293707]
    window = spark_hash([60_000_000], "long", spark_hash([0], "long"))
    assert spark_hash(["a"], "string", window).tolist() == [143759337]


def test_a_grouped_count_lands_where_spark_put_it() -> None:
    # groupBy(k, lit(7)) with 7 shuffle partitions, AQE off: spark_partition_id of each group.
    placed = {"": 2, "a": 3, "ab": 5, "abc": 6, "abcd": 3, "abcde": 6, "user-1": 4, "鍵": 2}
    hashes = spark_hash([7] * len(placed), "int", spark_hash(list(placed), "string"))
    assert [partition(hashed, 7) for hashed in hashes.tolist()] == list(placed.values())


def test_types_that_share_a_hash() -> None:
    assert spark_hash([-3], "int").tolist() == [-1573329414]  # tinyint and smallint too
    assert spark_hash([19723], "int").tolist() == [-456589419]  # date 2024-01-01
    assert spark_hash([1234567], "long").tolist() == [1295238093]  # timestamp, microseconds


def test_known_keys_share_out_all_rows() -> None:
    keys = [f"k{number}" for number in range(5000)]
    weights = np.arange(1.0, 5001.0)
    loads = known_partition_loads(spark_hash(keys, "string"), weights, 200)
    assert loads.shape == (200,)
    assert loads.sum() == pytest.approx(1.0)
    assert 1.0 < 200.0 * loads.max() < 2.0


# P E[max load] of 4.2 in the design note, simulated there: 1.54 lies 3% below the exact bound.
ZIPF = {
    (1_000, 0.0): (1.07, 1.23, 1.64, 2.42, 5.53),
    (1_000, 0.8): (1.22, 2.00, 5.03, 13.8, 65.5),
    (1_000, 1.2): (1.69, 4.45, 15.6, 47.1, 231.0),
    (100_000, 0.5): (1.01, 1.04, 1.13, 1.34, 2.58),
    (100_000, 1.0): (1.25, 2.25, 6.25, 17.4, 83.9),
    (100_000, 1.2): (1.54, 4.00, 13.3, 40.3, 197.0),
}


@pytest.mark.parametrize("keys", list(ZIPF))
def test_the_fullest_partition_under_zipf_keys(keys: tuple[int, float]) -> None:
    shares = zipf_key_shares(*keys)
    for number, expected in zip((4, 16, 64, 200, 1000), ZIPF[keys], strict=True):
        loads = random_partition_loads(shares, number, seed=4)
        assert loads.sum(axis=1) == pytest.approx(1.0, rel=0.02)
        fullest = loads.max(axis=1)
        assert number * fullest.mean() == pytest.approx(expected, rel=0.045)
        bound = float(max_load_bound(float(shares.share[0]), number))
        assert fullest.mean() >= bound - 4.0 * fullest.std() / np.sqrt(len(fullest))
        if number * shares.share[0] >= 2.0:
            assert bound == pytest.approx(fullest.mean(), rel=0.03)


@pytest.mark.statistical
@pytest.mark.parametrize(("num_keys", "exponent"), [(20_000, 0.0), (20_000, 0.7), (50_000, 1.1)])
@pytest.mark.parametrize("shuffle_partitions", [4, 64, 500])
def test_the_tail_may_be_summed(num_keys: int, exponent: float, shuffle_partitions: int) -> None:
    fast, full = (
        random_partition_loads(
            zipf_key_shares(num_keys, exponent, num_top_keys=number),
            shuffle_partitions,
            num_replications=1000,
            seed=6,
        ).max(axis=1)
        for number in (2000, num_keys)
    )
    error = np.hypot(fast.std(), full.std()) / np.sqrt(1000)
    assert fast.mean() == pytest.approx(full.mean(), abs=4.0 * error + 0.005 * full.mean())


def test_a_short_tail_is_placed_key_by_key() -> None:
    shares = zipf_key_shares(5_000, 0.3, num_top_keys=100)
    full = zipf_key_shares(5_000, 0.3, num_top_keys=5_000)
    means = [
        random_partition_loads(keys, 1000, seed=1).max(axis=1).mean() for keys in (shares, full)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.02)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.7])
def test_classes_of_zipf_keys_are_exact_enough(exponent: float) -> None:
    rank = np.arange(1.0, 300_001.0) ** -exponent
    shares = zipf_key_shares(300_000, exponent)
    assert float(shares.num_keys.sum()) == 300_000
    assert float(shares.share[0]) == pytest.approx(1.0 / rank.sum(), rel=1e-6)
    square = float(shares.num_keys @ shares.share**2)
    assert square == pytest.approx(float((rank**2).sum() / rank.sum() ** 2), rel=1e-3)


@pytest.mark.parametrize(("num_keys", "exponent", "num_tasks"), [(1000, 0.5, 8), (5000, 1.0, 4)])
def test_rows_after_the_combiner(num_keys: int, exponent: float, num_tasks: int) -> None:
    shares = zipf_key_shares(num_keys, exponent, num_top_keys=num_keys)
    random = np.random.default_rng(5)
    drawn = random.choice(num_keys, (20, num_tasks, 20_000 // num_tasks), p=shares.share)
    left = [sum(len(np.unique(task)) for task in batch) for batch in drawn]
    found = combined_rows(shares.share, 20_000.0, num_tasks)
    assert float(found.sum()) == pytest.approx(np.mean(left), rel=0.005)


def test_combining_broadcasts_and_has_limits() -> None:
    shares = zipf_key_shares(50, 1.0).share
    rows = combined_rows(shares, np.array([[1.0], [1e9]]), np.array([1.0, 10.0]))
    assert rows.shape == (2, 2, 50)
    assert rows[1].sum(axis=-1) == pytest.approx([50.0, 500.0])
    assert combined_rows(np.ones(1), 100.0, 4).tolist() == [4.0]


def test_a_stage_with_a_hot_task() -> None:
    for exponent, shuffle_partitions, num_cores in (
        (0.8, 64, 16), (1.0, 64, 16), (1.0, 200, 4), (1.2, 64, 16), (1.2, 1000, 4), (1.2, 16, 4)
    ):  # fmt: skip
        shares = zipf_key_shares(10_000, exponent)
        times = 0.005 + 5.0 * random_partition_loads(shares, shuffle_partitions, seed=2)
        simulated = list_scheduling_makespan(times, num_cores).mean()
        assert hot_start_makespan(times, num_cores).mean() == pytest.approx(simulated, rel=0.07)


def test_a_hot_task_may_start_anywhere() -> None:
    assert float(hot_start_makespan(np.array([100.0] + [1.0] * 40), 4)) == pytest.approx(105.0)
    assert float(hot_start_makespan(np.array([9.0, 1.0]), 2)) == 9.0
    assert float(hot_start_makespan(np.ones(17), 16)) == pytest.approx(2.0)
    assert float(hot_start_makespan(np.ones(33), 16)) == pytest.approx(3.0)
    assert float(hot_start_makespan(np.zeros(5), 2)) == 0.0


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=40), st.integers(1, 12))
def test_a_makespan_keeps_the_bounds_of_every_order(times: list[float], num_cores: int) -> None:
    array = np.array(times)
    makespan = float(hot_start_makespan(array, num_cores))
    assert not np.isnan(makespan)
    assert makespan >= max(array.max(), array.sum() / num_cores) - 1e-9
    assert makespan <= array.sum() / num_cores + (1.0 - 1.0 / num_cores) * array.max() + 1e-9


@given(st.floats(0.0, 1.0), st.integers(1, 5000))
def test_the_bound_is_a_share(top_share: float, shuffle_partitions: int) -> None:
    bound = float(max_load_bound(top_share, shuffle_partitions))
    assert max(1.0 / shuffle_partitions, top_share) - 1e-12 <= bound <= 1.0 + 1e-12


def test_a_seed_repeats() -> None:
    shares = zipf_key_shares(3000, 0.9)
    first, again, other = (
        random_partition_loads(shares, 32, num_replications=3, seed=seed) for seed in (1, 1, 2)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_refusals() -> None:
    shares = zipf_key_shares(10, 1.0)
    with pytest.raises(ValueError, match="fit int"):
        spark_hash([2**31], "int")
    with pytest.raises(ValueError, match="fit long"):
        spark_hash([2**63], "long")
    with pytest.raises(ValueError, match="weight"):
        known_partition_loads(np.zeros(2, np.int32), np.zeros(2), 4)
    with pytest.raises(ValueError, match="shuffle_partitions"):
        known_partition_loads(np.zeros(1, np.int32), np.ones(1), 0)
    with pytest.raises(ValueError, match="exponent"):
        zipf_key_shares(10, -1.0)
    with pytest.raises(ValueError, match="shuffle_partitions"):
        random_partition_loads(shares, 0, seed=1)
    with pytest.raises(ValueError, match="top_share"):
        max_load_bound(1.5, 4)
    with pytest.raises(ValueError, match="num_rows"):
        combined_rows(shares.share, 0.0, 1)
    with pytest.raises(ValueError, match="task"):
        hot_start_makespan(np.array([]), 1)
    for share, number in (([0.5], [1.0]), ([-0.2, 1.2], [1.0, 1.0]), ([1.0], [0.5]), ([], [])):
        with pytest.raises(ValueError, match="share"):
            KeyShares(np.array(share), np.array(number))
