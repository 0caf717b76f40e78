package headway.clock;

import java.io.Serializable;

/** A rate that changes at instants: constant from each one to the next, and the last for ever. */
final class RateSteps implements Serializable {
  private final double[] fromMicros;
  private final double[] perMicro;
  // Rows before each step; whole ones are counted by their arrival alone.
  private final double[] rowsBefore;

  private RateSteps(double[] fromMicros, double[] perMicro) {
    this.fromMicros = fromMicros;
    this.perMicro = perMicro;
    this.rowsBefore = new double[perMicro.length];
    for (int step = 1; step < perMicro.length; step++) {
      rowsBefore[step] = rowsBefore[step - 1]
          + (fromMicros[step] - fromMicros[step - 1]) * perMicro[step - 1];
    }
  }

  /** Of a first rate and a text such as "60:900,120:300": seconds since the start, rows/s. */
  static RateSteps of(double firstPerSecond, String text) {
    String[] parts = text.split(",");
    double[] fromMicros = new double[parts.length + 1];
    double[] perMicro = new double[parts.length + 1];
    perMicro[0] = firstPerSecond / 1e6;
    for (int step = 1; step <= parts.length; step++) {
      String[] pair = parts[step - 1].split(":");
      if (pair.length != 2) {
        throw new NumberFormatException(text);
      }
      fromMicros[step] = Double.parseDouble(pair[0]) * 1e6;
      perMicro[step] = Double.parseDouble(pair[1]) / 1e6;
      if (!(fromMicros[step] > fromMicros[step - 1] && fromMicros[step] <= 1e15
          && perMicro[step] > 0 && perMicro[step] <= 1e3)) {
        throw new NumberFormatException(text);
      }
    }
    return new RateSteps(fromMicros, perMicro);
  }

  /** Microseconds from the start of the stream to the arrival of a row. */
  long instantMicros(long row) {
    int step = perMicro.length - 1;
    while (rowsBefore[step] > row) {
      step--;
    }
    return (long) Math.floor(fromMicros[step] + (row - rowsBefore[step]) / perMicro[step]);
  }

  /** About how many rows have arrived so many microseconds after the start: off by one or two. */
  long aboutArrivedBy(long micros) {
    int step = perMicro.length - 1;
    while (fromMicros[step] > micros) {
      step--;
    }
    return (long) (rowsBefore[step] + (micros - fromMicros[step]) * perMicro[step]) + 1;
  }
}
