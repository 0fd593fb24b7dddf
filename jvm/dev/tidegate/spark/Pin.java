package dev.tidegate.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Whether state that Spark does not need any more is to stay, because a snapshot of it is being taken.
 *
 * <p>An object beside the lineage says so, for ten minutes after it was last put: whoever put it may have been killed.
 * Both times are the store's: this machine's clock may be far from it, and state of a pinned batch would be deleted. The
 * store's clock is read from an object that is written for that, at most once in ten minutes and only while there is a
 * pin; in between, what has passed is measured.
 * Only files of state stores stay. Spark finds those by listing, so that it deletes them the next time; of its logs it
 * remembers what it deleted.
 */
final class Pin {
    /** Where the object is that pins {@code <lineage>}: at {@code <lineage>.pin}. */
    private static final String SETTING = "tidegate.checkpoint.pin";

    private static final String SUFFIX = ".pin";
    private static final String CLOCK = ".clock";
    private static final long LASTS_MILLIS = 600_000;
    private static final long LOOK_AGAIN_NANOS = 1_000_000_000;
    private static final long NANOS_IN_MILLI = 1_000_000;
    private static final Pattern STORE = Pattern.compile("/[^/]+/state/\\d+/\\d+/.+");
    private static final ConcurrentMap<String, Pin> PINS = new ConcurrentHashMap<>();

    private final Path object;
    private final String lineage;
    private final Path clock;
    private boolean measured;
    private long storeMillis;
    private long measuredAt;
    private boolean looked;
    private boolean held;
    private long lookedAt;

    private Pin(String place) {
        object = new Path(place);
        lineage = place.substring(0, place.length() - SUFFIX.length());
        clock = new Path(lineage + CLOCK);
    }

    /** Returns the process's one for what {@code conf} names, null if it names none. */
    static Pin of(Configuration conf) {
        String place = conf.get(SETTING, "");
        return place.endsWith(SUFFIX) ? PINS.computeIfAbsent(place, Pin::new) : null;
    }

    /** Returns whether {@code path} is not to be deleted now. */
    boolean holds(FileSystem store, Path path) {
        String name = path.toString();
        if (!name.startsWith(lineage) || !STORE.matcher(name.substring(lineage.length())).matches()) {
            return false;
        }
        return isThere(store);
    }

    private synchronized boolean isThere(FileSystem store) {
        if (!looked || System.nanoTime() - lookedAt > LOOK_AGAIN_NANOS) {
            held = look(store);
            looked = true;
            lookedAt = System.nanoTime();
        }
        return held;
    }

    private boolean look(FileSystem store) {
        try {
            long put = store.getFileStatus(object).getModificationTime();
            return now(store) - put < LASTS_MILLIS;
        } catch (FileNotFoundException e) {
            return false;
        } catch (IOException e) {
            // Not known now. What stays is deleted the next time.
            return true;
        }
    }

    /** Returns what the store's clock says, in milliseconds. */
    private long now(FileSystem store) throws IOException {
        long passed = (System.nanoTime() - measuredAt) / NANOS_IN_MILLI;
        if (measured && passed < LASTS_MILLIS) {
            return storeMillis + passed;
        }
        store.create(clock, true).close();
        storeMillis = store.getFileStatus(clock).getModificationTime();
        measuredAt = System.nanoTime();
        measured = true;
        return storeMillis;
    }
}
