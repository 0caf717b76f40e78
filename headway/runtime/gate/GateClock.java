package headway.gate;

import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.util.Clock;

/** The clock that a query's triggers go by: it waits for a grant instead of a time. */
public final class GateClock implements Clock {
  private final GateHub hub;
  private final int number;
  private final long triggerMillis;
  private final String pool;
  private int grants = 0;
  private boolean isMarked = false;
  private volatile boolean released = false;

  /** Jobs of its batches go to a pool of the fair scheduler; null leaves them where they are. */
  public GateClock(
      GateHub hub, int number, StreamingQuery query, long triggerMillis, String pool) {
    this.hub = hub;
    this.number = number;
    this.triggerMillis = triggerMillis;
    this.pool = pool;
    hub.join(number, query, this);
  }

  @Override
  public long getTimeMillis() {
    return System.currentTimeMillis();
  }

  @Override
  public long nanoTime() {
    return System.nanoTime();
  }

  /** So many batches may start. */
  public synchronized void grant(int batches) {
    grants += batches;
    notifyAll();
  }

  /**
   * This query goes by its own trigger from now on. Whether a batch that was let go is still ahead of
   * it or running: the mark on its jobs is taken off only when it waits here again.
   */
  public synchronized boolean release() {
    released = true;
    notifyAll();
    return isMarked || grants > 0;
  }

  /** Whether its gate has let the query go. */
  public synchronized boolean isReleased() {
    return released;
  }

  @Override
  public long waitTillTime(long targetMillis) {
    try {
      if (!released && !hub.isOpened()) {
        hub.post(number, targetMillis);
      }
      if (awaitTurn()) {
        hub.mark(triggerMillis);
        hub.put(pool);
        return System.currentTimeMillis();
      }
      hub.mark(null);
      for (long left; (left = targetMillis - System.currentTimeMillis()) > 0; ) {
        Thread.sleep(left);
      }
      return System.currentTimeMillis();
    } catch (InterruptedException interrupted) {
      // As it is: Spark takes it for a stop, and anything around it for a failure.
      throw GateClock.<RuntimeException>asItIs(interrupted);
    }
  }

  /** Whether its turn has come; false where it goes by its own trigger. */
  private boolean awaitTurn() throws InterruptedException {
    while (true) {
      long lookAgainMillis = hub.lookAgainMillis(number);
      synchronized (this) {
        if (grants == 0 && !released && !hub.isOpen()) {
          wait(lookAgainMillis);
        }
        if (grants > 0) {
          grants--;
          isMarked = true;
          return true;
        }
        if (released || hub.isOpen()) {
          isMarked = false;
          return false;
        }
      }
      // Not within this clock's own lock, as the hub takes both the other way round.
      hub.handOut();
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E asItIs(Throwable thrown) throws E {
    throw (E) thrown;
  }
}
