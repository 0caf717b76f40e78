package headway.clock;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;

/** Instants of a Poisson process: the same from the same seed, and known as far as was asked. */
final class Bulks implements Serializable {
  private record Key(long seed, double meanGapMicros) implements Serializable {}

  // One per JVM, as the driver and every task ask for the same instants.
  private static final Map<Key, Bulks> KNOWN = new ConcurrentHashMap<>();
  private static final int FIRST_COUNT = 1024;

  private final Key key;
  private transient volatile double[] instantsMicros;

  static Bulks of(long seed, double meanGapMicros) {
    return KNOWN.computeIfAbsent(new Key(seed, meanGapMicros), Bulks::new);
  }

  private Bulks(Key key) {
    this.key = key;
    this.instantsMicros = drawn(FIRST_COUNT);
  }

  /** A task finds those of its JVM, as the instants do not travel. */
  private Object readResolve() {
    return of(key.seed(), key.meanGapMicros());
  }

  /** Microseconds from the start of the stream to the arrival of a bulk. */
  long instantMicros(long bulk) {
    double[] known = instantsMicros;
    while (bulk >= known.length) {
      known = longerThan(known.length);
    }
    return (long) Math.floor(known[(int) bulk]);
  }

  /** How many bulks have arrived so many microseconds after the start of the stream. */
  long arrivedBy(long micros) {
    double[] known = instantsMicros;
    while (known[known.length - 1] < micros + 1) {
      known = longerThan(known.length);
    }
    // An instant counts with the microsecond it lies in.
    int place = Arrays.binarySearch(known, micros + 1.0);
    return place >= 0 ? place : -place - 1;
  }

  private synchronized double[] longerThan(int count) {
    if (instantsMicros.length <= count) {
      instantsMicros = drawn(2 * count);
    }
    return instantsMicros;
  }

  /** From the first one again: a stream of random numbers has no middle to go on from. */
  private double[] drawn(int count) {
    SplittableRandom random = new SplittableRandom(key.seed());
    double[] instants = new double[count];
    double instant = 0;
    for (int bulk = 0; bulk < count; bulk++) {
      instant -= Math.log1p(-random.nextDouble()) * key.meanGapMicros();
      instants[bulk] = instant;
    }
    return instants;
  }
}
