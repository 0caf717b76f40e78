import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Makes topics and fills them at constant rates, one order per line of standard input, one answer
 * per line of standard output; ends with its input.
 *
 * <pre>
 * topic NAME PARTITIONS CreateTime|LogAppendTime
 * start NAME PARTITIONS ROWS_PER_SECOND SHARE_OF_FIRST_PARTITION
 * stop NAME
 * </pre>
 */
public final class LoadProcess {
    private static final int WORDS = 1000;
    private static final int WORDS_PER_ROW = 4;
    private static final int TEXTS = 8192;
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long TOPIC_WITHIN_SECONDS = 60;

    private final Admin admin;
    private final Producer<byte[], byte[]> producer;
    private final byte[][] texts = texts();
    private final Map<String, Flow> flows = new HashMap<>();

    private LoadProcess(String servers) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        admin = Admin.create(settings);
        settings.put("acks", "1");
        settings.put("linger.ms", "1");
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        producer = new KafkaProducer<>(settings);
    }

    /** Takes host:port of the broker. */
    public static void main(String[] arguments) throws IOException {
        LoadProcess load = new LoadProcess(arguments[0]);
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            System.out.println(load.answer(order.trim().split(" ")));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private String answer(String[] order) {
        try {
            switch (order[0]) {
                case "topic":
                    return makeTopic(order[1], Integer.parseInt(order[2]), order[3]);
                case "start":
                    return start(
                            order[1],
                            Integer.parseInt(order[2]),
                            Double.parseDouble(order[3]),
                            Double.parseDouble(order[4]));
                case "stop":
                    return stop(order[1]);
                default:
                    return "error: no such order: " + order[0];
            }
        } catch (Exception problem) {
            return "error: " + String.valueOf(problem).replace('\n', ' ');
        }
    }

    private String makeTopic(String name, int partitions, String timestamps) throws Exception {
        NewTopic topic = new NewTopic(name, partitions, (short) 1);
        topic.configs(Map.of("message.timestamp.type", timestamps));
        admin.createTopics(List.of(topic)).all().get(TOPIC_WITHIN_SECONDS, TimeUnit.SECONDS);
        // The producer's first look at a topic may miss it.
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TOPIC_WITHIN_SECONDS);
        while (producer.partitionsFor(name).size() != partitions) {
            if (System.nanoTime() > deadline) {
                return "error: topic " + name + " does not get its partitions";
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
        }
        return "ok";
    }

    private String start(String name, int partitions, double rowsPerSecond, double firstShare) {
        Flow flow = new Flow(name, partitionsInTurn(partitions, firstShare), rowsPerSecond);
        flows.put(name, flow);
        flow.thread.start();
        return "ok";
    }

    private String stop(String name) throws InterruptedException {
        Flow flow = flows.remove(name);
        if (flow == null) {
            return "error: nothing flows to " + name;
        }
        flow.stopping = true;
        flow.thread.join();
        producer.flush();
        return "ok " + flow.sent + " " + flow.latestMillis;
    }

    /** A thousand rows' partitions in a fixed mixed order, in which the shares are exact. */
    private static int[] partitionsInTurn(int partitions, double firstShare) {
        double[] share = new double[partitions];
        for (int partition = 0; partition < partitions; partition++) {
            share[partition] = partition == 0 ? firstShare : (1 - firstShare) / (partitions - 1);
        }
        double[] owed = new double[partitions];
        int[] turns = new int[1000];
        for (int turn = 0; turn < turns.length; turn++) {
            int most = 0;
            for (int partition = 0; partition < partitions; partition++) {
                owed[partition] += share[partition];
                most = owed[partition] > owed[most] ? partition : most;
            }
            owed[most] -= 1;
            turns[turn] = most;
        }
        return turns;
    }

    private static byte[][] texts() {
        Random random = new Random(1);
        byte[][] texts = new byte[TEXTS][];
        for (int row = 0; row < TEXTS; row++) {
            StringBuilder text = new StringBuilder();
            for (int word = 0; word < WORDS_PER_ROW; word++) {
                text.append(word == 0 ? "" : " ").append("word").append(random.nextInt(WORDS));
            }
            texts[row] = text.toString().getBytes(StandardCharsets.UTF_8);
        }
        return texts;
    }

    /** Rows that go to one topic, each stamped with the wall clock when it is sent. */
    private final class Flow implements Runnable {
        private final String topic;
        private final int[] partitions;
        private final double rowsPerSecond;
        private final Thread thread = new Thread(this, "flow");
        private volatile boolean stopping;
        private volatile long sent;
        private volatile long latestMillis; // the most that a row was sent behind its time

        Flow(String topic, int[] partitions, double rowsPerSecond) {
            this.topic = topic;
            this.partitions = partitions;
            this.rowsPerSecond = rowsPerSecond;
        }

        @Override
        public void run() {
            long began = System.nanoTime();
            long number = 0;
            while (!stopping) {
                double elapsed = (System.nanoTime() - began) * 1e-9;
                long due = (long) (elapsed * rowsPerSecond);
                if (due > number) {
                    long late = (long) ((elapsed - number / rowsPerSecond) * 1e3);
                    latestMillis = Math.max(latestMillis, late);
                }
                for (; number < due; number++) {
                    int partition = partitions[(int) (number % partitions.length)];
                    byte[] text = texts[(int) (number % TEXTS)];
                    long now = System.currentTimeMillis();
                    producer.send(new ProducerRecord<>(topic, partition, now, null, text));
                }
                sent = number;
                LockSupport.parkNanos(STEP_NANOS);
            }
        }
    }
}
