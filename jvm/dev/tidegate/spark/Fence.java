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
 * stays the same for as long as this driver is the one. The driver names both in Spark's configuration; without them, or
 * outside the folder of that object, nothing is checked.
 */
final class Fence {
    private static final String OBJECT = "tidegate.fence.object";
    private static final String ETAG = "tidegate.fence.etag";
    // Spark writes a file there before each batch, and makes a manager for it at each start of a query.
    private static final String LOG = "offsets";

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
        String object = conf.get(OBJECT, "");
        String etag = conf.get(ETAG, "");
        if (object.isEmpty() || etag.isEmpty() || !directory.getName().equals(LOG)) {
            return null;
        }
        Path place = new Path(object);
        boolean below = store.makeQualified(directory).toString().startsWith(place.getParent() + Path.SEPARATOR);
        return below ? new Fence(store, place, etag) : null;
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
            throw new FencedException(object + " is gone: this driver began no further batch");
        }
        if (found instanceof EtagSource && !bare(etag).equals(bare(((EtagSource) found).getEtag()))) {
            throw new FencedException(object + " is another driver's: this one began no further batch");
        }
    }

    /** Without the quotes, which some clients leave away. */
    private static String bare(String tag) {
        return tag == null ? "" : tag.replace("\"", "");
    }
}
