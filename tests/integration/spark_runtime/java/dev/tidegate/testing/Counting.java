package dev.tidegate.testing;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.function.FlatMapGroupsWithStateFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.KeyValueGroupedDataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.GroupState;
import org.apache.spark.sql.streaming.GroupStateTimeout;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Queries that there are in Scala and Java alone: each counts the rows of each key, and tells the count. */
public final class Counting {
    private static final Encoder<Tuple2<Long, Long>> COUNTED = Encoders.tuple(Encoders.LONG(), Encoders.LONG());

    private Counting() {}

    /** Counts in a group's state. */
    public static Dataset<Row> flatMapGroupsWithState(Dataset<Row> rows) {
        FlatMapGroupsWithStateFunction<Long, Row, Long, Tuple2<Long, Long>> count = Counting::count;
        return byKey(rows)
                .flatMapGroupsWithState(
                        count, OutputMode.Update(), Encoders.LONG(), COUNTED, GroupStateTimeout.NoTimeout())
                .toDF("key", "n");
    }

    /** Counts in the variables of a processor. */
    public static Dataset<Row> transformWithState(Dataset<Row> rows) {
        return byKey(rows)
                .transformWithState(new Counter(), TimeMode.None(), OutputMode.Update(), COUNTED)
                .toDF("key", "n");
    }

    private static KeyValueGroupedDataset<Long, Row> byKey(Dataset<Row> rows) {
        MapFunction<Row, Long> key = row -> row.getAs("key");
        return rows.groupByKey(key, Encoders.LONG());
    }

    private static Iterator<Tuple2<Long, Long>> count(Long key, Iterator<Row> rows, GroupState<Long> state) {
        long n = state.exists() ? state.get() : 0;
        for (; rows.hasNext(); rows.next()) {
            n++;
        }
        state.update(n);
        return List.of(new Tuple2<>(key, n)).iterator();
    }

    private static final class Counter extends StatefulProcessor<Long, Row, Tuple2<Long, Long>> {
        private static final long serialVersionUID = 1L;

        private transient ValueState<Long> total;
        private transient MapState<Long, Long> byRest;

        @Override
        public void init(OutputMode outputMode, TimeMode timeMode) {
            total = getHandle().getValueState("total", Encoders.LONG(), TTLConfig.NONE());
            byRest = getHandle().getMapState("by rest", Encoders.LONG(), Encoders.LONG(), TTLConfig.NONE());
        }

        @Override
        public scala.collection.Iterator<Tuple2<Long, Long>> handleInputRows(
                Long key, scala.collection.Iterator<Row> rows, TimerValues timerValues) {
            long n = total.exists() ? total.get() : 0;
            List<Tuple2<Long, Long>> counted = new ArrayList<>();
            while (rows.hasNext()) {
                long rest = rows.next().<Long>getAs("value") % 3;
                long of = byRest.containsKey(rest) ? byRest.getValue(rest) : 0;
                byRest.updateValue(rest, of + 1);
                counted.add(new Tuple2<>(key, 1000 * rest + of + 1));
                n++;
            }
            total.update(n);
            counted.add(new Tuple2<>(key, n));
            return CollectionConverters.asScala(counted.iterator());
        }
    }
}
