"""Jobs of a shop with real sources and sinks: files, static tables, a broker, state, two writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from campaign.workloads import Stream, observed_arrivals

from ordinary import landing
from ordinary.events import drawn, numbered_events
from ordinary.places import NUM_CUSTOMERS, NUM_PRODUCTS, NUM_STORES, Place
from ordinary.worker_code import sent_with_its_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_ORDER = "order_id long, arrival timestamp, customer long, product long, store long, quantity int"


def orders(spark: SparkSession, stream: Stream) -> DataFrame:
    """Numbered orders: ``order_id``, ``arrival``, ``customer``, ``product``, ``store``, ..."""
    return numbered_events(spark, stream).selectExpr(
        "number AS order_id",
        "arrival",
        f"{drawn('customer', NUM_CUSTOMERS)} AS customer",
        f"{drawn('product', NUM_PRODUCTS)} AS product",
        f"{drawn('store', NUM_STORES)} AS store",
        f"cast(1 + {drawn('quantity', 5)} AS int) AS quantity",
    )


def enriched(spark: SparkSession, stream: Stream, place: Place) -> DataFrame:
    """Orders parsed from JSON, with their product and store from two static tables."""
    from pyspark.sql import functions

    columns = functions.struct("order_id", "arrival", "customer", "product", "store", "quantity")
    written = orders(spark, stream).select(functions.to_json(columns).alias("value"))
    parsed = written.select(functions.from_json("value", _ORDER).alias("row")).select("row.*")
    return with_tables(spark, parsed, place)


def with_tables(spark: SparkSession, rows: DataFrame, place: Place) -> DataFrame:
    """Rows joined with both static tables, which are read in each batch."""
    products = spark.read.parquet(str(place.tables / "products"))
    stores = spark.read.parquet(str(place.tables / "stores"))
    return rows.join(products, "product").join(stores, "store")


def to_partitioned_parquet(rows: DataFrame, place: Place) -> DataStreamWriter:
    """A folder for each region."""
    output = place.output / "orders"
    return rows.writeStream.format("parquet").partitionBy("region").option("path", str(output))


def plain_orders(spark: SparkSession, stream: Stream, place: Place) -> DataFrame:
    """Orders with their stores, for sinks that write them twice."""
    stores = spark.read.parquet(str(place.tables / "stores"))
    return orders(spark, stream).join(stores, "store")


def to_two_sinks(rows: DataFrame, place: Place) -> DataStreamWriter:
    """`foreachBatch` writes every order, and then sums by region, without a cache in between."""

    def write(batch: DataFrame, batch_id: int) -> None:
        output = place.output
        batch.write.mode("append").parquet(str(output / "orders"))
        sums = batch.groupBy("region", "product").sum("quantity")
        sums.write.mode("overwrite").parquet(str(output / "sums" / f"batch={batch_id}"))

    return rows.writeStream.foreachBatch(write)


def to_delta(rows: DataFrame, place: Place) -> DataStreamWriter:
    """`foreachBatch` appends every order to a Delta table, and merges the latest of a customer."""
    history, latest = (place.output / name for name in ("history", "latest"))

    def write(batch: DataFrame, batch_id: int) -> None:
        spark = batch.sparkSession
        batch.write.format("delta").mode("append").save(str(history))
        newest = batch.groupBy("customer").agg(
            *_newest("arrival", "order_id", "region", "quantity")
        )
        if batch_id == 0:
            newest.write.format("delta").mode("overwrite").save(str(latest))
            return
        newest.createOrReplaceTempView("newest")
        spark.sql(
            f"MERGE INTO delta.`{latest}` AS old USING newest ON old.customer = newest.customer "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    return rows.writeStream.foreachBatch(write)


def _newest(*columns: str) -> Iterator[Any]:
    from pyspark.sql import functions

    return (functions.max_by(name, "order_id").alias(name) for name in columns)


def from_kafka(spark: SparkSession, stream: Stream, place: Place) -> DataFrame:
    """Lines of a topic: each word is a product, whose category and weight are looked up."""
    from pyspark.sql import functions

    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", place.servers)
        .option("subscribe", place.topic)
        .option("startingOffsets", "earliest")
    )
    if stream.max_rows_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", stream.max_rows_per_trigger)
    rows = reader.load().selectExpr("CAST(value AS STRING) AS text", "timestamp AS arrival")
    seen = observed_arrivals(rows, is_even=True).selectExpr(
        "arrival",
        "text",
        "cast(regexp_extract(text, '^word([0-9]+)', 1) AS long) AS product",
    )
    products = spark.read.parquet(str(place.tables / "products"))
    return seen.join(products, "product").select(
        functions.to_json(functions.struct("arrival", "title", "category", "text")).alias("value")
    )


def to_kafka(rows: DataFrame, place: Place) -> DataStreamWriter:
    """The topic beside the one that is read."""
    return (
        rows.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", place.servers)
        .option("topic", f"{place.topic}-out")
    )


def from_files(spark: SparkSession, stream: Stream, place: Place) -> DataFrame:
    """JSON files that land in a folder: pieces sold per product in windows of 5 s."""
    from pyspark.sql import functions

    reader = spark.readStream.schema(landing.SCHEMA)
    if stream.max_rows_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", stream.max_rows_per_trigger)
    landed = reader.json(str(place.landing)).withColumn(
        "arrival", functions.timestamp_micros("landed_us")
    )
    seen = observed_arrivals(landed, is_even=False).withWatermark("arrival", "1 second")
    window = functions.window("arrival", "5 seconds")
    return seen.groupBy(window, "product").agg(functions.sum("quantity").alias("pieces"))


def to_parquet(rows: DataFrame, place: Place) -> DataStreamWriter:
    """One folder."""
    return rows.writeStream.format("parquet").option("path", str(place.output / "rows"))


def first_orders(spark: SparkSession, stream: Stream, _place: Place) -> DataFrame:
    """Repeated orders dropped, then revenue per store in windows of 5 s."""
    from pyspark.sql import functions

    # Every fourth order is a repeat of one just before.
    repeated = orders(spark, stream).withColumn("order_id", functions.expr("order_id * 3 DIV 4"))
    once = repeated.withWatermark("arrival", "2 seconds").dropDuplicatesWithinWatermark(
        ["order_id"]
    )
    window = functions.window("arrival", "5 seconds")
    return once.groupBy(window, "store").agg(functions.sum("quantity").alias("pieces"))


def revenue(spark: SparkSession, stream: Stream, place: Place) -> DataFrame:
    """Pieces per category of each region, from the start of the query on."""
    rows = with_tables(spark, orders(spark, stream), place)
    return rows.groupBy("region", "category").sum("quantity")


def balances(spark: SparkSession, stream: Stream, _place: Place) -> DataFrame:
    """Points of each customer by `transformWithState`, row by row, with RocksDB."""
    from ordinary.states import Balance

    sent_with_its_code(Balance.__module__)
    return (
        orders(spark, stream)
        .select("customer", "quantity")
        .groupBy("customer")
        .transformWithState(
            statefulProcessor=Balance(),
            outputStructType="customer long, points long",
            outputMode="update",
            timeMode="none",
        )
    )


def baskets(spark: SparkSession, stream: Stream, _place: Place) -> DataFrame:
    """Products of each customer's basket by `transformWithStateInPandas`, with RocksDB."""
    from ordinary.states import Basket

    sent_with_its_code(Basket.__module__)
    return (
        orders(spark, stream)
        .select("customer", "product", "quantity")
        .groupBy("customer")
        .transformWithStateInPandas(
            statefulProcessor=Basket(),
            outputStructType="customer long, num_products long, pieces long",
            outputMode="update",
            timeMode="none",
        )
    )
