package headway.gate;

import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/**
 * Where queries say that they are idle, and where all of them learn that the gate is open. Queries go
 * by numbers, as their names may hold anything.
 */
public final class GateHub {
  private static final String MARK = "headway.gate.triggerMillis";
  private static final long INTERRUPTED_WITHIN_MILLIS = 5000;
  private static final long LOOK_EVERY_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  private record Event(String line, long atNanos) {}

  private record Member(StreamingQuery query, GateClock clock) {}

  private final LinkedBlockingQueue<Event> events = new LinkedBlockingQueue<>();
  private final Map<Integer, Member> members = new ConcurrentHashMap<>();
  private final long heartbeatWithinNanos;
  private final SparkContext context;
  private volatile long heartbeatNanos = System.nanoTime();
  private volatile boolean opened = false;
  private long lookedNanos = System.nanoTime();
  private long firstEventNanos = 0;

  public GateHub(long heartbeatWithinMillis, SparkContext context) {
    this.context = context;
    heartbeatWithinNanos = TimeUnit.MILLISECONDS.toNanos(heartbeatWithinMillis);
  }

  /** A query takes part that waits within its batches. */
  public void join(int number, StreamingQuery query) {
    join(number, query, null);
  }

  void join(int number, StreamingQuery query, GateClock clock) {
    members.put(number, new Member(query, clock));
  }

  /** It no longer does. */
  public void leave(int number) {
    members.remove(number);
  }

  /**
   * A query is idle until a time; "idle TAB number TAB target TAB now TAB progress". Its own thread
   * writes the progress, so that whoever decides asks nobody.
   */
  public void post(int number, long targetMillis) {
    long atNanos = System.nanoTime();
    long now = System.currentTimeMillis();
    Member member = members.get(number);
    String line = "idle\t" + number + "\t" + targetMillis + "\t" + now + "\t" + progressOf(member);
    events.add(new Event(line, atNanos));
  }

  private static String progressOf(Member member) {
    try {
      StreamingQueryProgress last = member == null ? null : member.query().lastProgress();
      return last == null ? "" : last.json();
    } catch (RuntimeException unreadable) {
      // Less is known of the query; it does not fail for that.
      return "";
    }
  }

  /** What a query did in its turn is done; said by one that waits within its batches. */
  public void over(int number) {
    events.add(new Event("over\t" + number, System.nanoTime()));
  }

  /** Ends the batch of a query that is being stopped as Spark ends it: by an interrupt. */
  public void awaitInterrupt() throws InterruptedException {
    Thread.sleep(INTERRUPTED_WITHIN_MILLIS);
  }

  /**
   * Says in the event log, with each job that this thread starts from now on, which trigger it would
   * go by if it were not for the gate; null where it goes by it.
   */
  void mark(Long triggerMillis) {
    context.setLocalProperty(MARK, triggerMillis == null ? null : triggerMillis.toString());
  }

  /**
   * All that has happened, a line each; waits for the first of them. Queries that have ended are
   * among it, "ended TAB number". Says that the arbiter lives.
   */
  public String next(long waitMillis) throws InterruptedException {
    heartbeat();
    Event first = events.poll(waitMillis, TimeUnit.MILLISECONDS);
    heartbeat();
    firstEventNanos = first == null ? 0 : first.atNanos();
    StringBuilder all = new StringBuilder();
    for (Event next = first; next != null; next = events.poll()) {
      all.append(next.line()).append('\n');
    }
    if (System.nanoTime() - lookedNanos > LOOK_EVERY_NANOS) {
      lookedNanos = System.nanoTime();
      for (Iterator<Map.Entry<Integer, Member>> rest = members.entrySet().iterator();
          rest.hasNext(); ) {
        Map.Entry<Integer, Member> one = rest.next();
        if (!one.getValue().query().isActive()) {
          all.append("ended\t").append(one.getKey()).append('\n');
          rest.remove();
        }
      }
    }
    return all.toString();
  }

  /**
   * One batch of each may start; numbers between commas. Microseconds since the first event that the
   * arbiter took last time happened; 0 if there was none.
   */
  public long grant(String numbers) {
    for (String number : numbers.split(",")) {
      Member member = members.get(Integer.valueOf(number));
      if (member != null && member.clock() != null) {
        member.clock().grant(1);
      }
    }
    long sinceNanos = System.nanoTime() - firstEventNanos;
    return firstEventNanos == 0 ? 0 : Math.max(TimeUnit.NANOSECONDS.toMicros(sinceNanos), 1);
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
