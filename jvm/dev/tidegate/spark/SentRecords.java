package dev.tidegate.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

/** What was given to a producer, and is not known to be at the broker yet. For one thread at a time. */
public final class SentRecords {
    private final List<Future<?>> open = new ArrayList<>();

    /** Take note of one that was sent. Fails if it is known already that the broker does not get it: so do all. */
    public void add(Future<?> sent) throws ExecutionException, InterruptedException {
        open.add(sent);
        if (sent.isDone()) {
            try {
                sent.get();
            } catch (ExecutionException | InterruptedException error) {
                // It was waited for already: the caller is not to wait for each of the others as well.
                open.clear();
                throw error;
            }
        }
    }

    /** Wait until the broker has all of them, and fail if it does not take one. */
    public void flush() throws ExecutionException, InterruptedException {
        List<Future<?>> waiting = new ArrayList<>(open);
        open.clear();
        for (Future<?> each : waiting) {
            each.get();
        }
    }
}
