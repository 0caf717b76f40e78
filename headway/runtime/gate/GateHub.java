package headway.gate;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;

/** Where queries say that they are idle, and where all of them learn that the gate is open. */
public final class GateHub {
  private static final String MARK = "headway.gate.triggerMillis";

  private final LinkedBlockingQueue<String> idle = new LinkedBlockingQueue<>();
  private final long heartbeatWithinNanos;
  private final SparkContext context;
  private volatile long heartbeatNanos = System.nanoTime();
  private volatile boolean opened = false;

  public GateHub(long heartbeatWithinMillis, SparkContext context) {
    this.context = context;
    heartbeatWithinNanos = TimeUnit.MILLISECONDS.toNanos(heartbeatWithinMillis);
  }

  /** A query is idle until a time; "name TAB target TAB now". */
  void post(String name, long targetMillis) {
    idle.add(name + "\t" + targetMillis + "\t" + System.currentTimeMillis());
  }

  /**
   * Says in the event log, with each job that this thread starts from now on, which trigger it would
   * go by if it were not for the gate; null where it goes by it.
   */
  void mark(Long triggerMillis) {
    context.setLocalProperty(MARK, triggerMillis == null ? null : triggerMillis.toString());
  }

  /** All that became idle, a line each; waits for the first of them. Says that the arbiter lives. */
  public String nextIdle(long waitMillis) throws InterruptedException {
    heartbeat();
    String first = idle.poll(waitMillis, TimeUnit.MILLISECONDS);
    heartbeat();
    if (first == null) {
      return "";
    }
    StringBuilder all = new StringBuilder(first);
    for (String next = idle.poll(); next != null; next = idle.poll()) {
      all.append('\n').append(next);
    }
    return all.toString();
  }

  public void heartbeat() {
    heartbeatNanos = System.nanoTime();
  }

  /** From now on Spark's own triggers are in force. */
  public void open() {
    opened = true;
  }

  /** Whether it was opened for good. */
  boolean isOpened() {
    return opened;
  }

  /** Asked for, or because the arbiter gave no sign of life: a dead one holds no query. */
  public boolean isOpen() {
    return opened || System.nanoTime() - heartbeatNanos > heartbeatWithinNanos;
  }
}
