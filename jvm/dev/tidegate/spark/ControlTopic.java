package dev.tidegate.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A topic of control messages, for the driver's Python: few calls, each with all that a poll brought. Where to read from
 * is said by the caller, and written down by it; nothing is committed to the broker. For one thread at a time.
 */
public final class ControlTopic implements AutoCloseable {
    private static final int MOST_RECORDS = 500;
    private static final String FETCH_BYTES = String.valueOf(4 << 20);
    private static final String REQUEST_MILLIS = "10000";
    private static final String BLOCK_MILLIS = "5000";
    private static final String DELIVERY_MILLIS = "20000";
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final Duration LAST_PATIENCE = Duration.ofSeconds(2);

    private final Map<String, Object> settings;
    private final String topic;
    private final int largest;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final SentRecords sent = new SentRecords();
    private KafkaProducer<byte[], byte[]> producer;
    private Admin admin;

    /**
     * @param clients settings of Kafka's clients: servers, security
     * @param topic to read
     * @param largest bytes of a value; of larger ones the size alone is returned
     */
    public ControlTopic(Map<String, String> clients, String topic, int largest) {
        this.topic = topic;
        this.largest = largest;
        this.settings = new HashMap<>(clients);
        settings.put("request.timeout.ms", REQUEST_MILLIS);
        settings.put("default.api.timeout.ms", REQUEST_MILLIS);
        settings.put("reconnect.backoff.max.ms", "10000");
        Map<String, Object> reading = new HashMap<>(settings);
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "none");
        reading.put("allow.auto.create.topics", "false");
        reading.put("isolation.level", "read_committed");
        reading.put("max.poll.records", String.valueOf(MOST_RECORDS));
        reading.put("fetch.max.bytes", FETCH_BYTES);
        reading.put("metadata.max.age.ms", "60000");
        this.consumer = new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Return what this topic has and no other of its name, before or after it; empty if the broker is too old. */
    public String identity() throws ExecutionException, InterruptedException, TimeoutException {
        if (admin == null) {
            admin = Admin.create(settings);
        }
        Uuid id = admin.describeTopics(List.of(topic))
                .allTopicNames()
                .get(PATIENCE.toSeconds(), TimeUnit.SECONDS)
                .get(topic)
                .topicId();
        return id == null || Uuid.ZERO_UUID.equals(id) ? "" : id.toString();
    }

    /** Ask the broker what there is to read; return "partition:first:end" for each partition, with blanks between. */
    public String bounds() {
        List<PartitionInfo> known = consumer.partitionsFor(topic, PATIENCE);
        if (known == null || known.isEmpty()) {
            throw new UnknownTopicOrPartitionException("there is no topic " + topic);
        }
        List<TopicPartition> partitions = new ArrayList<>();
        for (PartitionInfo each : known) {
            partitions.add(new TopicPartition(topic, each.partition()));
        }
        Map<TopicPartition, Long> first = consumer.beginningOffsets(partitions, PATIENCE);
        Map<TopicPartition, Long> end = consumer.endOffsets(partitions, PATIENCE);
        Map<Integer, String> bounds = new TreeMap<>();
        for (TopicPartition each : partitions) {
            bounds.put(each.partition(), each.partition() + ":" + first.get(each) + ":" + end.get(each));
        }
        return String.join(" ", bounds.values());
    }

    /** Read on from here: "partition:offset" for each partition that is to be read, with blanks between. */
    public void assign(String positions) {
        Map<TopicPartition, Long> wanted = new HashMap<>();
        for (String each : positions.split(" ")) {
            String[] parts = each.split(":");
            wanted.put(new TopicPartition(topic, Integer.parseInt(parts[0])), Long.parseLong(parts[1]));
        }
        consumer.assign(wanted.keySet());
        wanted.forEach(consumer::seek);
    }

    /**
     * Return where the client reads on, as {@link #assign} takes it. What nobody can read is behind it, such as the ends
     * of transactions, once a poll has come past it.
     */
    public String positions() {
        Map<Integer, String> positions = new TreeMap<>();
        for (TopicPartition each : consumer.assignment()) {
            positions.put(each.partition(), each.partition() + ":" + consumer.position(each, PATIENCE));
        }
        return String.join(" ", positions.values());
    }

    /**
     * Return the records that come next, at once if there are some: how many, and of each its partition, its offset, the
     * size of its value if that is left out for it, its content type and its value, both after their lengths.
     */
    public byte[] poll(long millis) throws IOException {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(millis));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(records.count());
            for (ConsumerRecord<byte[], byte[]> each : records) {
                byte[] value = each.value() == null ? new byte[0] : each.value();
                boolean tooLarge = value.length > largest;
                out.writeInt(each.partition());
                out.writeLong(each.offset());
                out.writeInt(tooLarge ? value.length : 0);
                write(out, contentType(each));
                write(out, tooLarge ? new byte[0] : value);
            }
        }
        return bytes.toByteArray();
    }

    /** Begin to write to another topic; {@link #flush} says whether it got there, unless it is known at once. */
    public void send(String to, String key, byte[] value) throws ExecutionException, InterruptedException {
        if (producer == null) {
            Map<String, Object> writing = new HashMap<>(settings);
            writing.put("acks", "all");
            writing.put("enable.idempotence", "true");
            writing.put("max.block.ms", BLOCK_MILLIS);
            writing.put("delivery.timeout.ms", DELIVERY_MILLIS);
            // Each record by itself: of several that are too large together for their topic the client makes the same
            // batch over and over, if that is smaller than its own limit (KAFKA-8350), and says nothing of use.
            writing.put("batch.size", "0");
            producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
        }
        ProducerRecord<byte[], byte[]> message =
                new ProducerRecord<>(to, key.isEmpty() ? null : key.getBytes(StandardCharsets.UTF_8), value);
        message.headers().add("content-type", "application/cloudevents+json".getBytes(StandardCharsets.UTF_8));
        sent.add(producer.send(message));
    }

    /** Wait until the broker has all that was sent, and fail if it does not take one of them. */
    public void flush() throws ExecutionException, InterruptedException {
        sent.flush();
    }

    @Override
    public void close() {
        try {
            if (producer != null) {
                producer.close(LAST_PATIENCE);
            }
        } finally {
            try {
                if (admin != null) {
                    admin.close(LAST_PATIENCE);
                }
            } finally {
                consumer.close(LAST_PATIENCE);
            }
        }
    }

    private static byte[] contentType(ConsumerRecord<byte[], byte[]> message) {
        Header found = message.headers().lastHeader("content-type");
        return found == null || found.value() == null || found.value().length > 200 ? new byte[0] : found.value();
    }

    private static void write(DataOutputStream out, byte[] content) throws IOException {
        out.writeInt(content.length);
        out.write(content);
    }
}
