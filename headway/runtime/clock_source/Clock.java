package headway.clock;

import java.io.Serializable;

/**
 * When rows arrive: evenly within the burst that every period begins with, in bulks, or at rates
 * that change in steps.
 */
record Clock(long startEpochMicros, double rowsPerSecond, double burstShare,
             long burstPeriodMillis, long bulkRows, Bulks bulks, RateSteps steps)
    implements Serializable {

  static Clock of(ClockSource.Settings settings, long startEpochMicros) {
    Bulks bulks = settings.bulkRows() == 0 ? null
        : Bulks.of(settings.seed(), settings.bulkRows() * 1e6 / settings.rowsPerSecond());
    return new Clock(startEpochMicros, settings.rowsPerSecond(), settings.burstShare(),
        settings.burstPeriodMillis(), settings.bulkRows(), bulks, settings.steps());
  }

  long arrivalMicros(long row) {
    if (bulks != null) {
      return startEpochMicros + bulks.instantMicros(row / bulkRows);
    }
    if (steps != null) {
      return startEpochMicros + steps.instantMicros(row);
    }
    if (burstShare == 1.0) {
      return startEpochMicros + (long) Math.floor(row * 1e6 / rowsPerSecond);
    }
    double periods = row / rowsPerPeriod();
    double whole = Math.floor(periods);
    return startEpochMicros
        + (long) Math.floor((whole + (periods - whole) * burstShare) * burstPeriodMillis * 1e3);
  }

  /** The rows whose arrival is not after the given instant. */
  long arrivedBy(long epochMicros) {
    if (epochMicros < startEpochMicros) {
      return 0;
    }
    if (bulks != null) {
      return bulkRows * bulks.arrivedBy(epochMicros - startEpochMicros);
    }
    long count = aboutArrivedBy(epochMicros - startEpochMicros);
    // Divisions may be off by a row; the arrival instants are what counts.
    while (arrivalMicros(count) <= epochMicros) {
      count++;
    }
    while (count > 0 && arrivalMicros(count - 1) > epochMicros) {
      count--;
    }
    return count;
  }

  private long aboutArrivedBy(long micros) {
    if (steps != null) {
      return steps.aboutArrivedBy(micros);
    }
    double periods = micros / (burstPeriodMillis * 1e3);
    double whole = Math.floor(periods);
    double arrived = whole + Math.min((periods - whole) / burstShare, 1.0);
    return (long) (arrived * rowsPerPeriod()) + 1;
  }

  private double rowsPerPeriod() {
    return rowsPerSecond * burstPeriodMillis / 1e3;
  }
}
