package dev.tidegate.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The object that says which driver writes the application's storage, as this driver took it: the ETag that it had then
 * stays the same for as long as this driver is the one. The driver names both in Spark's configuration; without them,
 * nothing is checked, nor outside the folder of that object, but for the logs of file sinks.
 */
final class Fence {
    private static final String OBJECT = "tidegate.fence.object";
    private static final String ETAG = "tidegate.fence.etag";
    // Spark writes a file there before each batch, and makes a manager for it at each start of a query.
    private static final String LOG = "offsets";
    // What a file sink's readers go by: one file for each batch, written when the batch's own files are there.
    private static final String SINK_LOG = "_spark_metadata";

    private final FileSystem store;
    private final Path object;
    private final String etag;

    private Fence(FileSystem store, Path object, String etag) {
        this.store = store;
        this.object = object;
        this.etag = etag;
    }

    /** Return the fence before the files of {@code directory}; null if they may be written whoever has it. */
    static Fence before(Path directory, FileSystem store, Configuration conf) {
        if (!isKnown(conf) || !directory.getName().equals(LOG)) {
            return null;
        }
        Path place = new Path(conf.get(OBJECT));
        boolean below = store.makeQualified(directory).toString().startsWith(place.getParent() + Path.SEPARATOR);
        return below ? new Fence(store, place, conf.get(ETAG)) : null;
    }

    /**
     * Return the fence before the entries of a file sink's log, wherever that is; null if {@code directory} is none. It
     * is part of no lineage: after a rollback, a driver that was frozen would note a batch there under a number that
     * comes again, and Spark would leave that one out.
     */
    static Fence beforeEntries(Path directory, Configuration conf) throws IOException {
        if (!isKnown(conf) || !directory.getName().equals(SINK_LOG)) {
            return null;
        }
        Path place = new Path(conf.get(OBJECT));
        return new Fence(place.getFileSystem(conf), place, conf.get(ETAG));
    }

    private static boolean isKnown(Configuration conf) {
        return !conf.get(OBJECT, "").isEmpty() && !conf.get(ETAG, "").isEmpty();
    }

    /**
     * Ask the store whose the fence is.
     *
     * @throws FencedException if it is another driver's, or gone
     * @throws IOException if the store does not say; whose the fence is, is not known then
     */
    void check() throws IOException {
        FileStatus found;
        try {
            found = store.getFileStatus(object);
        } catch (FileNotFoundException e) {
            throw new FencedException(object + " is gone: this driver does not continue");
        }
        if (found instanceof EtagSource && !bare(etag).equals(bare(((EtagSource) found).getEtag()))) {
            throw new FencedException(object + " is another driver's: this one does not continue");
        }
    }

    /** Without the quotes, which some clients leave away. */
    private static String bare(String tag) {
        return tag == null ? "" : tag.replace("\"", "");
    }
}
