package headway.clock;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Words by rank, drawn with probability proportional to rank^-exponent in constant time. */
final class Vocabulary {
  private record Key(int words, double exponent) {}

  // One per JVM: a table per task and batch would cost more than the rows of a small batch.
  private static final Map<Key, Vocabulary> KNOWN = new ConcurrentHashMap<>();
  private static final String CONSONANTS = "bdfgklmnprstvz";
  private static final String VOWELS = "aeiou";

  final int longest;
  private final byte[][] spelling;
  // Walker's alias table: a column is a word, kept with a probability, else its alias.
  private final double[] keep;
  private final int[] alias;

  static Vocabulary of(int words, double exponent) {
    return KNOWN.computeIfAbsent(
        new Key(words, exponent), key -> new Vocabulary(key.words(), key.exponent()));
  }

  private Vocabulary(int words, double exponent) {
    spelling = new byte[words][];
    int most = 0;
    for (int rank = 0; rank < words; rank++) {
      spelling[rank] = spell(rank).getBytes(StandardCharsets.US_ASCII);
      most = Math.max(most, spelling[rank].length);
    }
    longest = most;
    keep = new double[words];
    alias = new int[words];
    fillAliasTable(words, exponent);
  }

  private void fillAliasTable(int words, double exponent) {
    double total = 0;
    for (int rank = 0; rank < words; rank++) {
      keep[rank] = Math.pow(rank + 1, -exponent);
      total += keep[rank];
    }
    int[] small = new int[words];
    int[] large = new int[words];
    int numSmall = 0;
    int numLarge = 0;
    for (int rank = 0; rank < words; rank++) {
      keep[rank] *= words / total;
      alias[rank] = rank;
      if (keep[rank] < 1) {
        small[numSmall++] = rank;
      } else {
        large[numLarge++] = rank;
      }
    }
    while (numSmall > 0 && numLarge > 0) {
      int poor = small[--numSmall];
      int rich = large[numLarge - 1];
      alias[poor] = rich;
      keep[rich] -= 1 - keep[poor];
      if (keep[rich] < 1) {
        small[numSmall++] = large[--numLarge];
      }
    }
    // What is left over on either side is 1 up to rounding, and its own alias.
  }

  byte[] draw(long bits) {
    int column = (int) (((bits >>> 32) * keep.length) >>> 32);
    double fraction = (bits & 0xFFFFFFFFL) * 0x1p-32;
    return spelling[fraction < keep[column] ? column : alias[column]];
  }

  /** Rank 0 is "ba", rank 1 "be", ...: one syllable a digit, distinct and pronounceable. */
  private static String spell(int rank) {
    int base = CONSONANTS.length() * VOWELS.length();
    StringBuilder word = new StringBuilder();
    int rest = rank;
    do {
      int syllable = rest % base;
      word.append(CONSONANTS.charAt(syllable / VOWELS.length()));
      word.append(VOWELS.charAt(syllable % VOWELS.length()));
      rest = rest / base - 1;
    } while (rest >= 0);
    return word.toString();
  }
}
