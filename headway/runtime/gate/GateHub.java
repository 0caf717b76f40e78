package headway.gate;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Where queries say that they are idle, and where all of them learn that the gate is open. */
public final class GateHub {
  private final LinkedBlockingQueue<String> idle = new LinkedBlockingQueue<>();
  private final long heartbeatWithinNanos;
  private volatile long heartbeatNanos = System.nanoTime();
  private volatile boolean opened = false;

  public GateHub(long heartbeatWithinMillis) {
    heartbeatWithinNanos = TimeUnit.MILLISECONDS.toNanos(heartbeatWithinMillis);
  }

  /** A query is idle until a time; "name TAB target TAB now". */
  void post(String name, long targetMillis) {
    idle.add(name + "\t" + targetMillis + "\t" + System.currentTimeMillis());
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

  /** Asked for, or because the arbiter gave no sign of life: a dead one holds no query. */
  public boolean isOpen() {
    return opened || System.nanoTime() - heartbeatNanos > heartbeatWithinNanos;
  }
}
