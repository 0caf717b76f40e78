package headway.clock;

import java.io.Serializable;
import java.time.Instant;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A stream of text lines that arrive on the wall clock at a constant rate, in bursts, or at rates
 * that change in steps, with no process that produces them: row i arrives at start + i / rate, and
 * the offset is the number of rows whose arrival lies in the past. The tasks make the rows of their
 * share when they run, from the row number and a seed alone, so that a restart yields the same rows
 * again.
 *
 * <p>Options: rowsPerSecond (required), the mean rate; numPartitions (1); startEpochMicros (when
 * the stream is first asked); burstPeriodMillis (1000) and burstShare (1), the part of every period
 * in which all its rows arrive, evenly; bulkRows (0), with which so many rows at a time arrive
 * together, at the instants of a Poisson process; rateSteps, other rates from instants on, e.g.
 * "60:900,120:300" for 900 rows/s from 60 s after the start and 300 from 120 s on; words, the size
 * of the vocabulary (1000); zipf, the exponent of the word frequencies (1.1, 0 for uniform);
 * wordsPerRow (8); seed (1); maxRowsPerTrigger (no limit).
 */
public final class ClockSource implements TableProvider {

  static final StructType SCHEMA = new StructType(new StructField[] {
    new StructField("arrival", DataTypes.TimestampType, false, Metadata.empty()),
    new StructField("text", DataTypes.StringType, false, Metadata.empty())
  });

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] parts, Map<String, String> properties) {
    return new ClockTable();
  }

  /** What the options say, checked once on the driver and sent along with every task. */
  record Settings(double rowsPerSecond, int numPartitions, Long startEpochMicros, int words,
                  double zipf, int wordsPerRow, long seed, Long maxRowsPerTrigger,
                  double burstShare, long burstPeriodMillis, long bulkRows, String rateSteps)
      implements Serializable {

    static Settings of(CaseInsensitiveStringMap options) {
      if (!options.containsKey("rowsPerSecond")) {
        throw new IllegalArgumentException("clock source: the option rowsPerSecond is missing");
      }
      Settings settings = new Settings(
          options.getDouble("rowsPerSecond", 0.0),
          options.getInt("numPartitions", 1),
          options.containsKey("startEpochMicros") ? options.getLong("startEpochMicros", 0) : null,
          options.getInt("words", 1000),
          options.getDouble("zipf", 1.1),
          options.getInt("wordsPerRow", 8),
          options.getLong("seed", 1),
          options.containsKey("maxRowsPerTrigger") ? options.getLong("maxRowsPerTrigger", 0) : null,
          options.getDouble("burstShare", 1.0),
          options.getLong("burstPeriodMillis", 1000),
          options.getLong("bulkRows", 0),
          options.getOrDefault("rateSteps", ""));
      require(settings.burstShare > 0 && settings.burstShare <= 1,
          "burstShare", "above 0 and at most 1");
      require(settings.burstPeriodMillis >= 1, "burstPeriodMillis", "at least 1");
      require(settings.bulkRows >= 0, "bulkRows", "0 or more");
      require(settings.bulkRows == 0 || settings.burstShare == 1,
          "bulkRows", "0 where burstShare is below 1");
      require(settings.rateSteps.isEmpty()
              || settings.bulkRows == 0 && settings.burstShare == 1,
          "rateSteps", "left out where rows come in bulks or bursts");
      require(settings.hasSteps(), "rateSteps", "seconds and rows/s, e.g. 60:900,120:300, "
          + "instants rising from above 0, rates above 0 and at most 1e9");
      require(settings.rowsPerSecond > 0 && settings.rowsPerSecond <= 1e9,
          "rowsPerSecond", "above 0 and at most 1e9");
      require(settings.numPartitions >= 1, "numPartitions", "at least 1");
      require(settings.words >= 1, "words", "at least 1");
      require(settings.zipf >= 0 && settings.zipf < 100, "zipf", "0 or more and below 100");
      require(settings.wordsPerRow >= 1, "wordsPerRow", "at least 1");
      require(settings.maxRowsPerTrigger == null || settings.maxRowsPerTrigger >= 1,
          "maxRowsPerTrigger", "at least 1");
      return settings;
    }

    /** The rates in steps; null where there is one rate. */
    RateSteps steps() {
      return rateSteps.isEmpty() ? null : RateSteps.of(rowsPerSecond, rateSteps);
    }

    private boolean hasSteps() {
      try {
        steps();
        return true;
      } catch (NumberFormatException refused) {
        return false;
      }
    }

    private static void require(boolean holds, String option, String range) {
      if (!holds) {
        throw new IllegalArgumentException(
            "clock source: the option " + option + " must be " + range);
      }
    }
  }

  static final class ClockTable implements Table, SupportsRead {
    @Override
    public String name() {
      return "clock";
    }

    // Deprecated in Spark 4 for columns(), which 3.5 derives from this one, as 4 does.
    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      Settings settings = Settings.of(options);
      return () -> new ClockScan(settings);
    }
  }

  record ClockScan(Settings settings) implements Scan {
    @Override
    public StructType readSchema() {
      return SCHEMA;
    }

    @Override
    public String description() {
      return "clock: " + settings.rowsPerSecond + " rows/s in " + settings.numPartitions
          + " partitions";
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
      return new ClockStream(settings);
    }
  }

  /**
   * How many rows have arrived, with the clock they were counted on. Carrying the clock makes a
   * restart go on where it stopped although the stream itself remembers nothing.
   */
  static final class ClockOffset extends Offset {
    private static final Pattern FORMAT = Pattern.compile(
        "\\{\"rows\":(\\d+),\"startEpochMicros\":(-?\\d+),\"rowsPerSecond\":([-+.0-9Ee]+)"
            + "(?:,\"rateSteps\":\"([-+.:,0-9Ee]+)\")?\\}");

    final long rows;
    final long startEpochMicros;
    final double rowsPerSecond;
    final String rateSteps;

    ClockOffset(long rows, long startEpochMicros, double rowsPerSecond, String rateSteps) {
      this.rows = rows;
      this.startEpochMicros = startEpochMicros;
      this.rowsPerSecond = rowsPerSecond;
      this.rateSteps = rateSteps;
    }

    static ClockOffset parse(String json) {
      Matcher found = FORMAT.matcher(json);
      if (!found.matches()) {
        throw new IllegalArgumentException("clock source: not one of its offsets: " + json);
      }
      return new ClockOffset(Long.parseLong(found.group(1)), Long.parseLong(found.group(2)),
          Double.parseDouble(found.group(3)), found.group(4) == null ? "" : found.group(4));
    }

    @Override
    public String json() {
      return "{\"rows\":" + rows + ",\"startEpochMicros\":" + startEpochMicros
          + ",\"rowsPerSecond\":" + rowsPerSecond
          + (rateSteps.isEmpty() ? "" : ",\"rateSteps\":\"" + rateSteps + "\"") + "}";
    }

    ClockOffset at(long newRows) {
      return new ClockOffset(newRows, startEpochMicros, rowsPerSecond, rateSteps);
    }
  }

  static final class ClockStream implements MicroBatchStream, SupportsAdmissionControl {
    private final Settings settings;
    // Read once: Spark asks for the initial offset twice, and must get the same one.
    private final long startEpochMicros;
    // Only for the progress report, which asks without telling where the stream stands.
    private volatile ClockOffset lastKnown;

    ClockStream(Settings settings) {
      this.settings = settings;
      Long start = settings.startEpochMicros();
      this.startEpochMicros = start == null ? nowMicros() : start;
    }

    private static long nowMicros() {
      Instant now = Instant.now();
      return now.getEpochSecond() * 1_000_000L + now.getNano() / 1_000;
    }

    @Override
    public Offset initialOffset() {
      return new ClockOffset(0, startEpochMicros, settings.rowsPerSecond(), settings.rateSteps());
    }

    @Override
    public Offset deserializeOffset(String json) {
      ClockOffset offset = ClockOffset.parse(json);
      // Another rate would move the arrival of rows that were counted already.
      if (offset.rowsPerSecond != settings.rowsPerSecond()) {
        throw new IllegalStateException("clock source: the checkpoint was written at "
            + offset.rowsPerSecond + " rows/s, the option says " + settings.rowsPerSecond()
            + "; keep the rate or start with a new checkpoint");
      }
      if (!offset.rateSteps.equals(settings.rateSteps())) {
        throw new IllegalStateException("clock source: the checkpoint was written with rateSteps \""
            + offset.rateSteps + "\", the option says \"" + settings.rateSteps()
            + "\"; keep them or start with a new checkpoint");
      }
      return offset;
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
      Long limit = settings.maxRowsPerTrigger();
      return limit == null ? ReadLimit.allAvailable() : ReadLimit.maxRows(limit);
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
      ClockOffset from = (ClockOffset) start;
      lastKnown = from;
      long arrived = Math.max(from.rows, clockOf(from).arrivedBy(nowMicros()));
      return from.at(Math.min(arrived, from.rows + maxRows(limit, arrived - from.rows)));
    }

    private static long maxRows(ReadLimit limit, long available) {
      if (limit instanceof ReadMaxRows rows) {
        return rows.maxRows();
      }
      if (limit instanceof CompositeReadLimit composite) {
        return Arrays.stream(composite.getReadLimits())
            .mapToLong(part -> maxRows(part, available)).min().orElse(available);
      }
      return available;
    }

    @Override
    public Offset latestOffset() {
      throw new UnsupportedOperationException("Spark asks with a read limit");
    }

    @Override
    public Offset reportLatestOffset() {
      ClockOffset known = lastKnown;
      return known == null ? null : known.at(clockOf(known).arrivedBy(nowMicros()));
    }

    private Clock clockOf(ClockOffset offset) {
      return Clock.of(settings, offset.startEpochMicros);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
      long startRow = ((ClockOffset) start).rows;
      // The end has the clock of the checkpoint. The start has not when the very first batch is
      // run again after a restart: it is the initial offset of a new stream then.
      ClockOffset to = (ClockOffset) end;
      int count = settings.numPartitions();
      InputPartition[] shares = new InputPartition[count];
      for (int share = 0; share < count; share++) {
        // Row i belongs to partition i mod count, as if a producer dealt them out in turn.
        long first = startRow + Math.floorMod(share - startRow, (long) count);
        shares[share] = new Share(first, to.rows, count, clockOf(to));
      }
      return shares;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new ReaderFactory(
          settings.words(), settings.zipf(), settings.wordsPerRow(), settings.seed());
    }

    @Override
    public void commit(Offset end) {}

    @Override
    public void stop() {}

    /** What progress events call the source; without it that would be an object's address. */
    @Override
    public String toString() {
      return new ClockScan(settings).description();
    }
  }

  /** Rows first, first + step, ... below end. */
  record Share(long first, long end, int step, Clock clock) implements InputPartition {}

  record ReaderFactory(int words, double zipf, int wordsPerRow, long seed)
      implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new LineReader((Share) partition, this, Vocabulary.of(words, zipf));
    }
  }

  static final class LineReader implements PartitionReader<InternalRow> {
    private final Share share;
    private final ReaderFactory lines;
    private final Vocabulary vocabulary;
    private final Clock clock;
    private final byte[] buffer;
    private long row;

    LineReader(Share share, ReaderFactory lines, Vocabulary vocabulary) {
      this.share = share;
      this.lines = lines;
      this.vocabulary = vocabulary;
      this.clock = share.clock();
      this.buffer = new byte[lines.wordsPerRow() * (vocabulary.longest + 1)];
      this.row = share.first() - share.step();
    }

    @Override
    public boolean next() {
      row += share.step();
      return row < share.end();
    }

    @Override
    public InternalRow get() {
      return new GenericInternalRow(new Object[] {clock.arrivalMicros(row), line()});
    }

    private UTF8String line() {
      long state = mix(lines.seed() ^ mix(row));
      int length = 0;
      for (int word = 0; word < lines.wordsPerRow(); word++) {
        if (word > 0) {
          buffer[length++] = ' ';
        }
        state += 0x9E3779B97F4A7C15L;
        byte[] spelled = vocabulary.draw(mix(state));
        System.arraycopy(spelled, 0, buffer, length, spelled.length);
        length += spelled.length;
      }
      return UTF8String.fromBytes(Arrays.copyOf(buffer, length));
    }

    /** The finalizer of SplitMix64: neighbouring numbers in, independent looking bits out. */
    private static long mix(long bits) {
      bits = (bits ^ (bits >>> 30)) * 0xBF58476D1CE4E5B9L;
      bits = (bits ^ (bits >>> 27)) * 0x94D049BB133111EBL;
      return bits ^ (bits >>> 31);
    }

    @Override
    public void close() {}
  }
}
