package headway.metrics;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.metrics.source.Source;

/**
 * Headway's metrics as a source of Spark's, so that every sink that is configured reports them. A
 * sink reads what was put here last and asks nobody, whatever the Python process does meanwhile.
 */
public final class LiveSource implements Source {
  private final MetricRegistry registry = new MetricRegistry();
  private final Map<String, Double> values = new ConcurrentHashMap<>();
  private SparkEnv environment = null;

  @Override
  public String sourceName() {
    return "headway";
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }

  /** Sinks see it from now on. */
  public synchronized void register() {
    environment = SparkEnv.get();
    environment.metricsSystem().registerSource(this);
  }

  /** They no longer do; may be repeated. */
  public synchronized void remove() {
    if (environment != null) {
      environment.metricsSystem().removeSource(this);
      environment = null;
    }
  }

  /** All values there are now, "name TAB value" a line; what is not among them is gone. */
  public synchronized void put(String lines) {
    Set<String> names = new HashSet<>();
    for (String line : lines.split("\n")) {
      int tab = line.indexOf('\t');
      if (tab > 0) {
        String name = line.substring(0, tab);
        names.add(name);
        if (values.put(name, Double.valueOf(line.substring(tab + 1))) == null) {
          registry.register(name, (Gauge<Double>) () -> values.get(name));
        }
      }
    }
    for (String name : Set.copyOf(values.keySet())) {
      if (!names.contains(name)) {
        registry.remove(name);
        values.remove(name);
      }
    }
  }
}
