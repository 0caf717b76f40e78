package headway.gate;

import java.util.HashMap;
import java.util.Map;
import java.util.function.IntPredicate;

/**
 * Who is let go next, decided ahead: waiting queries by their rank and the time from which on they
 * may go, and for each the ranks that it will have when it comes back from its turn. It holds until
 * some time, or until a query comes back of which it does not know, as one does from a second turn.
 * Whoever calls holds the hub's lock.
 */
public final class StandingOrder {
  private record Waiting(int rank, long dueMillis, String as, Running then) {}

  private record Running(
      boolean holdsTurn, int rank, long dueMillis, int closedRank, long closesAtMillis) {}

  private final Map<Integer, Waiting> waiting = new HashMap<>();
  private final Map<Integer, Running> running = new HashMap<>();
  private final long untilMillis;
  private int free;
  private boolean isUsedUp = false;

  /**
   * "free until", then for each waiting query "w number rank due" and for each running one "r
   * number", both followed by what it will be when it comes back: "holdsTurn rank due closedRank
   * closesAt", or by nothing where that is not known; between semicolons. Whoever has read a row of
   * the time closesAt or later comes back with a closed window.
   */
  public StandingOrder(String order) {
    String[] parts = order.split(";");
    String[] head = parts[0].split(" ");
    free = Integer.parseInt(head[0]);
    untilMillis = Long.parseLong(head[1]);
    for (int at = 1; at < parts.length; at++) {
      String[] one = parts[at].split(" ");
      int number = Integer.parseInt(one[1]);
      if (one[0].equals("w")) {
        int rank = Integer.parseInt(one[2]);
        waiting.put(number, new Waiting(rank, Long.parseLong(one[3]), "w:0", then(one, 4)));
      } else {
        running.put(number, then(one, 2));
      }
    }
  }

  private static Running then(String[] words, int from) {
    if (words.length == from) {
      return null;
    }
    return new Running(
        words[from].equals("1"),
        Integer.parseInt(words[from + 1]),
        Long.parseLong(words[from + 2]),
        Integer.parseInt(words[from + 3]),
        Long.parseLong(words[from + 4]));
  }

  /**
   * A query waits again from now on; without new rows until a target, for it has nothing to do. Turns
   * that have come free by it are there at once.
   */
  public void cameBack(
      int number, boolean hasRows, long newestMillis, long nowMillis, long targetMillis) {
    Running before = running.remove(number);
    if (before == null) {
      isUsedUp = true;
      return;
    }
    if (before.holdsTurn()) {
      free++;
    }
    if (newestMillis >= before.closesAtMillis()) {
      waiting.put(number, new Waiting(before.closedRank(), nowMillis, "c:" + nowMillis, null));
    } else {
      long readyMillis = hasRows ? nowMillis : targetMillis;
      long dueMillis = Math.max(before.dueMillis(), readyMillis);
      waiting.put(number, new Waiting(before.rank(), dueMillis, "r:" + readyMillis, null));
    }
  }

  /** It takes no part any longer; a turn that it held stays taken until the arbiter has decided. */
  public void forget(int number) {
    waiting.remove(number);
    running.remove(number);
  }

  /** Forgets those waiting that cannot be let go. */
  void keep(IntPredicate canGo) {
    waiting.keySet().removeIf(number -> !canGo.test(number));
  }

  /** Turns that are free. */
  public int free() {
    return free;
  }

  /** The number of the query to let go now; -1 if there is none. */
  public int first(long nowMillis) {
    if (isUsedUp || free <= 0 || nowMillis >= untilMillis) {
      return -1;
    }
    int first = -1;
    int rank = Integer.MAX_VALUE;
    for (Map.Entry<Integer, Waiting> one : waiting.entrySet()) {
      if (one.getValue().dueMillis() <= nowMillis && one.getValue().rank() < rank) {
        first = one.getKey();
        rank = one.getValue().rank();
      }
    }
    return first;
  }

  /** It runs, and comes back once where it was foreseen. */
  public void letGo(int number) {
    Waiting before = waiting.remove(number);
    if (before != null && before.then() != null) {
      running.put(number, before.then());
    }
    free--;
  }

  /** When a waiting query may go; 0 if it does not wait by this order. */
  long dueMillis(int number) {
    Waiting one = waiting.get(number);
    return one == null ? 0 : one.dueMillis();
  }

  /**
   * All that wait, "number:w:0" as they were when the order was given, or "number:r:ready" and
   * "number:c:ready" for those that came back since, the latter with a closed window.
   */
  public String waiting() {
    StringBuilder all = new StringBuilder();
    waiting.forEach(
        (number, one) ->
            all.append(all.isEmpty() ? "" : ",").append(number).append(':').append(one.as()));
    return all.toString();
  }
}
