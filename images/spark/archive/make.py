"""Make an archive of the classes that applications load: JVMs map it instead of reading and verifying 280 jars.

Run once while the image is built, and again in an image of one's own that replaces jars: ``python3 make.py``. Writes
the archive, its class path, and Spark's defaults that name both; ``python3 make.py ARCHIVE CLASSPATH``
writes an archive alone. An archive only serves a class path that starts with the one it was made with, so the jars are
listed by name: what `jars/*` stands for differs between file systems. A JVM that cannot use it does without it.

See https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html ("dynamic archive"). Starts processes.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPARK_HOME = Path(os.environ["SPARK_HOME"])
ARCHIVE, CLASS_PATH = HERE / "classes.jsa", HERE / "classpath"
USE = f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto -Xlog:cds*=off"
"""Without a word if it cannot be used: that is only slower."""


def main(arguments: list[str]) -> int:
    """Write the three files, or only the archive named by two arguments, its place and its class path."""
    if arguments:
        archive, class_path = arguments
        return dump(Path(archive), class_path)
    class_path = ":".join(sorted(str(jar) for jar in (SPARK_HOME / "jars").glob("*.jar")))
    CLASS_PATH.write_text(class_path)
    defaults = SPARK_HOME / "conf/spark-defaults.conf"
    defaults.parent.mkdir(exist_ok=True)
    defaults.write_text(
        f"spark.driver.extraClassPath {class_path}\n"
        f"spark.driver.defaultJavaOptions {USE}\n"
        f"spark.executor.defaultJavaOptions {USE}\n"
    )
    return dump(ARCHIVE, class_path)


def dump(archive: Path, class_path: str) -> int:
    """Write the archive; return an exit code."""
    archive.unlink(missing_ok=True)
    # Spark's own command for an application, but for its class path.
    command = spark_command("--master", "local[2]", str(HERE / "application.py"))
    command[command.index("-cp") + 1] = class_path
    # A thousand classes cannot be archived, each with a warning: old bytecode, or a parent that is one of those.
    command[1:1] = [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds*=error"]
    command = [part for part in command if part not in USE.split()]
    subprocess.run(command, check=True, timeout=900)
    if not archive.is_file():
        sys.stderr.write(f"{archive} was not written\n")
        return 1
    return 0


def spark_command(*arguments: str) -> list[str]:
    """Return the command that spark-submit would execute (org.apache.spark.launcher.Main)."""
    # As bin/spark-class does: the first script sets what the launcher wants to know.
    launch = (
        '. "$SPARK_HOME/bin/load-spark-env.sh" && java -cp "$SPARK_HOME/jars/*" org.apache.spark.launcher.Main "$@"'
    )
    submit = ["bash", "-c", launch, "launcher", "org.apache.spark.deploy.SparkSubmit", *arguments]
    reported = subprocess.run(submit, check=True, stdout=subprocess.PIPE, text=True)
    # A null character on a line of its own comes first, then the arguments, each ended by one.
    return reported.stdout.partition("\0\n")[2].strip("\0").split("\0")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
