package org.apache.spark.kafka010;

import java.util.HashMap;
import java.util.Map;
import scala.Option;
import scala.collection.JavaConverters;

/** Settings of a Kafka client, for brokers that ask for no login. */
public final class KafkaConfigUpdater {
    private final Map<String, Object> settings;

    @SuppressWarnings("deprecation")
    public KafkaConfigUpdater(
            String module, scala.collection.immutable.Map<String, Object> parameters) {
        settings = new HashMap<>(JavaConverters.mapAsJavaMap(parameters));
    }

    public KafkaConfigUpdater set(String key, Object value) {
        settings.put(key, value);
        return this;
    }

    public KafkaConfigUpdater setIfUnset(String key, Object value) {
        settings.putIfAbsent(key, value);
        return this;
    }

    public KafkaConfigUpdater setAuthenticationConfigIfNeeded() {
        return this;
    }

    public KafkaConfigUpdater setAuthenticationConfigIfNeeded(Option<?> cluster) {
        return this;
    }

    public Map<String, Object> build() {
        return settings;
    }
}
