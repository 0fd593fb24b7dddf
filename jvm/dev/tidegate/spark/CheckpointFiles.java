package dev.tidegate.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Writes checkpoint files: on S3A each as one object in one put, whose failure is raised; elsewhere as Spark does by
 * default. On S3A it lets no query start and no batch begin for a driver that lost the {@link Fence}, and anywhere no file
 * sink take note of a batch. Spark makes one for each directory, by reflection, if {@code spark.sql.streaming.checkpointFileManagerClass} names this class; it is used
 * by many threads.
 */
public final class CheckpointFiles implements CheckpointFileManager {
    private static final String SETTING = "spark.sql.streaming.checkpointFileManagerClass";

    private final CheckpointFileManager files;
    private final Fence entries;

    /**
     * Serve the directory {@code path}.
     *
     * @throws FencedException if a query would begin there, and another driver has the fence
     * @throws IOException if its file system cannot be had
     */
    public CheckpointFiles(Path path, Configuration conf) throws IOException {
        String scheme = path.toUri().getScheme();
        if ("s3a".equals(scheme == null ? FileSystem.getDefaultUri(conf).getScheme() : scheme)) {
            files = new Objects(path, conf);
        } else {
            Configuration spark = new Configuration(conf);
            spark.unset(SETTING);
            files = CheckpointFileManager.create(path, spark);
        }
        entries = Fence.beforeEntries(path, conf);
    }

