package org.apache.spark.kafka010;

import java.util.Map;
import org.apache.spark.SparkConf;
import scala.Option;

/** No cluster has a token, and so none is ever out of date. */
public final class KafkaTokenUtil$ {
    public static final KafkaTokenUtil$ MODULE$ = new KafkaTokenUtil$();

    private KafkaTokenUtil$() {}

    public Option<Object> findMatchingTokenClusterConfig(SparkConf settings, String servers) {
        return Option.empty();
    }

    public boolean needTokenUpdate(Map<String, Object> settings, Option<Object> cluster) {
        return false;
    }
}
