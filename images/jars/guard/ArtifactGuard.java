import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Map;
import javax.inject.Named;
import javax.inject.Singleton;
import org.apache.maven.eventspy.AbstractEventSpy;
import org.eclipse.aether.RepositoryEvent;
import org.eclipse.aether.artifact.Artifact;

/**
 * Ends Maven as soon as it resolves a file that is not the one in the lock: before a plugin is loaded, and before a POM leads anywhere.
 *
 * <p>Maven 3.9 can do this itself (trusted checksums); Debian 12 has 3.8. Maven tells of every file, those of plugins and those in its
 * local repository too, in the thread that resolves it, so nothing uses a file before it has been compared. The system property
 * {@code tidegate.lock} names the lock; with {@code tidegate.lock.write} what is resolved is appended to it instead. The file that
 * {@code tidegate.lock.loaded} names is made at the start, since Maven runs on without a class that it cannot load.
 */
@Named("tidegate")
@Singleton
public final class ArtifactGuard extends AbstractEventSpy {
  private static final int REFUSED = 3;

  private final Path lock = Path.of(System.getProperty("tidegate.lock"));
  private final boolean writes = System.getProperty("tidegate.lock.write") != null;
  private final Map<String, String> expected = new HashMap<>();

  @Override
  public void init(Context context) throws IOException {
    Files.createFile(Path.of(System.getProperty("tidegate.lock.loaded")));
    if (writes) {
      return;
    }
    for (String line : Files.readAllLines(lock)) {
      String[] parts = line.split("  ", 2);
      expected.put(parts[1], parts[0]);
    }
  }

  @Override
  public void onEvent(Object event) {
    if (!(event instanceof RepositoryEvent)) {
      return;
    }
    RepositoryEvent resolved = (RepositoryEvent) event;
    Artifact artifact = resolved.getArtifact();
    boolean hasFile = resolved.getType() == RepositoryEvent.EventType.ARTIFACT_RESOLVED && artifact != null && artifact.getFile() != null;
    // The POM of the set itself comes from the checkout.
    if (!hasFile || artifact.getGroupId().equals("dev.tidegate")) {
      return;
    }
    // Maven only logs what a listener throws.
    try {
      meet(artifact.toString(), sha256(artifact.getFile().toPath()));
    } catch (IOException | NoSuchAlgorithmException | RuntimeException error) {
      refuse(artifact + " cannot be compared with the lock: " + error);
    }
  }

  private synchronized void meet(String name, String found) throws IOException {
    if (writes) {
      if (expected.putIfAbsent(name, found) == null) {
        Files.writeString(lock, found + "  " + name + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      }
    } else if (!expected.containsKey(name)) {
      refuse(name + " is not in " + lock);
    } else if (!expected.get(name).equals(found)) {
      refuse(name + " has the hash " + found + ", in " + lock + " it has " + expected.get(name));
    }
  }

  private static String sha256(Path file) throws IOException, NoSuchAlgorithmException {
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file));
    return String.format("%064x", new BigInteger(1, digest));
  }

  private static void refuse(String what) {
    System.err.println("refused: " + what);
    System.err.flush();
    Runtime.getRuntime().halt(REFUSED);
  }
}