    @Override
    public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
        try {
            if (entries != null) {
                entries.check();
            }
        } catch (IOException e) {
            throw raised(e);
        }
        return files.createAtomic(path, overwriteIfPossible);
    }

    @Override
    public FSDataInputStream open(Path path) {
        return files.open(path);
    }

    @Override
    public FileStatus[] list(Path path, PathFilter filter) {
        return files.list(path, filter);
    }

    @Override
    public void mkdirs(Path path) {
        files.mkdirs(path);
    }

    @Override
    public boolean exists(Path path) {
        return files.exists(path);
    }

    @Override
    public void delete(Path path) {
        files.delete(path);
    }

    @Override
    public boolean isLocal() {
        return files.isLocal();
    }

    @Override
    public Path createCheckpointDirectory() {
        return files.createCheckpointDirectory();
    }

    @Override
    public void close() {
        files.close();
    }

    /**
     * Files of an object store: Spark's own way of deleting them, and ours of writing. They are read as Spark would, with
     * fewer questions: a query that is started again asks whether each file and folder is there before it reads it, and
     * each question is a request, or two.
     */
    private static final class Objects extends FileSystemBasedCheckpointFileManager {
        // What a reader of a file sink's output looks for to know that not every file there counts.
        private static final String SINK_LOG = "_spark_metadata";
        // The one file for which Spark makes a manager of its own.
        private static final String FILE = "metadata";

        private final FileSystem store;
        private final Path directory;
        private volatile boolean found;
        private final Pin pin;
        private final Fence fence;

        Objects(Path path, Configuration conf) throws IOException {
            super(path, conf);
            store = path.getFileSystem(conf);
            directory = store.makeQualified(path);
            pin = Pin.of(conf);
            fence = Fence.before(path, store, conf);
            // A query that is started again runs its last batch without writing anything before it.
            lookAtFence();
        }

        private void lookAtFence() throws IOException {
            if (fence != null) {
                fence.check();
            }
        }

        @Override
        public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
            try {
                lookAtFence();
                Seen.forget(store.makeQualified(path));
                return ObjectStream.create(store, path, overwriteIfPossible);
            } catch (IOException e) {
                throw raised(e);
            }
        }

        @Override
        public FileStatus[] list(Path path, PathFilter filter) {
            try {
                FileStatus[] files = store.listStatus(path, filter);
                Seen.listed(files);
                return files;
            } catch (FileNotFoundException e) {
                return new FileStatus[0];
            } catch (IOException e) {
                throw raised(e);
            }
        }

        @Override
        public boolean exists(Path path) {
            try {
                return store.makeQualified(path).equals(directory) ? isThere() : isSeen(path);
            } catch (IOException e) {
                throw raised(e);
            }
        }

        /** Whether the manager's own folder is there, or was: a missing one and an empty one are the same to all. */
        @SuppressWarnings("deprecation") // of all ways to ask, these make one request each
        private boolean isThere() throws IOException {
            if (directory.getName().equals(FILE)) {
                return isSeen(directory);
            }
            found = found || store.isDirectory(directory);
            return found || store.isFile(directory);
        }

        private boolean isSeen(Path path) throws IOException {
            try {
                Seen.lookedAt(store.getFileStatus(path));
                return true;
            } catch (FileNotFoundException e) {
                return false;
            }
        }

        @Override
        public FSDataInputStream open(Path path) {
            try {
                FileStatus seen = Seen.take(store, store.makeQualified(path));
                // Read on the condition that it is what was seen, which a file of a checkpoint is for ever.
                return seen == null
                        ? super.open(path)
                        : FutureIO.awaitFuture(store.openFile(path).withFileStatus(seen).build());
            } catch (IOException e) {
                throw raised(e);
            }
        }

        @Override
        public void mkdirs(Path path) {
            // A directory comes and goes with its files: an object that stands for it would only be one more to write.
            if (path.getName().equals(SINK_LOG)) {
                super.mkdirs(path);
            }
        }

        @Override
        public void delete(Path path) {
            if (pin == null || !pin.holds(store, path)) {
                found = found && !directory.equals(store.makeQualified(path));
                Seen.forget(store.makeQualified(path));
                super.delete(path);
            }
        }

        @Override
        public Path createCheckpointDirectory() {
            return directory;
        }
    }

    /** One object, put when the stream is closed. */
    private static final class ObjectStream extends CancellableFSDataOutputStream {
        // The options of org.apache.hadoop.fs.Options.CreateFileOptionKeys and of S3A that are used here.
        private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
        private static final String UNPROBED = "fs.s3a.create.performance";
        private static final String WRITER = "tidegate-writer";

        private final FSDataOutputStream object;
        private final FileSystem store;
        private final Path path;
        private final String writer;
        private final boolean probe;
        private boolean ended;

        private ObjectStream(FSDataOutputStream object, FileSystem store, Path path, String writer, boolean probe) {
            super(object);
            this.object = object;
            this.store = store;
            this.path = path;
            this.writer = writer;
            this.probe = probe;
        }

        static ObjectStream create(FileSystem store, Path path, boolean overwrite) throws IOException {
            boolean conditional = !overwrite && store.hasPathCapability(path, CONDITIONAL);
            String writer = UUID.randomUUID().toString();
            FSDataOutputStreamBuilder<?, ?> builder = store.createFile(path);
            builder.create().recursive().overwrite(!conditional).opt("fs.s3a.create.header." + WRITER, writer);
            if (conditional) {
                builder.must(CONDITIONAL, true);
            } else {
                builder.opt(UNPROBED, true);
            }
            return new ObjectStream(builder.build(), store, path, writer, !overwrite && !conditional);
        }

        @Override
        public synchronized void close() throws IOException {
            if (ended) {
                return;
            }
            if (probe && store.exists(path)) {
                cancel();
                throw new FileAlreadyExistsException(path + " exists; the store has no conditional puts to make sure");
            }
            ended = true;
            try {
                super.close();
            } catch (RemoteFileChangedException e) {
                // The answer to a put may be lost; the next attempt then meets the object of the first.
                if (!Arrays.equals(store.getXAttr(path, "header." + WRITER), writer.getBytes(StandardCharsets.UTF_8))) {
                    // Not as the cause: the end of a chain of causes is what people are shown, and that one says less.
                    FileAlreadyExistsException exists = new FileAlreadyExistsException(path + " is another writer's");
                    exists.addSuppressed(e);
                    throw exists;
                }
            }
        }

        @Override
        public synchronized void cancel() {
            if (ended) {
                return;
            }
            ended = true;
            // S3A warns of parts of a large object that it could not take back.
            object.abort();
        }
    }

    /** Spark's interface, being Scala's, declares no exceptions; its callers expect IOExceptions all the same. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException raised(Throwable e) throws E {
        throw (E) e;
    }
}
