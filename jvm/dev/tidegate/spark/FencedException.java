package dev.tidegate.spark;

import java.io.IOException;

/** Another driver took the application's storage over: this one must begin no further batch. */
public final class FencedException extends IOException {
    private static final long serialVersionUID = 1L;

    FencedException(String message) {
        super(message);
    }
}
