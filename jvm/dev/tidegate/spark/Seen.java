package dev.tidegate.spark;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * What this process saw of checkpoint files a moment ago: whoever opens one then need not ask for its length and ETag
 * once more. Each sight serves once, for a few seconds, and the store refuses to read a file that is another one by
 * then.
 *
 * <p>Listings have ETags, too, which a store may write in another way than elsewhere. So the first that is to be used is
 * compared with what the store says of that file itself, and decides about all others.
 */
final class Seen {
    /** More than the files of the state partitions that a few tasks look for at the same time. */
    private static final int MOST = 2048;

    private static final long LASTS_NANOS = 5_000_000_000L;
    private static final Map<Path, Sight> SIGHTS =
            new LinkedHashMap<>() {
                private static final long serialVersionUID = 1L;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Path, Sight> eldest) {
                    return size() > MOST;
                }
            };
    /** Null: not known yet. */
    private static volatile Boolean listingsAreExact;

    private static final class Sight {
        private final FileStatus status;
        private final boolean listed;
        private final long at = System.nanoTime();

        Sight(FileStatus status, boolean listed) {
            this.status = status;
            this.listed = listed;
        }
    }

    private Seen() {}

    /** Remember the files of a listing. */
    static void listed(FileStatus... files) {
        if (Boolean.FALSE.equals(listingsAreExact)) {
            return;
        }
        for (FileStatus each : files) {
            add(each, true);
        }
    }

    /** Remember what the store said of one path. */
    static void lookedAt(FileStatus file) {
        add(file, false);
    }

    private static void add(FileStatus file, boolean listed) {
        if (file.isFile()) {
            synchronized (SIGHTS) {
                SIGHTS.remove(file.getPath());
                SIGHTS.put(file.getPath(), new Sight(file, listed));
            }
        }
    }

    /**
     * Return what was seen of a file, once; null if it was not, or too long ago.
     *
     * @throws IOException if the store was asked and did not answer, or has no such file any more
     */
    static FileStatus take(FileSystem store, Path file) throws IOException {
        Sight sight = remove(file);
        if (sight == null || System.nanoTime() - sight.at > LASTS_NANOS) {
            return null;
        }
        if (!sight.listed || Boolean.TRUE.equals(listingsAreExact)) {
            return sight.status;
        }
        FileStatus said = store.getFileStatus(file);
        listingsAreExact = tag(said).equals(tag(sight.status)) && said.getLen() == sight.status.getLen();
        return said;
    }

    /** Forget a file that is about to be written or deleted. */
    static void forget(Path file) {
        remove(file);
    }

    private static Sight remove(Path file) {
        synchronized (SIGHTS) {
            return SIGHTS.remove(file);
        }
    }

    private static String tag(FileStatus status) {
        String tag = status instanceof EtagSource ? ((EtagSource) status).getEtag() : null;
        return tag == null ? "" : tag;
    }
}
