package headway.gate;

import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.Iterator;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/**
 * Where queries say that they are idle, and where all of them learn that the gate is open. Queries go
 * by numbers, as their names may hold anything. Between two decisions of the arbiter it hands out
 * turns by the order that the arbiter has left here: whoever brings a turn back passes it on.
 */
public final class GateHub {
  private static final String MARK = "headway.gate.triggerMillis";
  private static final String POOL = "spark.scheduler.pool";
  private static final long INTERRUPTED_WITHIN_MILLIS = 5000;
  private static final long LOOK_EVERY_MILLIS = 100;
  private static final long LOOK_EVERY_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  /** A line for the arbiter; since when somebody waits for its decision, 0 if nobody does. */
  private record Event(FutureTask<String> line, long waitsSinceNanos) {
    String text() throws InterruptedException {
      line.run();
      try {
        return line.get();
      } catch (ExecutionException failed) {
        throw new IllegalStateException(failed.getCause());
      }
    }
  }

  private static final class Member {
    final StreamingQuery query;
    final GateClock clock;
    String seen = "";

    Member(StreamingQuery query, GateClock clock) {
      this.query = query;
      this.clock = clock;
    }
  }

  private final LinkedBlockingQueue<Event> events = new LinkedBlockingQueue<>();
  private final Map<Integer, Member> members = new ConcurrentHashMap<>();
  private final Object turns = new Object();
  private final long heartbeatWithinNanos;
  private final SparkContext context;
  private volatile long heartbeatNanos = System.nanoTime();
  private volatile boolean opened = false;
  private StandingOrder standing = null;
  private long lookedNanos = System.nanoTime();
  private long waitsSinceNanos = 0;
  private boolean hasStood = false;
  private boolean wasRefused = false;

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
    synchronized (turns) {
      members.remove(number);
      if (standing != null) {
        standing.forget(number);
      }
    }
  }

  /**
   * A query is idle until a time; "idle TAB number TAB target TAB now TAB progress". Its own thread
   * passes its turn on and then writes the progress, so that whoever decides asks nobody.
   */
  public void post(int number, long targetMillis) {
    long atNanos = System.nanoTime();
    Member member = members.get(number);
    StreamingQueryProgress last = lastOf(member);
    boolean hasRows = hasRows(member, last);
    long newestMillis = newestMillis(last);
    FutureTask<String> line;
    synchronized (turns) {
      long now = System.currentTimeMillis();
      String start = "idle\t" + number + "\t" + targetMillis + "\t" + now + "\t";
      line = new FutureTask<>(() -> start + textOf(last));
      if (isOpen()) {
        standing = null;
      }
      if (standing != null) {
        standing.cameBack(number, hasRows, newestMillis, now, targetMillis);
      }
      String went = handOut(atNanos, now);
      // In the order in which it happened: who is let go was idle before.
      events.add(new Event(line, went == null ? atNanos : 0));
      tell(went, 0);
    }
    line.run();
  }

  private void tell(String line, long waitsSinceNanos) {
    if (line != null) {
      events.add(new Event(new FutureTask<>(() -> line), waitsSinceNanos));
    }
  }

  private static StreamingQueryProgress lastOf(Member member) {
    try {
      return member == null ? null : member.query.lastProgress();
    } catch (RuntimeException unreadable) {
      // Less is known of the query; it does not fail for that.
      return null;
    }
  }

  private static String textOf(StreamingQueryProgress last) {
    try {
      return last == null ? "" : last.json();
    } catch (RuntimeException unreadable) {
      return "";
    }
  }

  /** Whether it has run a batch with rows since it was asked the last time. */
  private static boolean hasRows(Member member, StreamingQueryProgress last) {
    if (member == null || last == null) {
      return false;
    }
    String batch = last.batchId() + " " + last.timestamp();
    boolean isNew = !Objects.equals(member.seen, batch);
    member.seen = batch;
    return isNew && last.numInputRows() > 0;
  }

  private static long newestMillis(StreamingQueryProgress last) {
    String newest = last == null ? null : last.eventTime().get("max");
    try {
      return newest == null ? Long.MIN_VALUE : Instant.parse(newest).toEpochMilli();
    } catch (DateTimeParseException unreadable) {
      return Long.MIN_VALUE;
    }
  }

  /**
   * Passes free turns on by the order that was left here; what was done, "go TAB microseconds since
   * TAB now TAB turns that were free TAB numbers that went TAB all that waited", or null.
   */
  private String handOut(long sinceNanos, long now) {
    if (standing == null || isOpen() || standing.first(now) < 0) {
      return null;
    }
    standing.keep(
        number -> {
          Member one = members.get(number);
          return one != null && one.clock != null && one.query.isActive();
        });
    int free = standing.free();
    String waiting = standing.waiting();
    StringBuilder went = new StringBuilder();
    for (int number; (number = standing.first(now)) >= 0; ) {
      standing.letGo(number);
      Member one = members.get(number);
      if (one != null) {
        one.clock.grant(1);
      }
      went.append(went.isEmpty() ? "" : ",").append(number);
    }
    if (went.isEmpty()) {
      return null;
    }
    long micros = sinceNanos == 0 ? 0 : microsSince(sinceNanos);
    return "go\t" + micros + "\t" + now + "\t" + free + "\t" + went + "\t" + waiting;
  }

  /** Passes turns on to those that have become due meanwhile. */
  void handOut() {
    synchronized (turns) {
      tell(handOut(0, System.currentTimeMillis()), 0);
    }
  }

  /** How long a waiting query may sleep until it asks whether it is due. */
  long lookAgainMillis(int number) {
    synchronized (turns) {
      long left = standing == null ? 0 : standing.dueMillis(number) - System.currentTimeMillis();
      return left > 0 ? Math.min(left, LOOK_EVERY_MILLIS) : LOOK_EVERY_MILLIS;
    }
  }

  /** What a query did in its turn is done; said by one that waits within its batches. */
  public void over(int number) {
    synchronized (turns) {
      tell("over\t" + number, System.nanoTime());
    }
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

  /** Jobs that this thread starts from now on belong to a pool of the fair scheduler. */
  void put(String pool) {
    if (pool != null) {
      context.setLocalProperty(POOL, pool);
    }
  }

  /**
   * All that has happened, a line each; waits for the first of them. Queries that have ended are
   * among it, "ended TAB number". Says that the arbiter lives.
   */
  public String next(long waitMillis) throws InterruptedException {
    heartbeat();
    Event first = events.poll(waitMillis, TimeUnit.MILLISECONDS);
    heartbeat();
    waitsSinceNanos = wasRefused ? waitsSinceNanos : 0;
    wasRefused = false;
    StringBuilder all = new StringBuilder();
    for (Event next = first; next != null; next = events.poll()) {
      if (waitsSinceNanos == 0) {
        waitsSinceNanos = next.waitsSinceNanos();
      }
      all.append(next.text()).append('\n');
    }
    if (System.nanoTime() - lookedNanos > LOOK_EVERY_NANOS) {
      lookedNanos = System.nanoTime();
      for (Iterator<Map.Entry<Integer, Member>> rest = members.entrySet().iterator();
          rest.hasNext(); ) {
        Map.Entry<Integer, Member> one = rest.next();
        if (!one.getValue().query.isActive()) {
          all.append("ended\t").append(one.getKey()).append('\n');
          rest.remove();
        }
      }
    }
    return all.toString();
  }

  /**
   * One batch of each may start; numbers between commas. Microseconds since the first event that
   * waits for a decision; 0 if none did. Refused, -1, where turns have been handed out or brought
   * back since the arbiter looked: it decides again.
   */
  public long grant(String numbers) {
    synchronized (turns) {
      if (hasStood && !events.isEmpty()) {
        wasRefused = true;
        return -1;
      }
      standing = null;
      for (String number : numbers.split(",")) {
        Member member = members.get(Integer.valueOf(number));
        if (member != null && member.clock != null) {
          member.clock.grant(1);
        }
      }
      return waitsSinceNanos == 0 ? 0 : microsSince(waitsSinceNanos);
    }
  }

  private static long microsSince(long nanos) {
    return Math.max(TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - nanos), 1);
  }

  /**
   * The order by which turns are handed out from now on, or none; refused where something happened
   * since the arbiter looked.
   */
  public boolean stand(String order) {
    synchronized (turns) {
      if (!events.isEmpty() || isOpen()) {
        return false;
      }
      standing = order == null ? null : new StandingOrder(order);
      hasStood = true;
      return true;
    }
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
