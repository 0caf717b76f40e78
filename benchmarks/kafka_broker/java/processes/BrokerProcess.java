import java.io.IOException;

/** A Kafka server that lives as long as whoever started it: it ends with its standard input. */
public final class BrokerProcess {
    private BrokerProcess() {}

    /** Takes the path of a server's properties. */
    public static void main(String[] arguments) {
        Thread watch = new Thread(BrokerProcess::endWithInput, "end-with-input");
        watch.setDaemon(true);
        watch.start();
        kafka.Kafka.main(arguments);
    }

    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) {
                // Only the end counts.
            }
        } catch (IOException gone) {
            // As good as the end.
        }
        // Nothing in the scratch folder is worth an orderly shutdown, which takes seconds.
        Runtime.getRuntime().halt(0);
    }
}
