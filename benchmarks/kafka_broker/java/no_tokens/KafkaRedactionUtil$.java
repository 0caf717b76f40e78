package org.apache.spark.kafka010;

import scala.Tuple2;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** What may be logged of a client's settings: nothing. */
public final class KafkaRedactionUtil$ {
    public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

    private KafkaRedactionUtil$() {}

    @SuppressWarnings("unchecked")
    public Seq<Tuple2<String, String>> redactParams(Seq<Tuple2<String, Object>> parameters) {
        return (Seq<Tuple2<String, String>>) (Seq<?>) Nil$.MODULE$;
    }
}
