import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.history.EventLogFileReader;
import org.apache.spark.scheduler.ReplayListenerBus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.AppStatusListener;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.util.kvstore.InMemoryStore;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads event logs, one file for each application, as Spark's History Server does to show them: its
 * reader of events, and its listeners with a store in memory. Tools on the JVM use the same reader.
 */
public final class ReplayLogs {
  private ReplayLogs() {}

  /** Reads the named files, as many at once as there are cores. */
  public static void main(String[] files) throws Exception {
    ExecutorService readers =
        Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
    List<Future<Long>> counts = new ArrayList<>();
    for (String file : files) {
      counts.add(readers.submit(() -> numTasks(file)));
    }
    long numTasks = 0;
    for (Future<Long> count : counts) {
      numTasks += count.get();
    }
    readers.shutdown();
    if (numTasks == 0) {
      throw new IllegalStateException("no task was read");
    }
    System.out.println(numTasks);
  }

  private static long numTasks(String file) throws Exception {
    SparkConf conf = new SparkConf(false).set("spark.appStateStore.asyncTracking.enable", "false");
    InMemoryStore store = new InMemoryStore();
    ElementTrackingStore tracking = new ElementTrackingStore(store, conf);
    ReplayListenerBus bus = new ReplayListenerBus();
    bus.addListener(new AppStatusListener(tracking, conf, false, Option.empty(), Option.empty()));
    for (AppHistoryServerPlugin plugin : ServiceLoader.load(AppHistoryServerPlugin.class)) {
      for (SparkListener listener :
          CollectionConverters.asJava(plugin.createListeners(conf, tracking))) {
        bus.addListener(listener);
      }
    }
    Path path = new Path(file);
    try (InputStream events =
        EventLogFileReader.openEventLog(path, FileSystem.getLocal(new Configuration()))) {
      bus.replay(events, file, true, ReplayListenerBus.SELECT_ALL_FILTER());
    }
    long numTasks = store.count(Class.forName("org.apache.spark.status.TaskDataWrapper"));
    tracking.close(false);
    return numTasks;
  }
}
