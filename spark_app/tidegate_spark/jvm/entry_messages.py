"""Messages: what a script cannot have of Spark here, and what to use instead. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

NO_CONNECT = (
    "The script asks for a Spark Connect session (remote, or spark.api.mode connect). Tidegate runs Spark in the "
    "driver pod: leave it out, and SparkSession.builder.getOrCreate() returns the session there."
)
NO_DSTREAMS = (
    "The script makes a StreamingContext (DStreams), which Spark has deprecated and whose state Tidegate cannot keep. "
    "Write it with Structured Streaming (spark.readStream)."
)
IN_CHILD_PROCESS = (
    "A child process of the script asks for Spark. Ask for it in the script's own process: several queries run there "
    "at once."
)
NO_EXEC = (
    "The script has another program take the place of its process (os.exec…, such as exec spark-submit), which is the "
    "driver's: nothing of Tidegate would run any more. Name the program as spec.application.main, import and call it, "
    "or run it in a child process (subprocess)."
)
STOPPED_BEFORE = (
    "The script asks for Spark after it has stopped it (spark.stop()). Tidegate runs one session in a driver process: "
    "leave the stop out, and getOrCreate() returns the session that is there."
)
SUBMIT_ARGUMENTS_IGNORED = (
    "The variable PYSPARK_SUBMIT_ARGS is not used, as under spark-submit. Set what it asks for in spec.sparkConf or in "
    "the script's builder: spark.jars.packages for --packages, spark.jars for --jars, each --conf by its key."
)


SPEC_DECIDES = "set it in spec.sparkConf, which beats the script and has another value, or Tidegate's default for it"
STORAGE_IS_THE_SPECS = "the path to the application's own storage is the spec's alone (spec.storage)"
ONE_CLASS_FOR_ALL_BUCKETS = (
    "it would also be the class of the application's own storage; set it in spec.sparkConf, or read other stores by "
    "another scheme than s3a"
)
MEMORY_IS_THE_SPECS = (
    "it has to be a size with which the heap (450m or more) and off-heap memory leave something of "
    "executor.resources.requests.memory, which is for all of an executor"
)
DRIVER_HEAP_IS_THE_SPECS = "use driver.resources.requests.memory, or set it in spec.sparkConf"
EXECUTORS_REACH_THE_STORAGE = (
    "the application's own storage is reached with these variables; name keys for inputs by "
    "spark.hadoop.fs.s3a.bucket.BUCKET.access.key and secret.key, or set variables in application.env"
)
CONTEXT_IS_THERE = "Spark's context is there already; set it where the script first asks for Spark"


def queries_in_child(process: int) -> str:
    return (
        f"A child process of the script (process {process}) runs queries in a Spark of its own, whose state ends with "
        "the pod, and the script's own process has started none. Start them in the script's own process: import the "
        "program and call it, or run it with runpy."
    )


def own_port(what: str, port: int, ports: Sequence[int]) -> str:
    return (
        f"{what}: ports {' and '.join(map(str, ports))} of the driver pod are Tidegate's, and cannot be moved. Have "
        f"the script listen on another port than {port}."
    )


def setting_ignored(key: str, where: str, remedy: str) -> str:
    return f"{key} of {where} is not used: {remedy}."


def reaches_executors_alone(key: str, remedy: str) -> str:
    return f"{key} of spec.sparkConf reaches executors alone, and is refused in a new spec: {remedy}."


def hidden_from_the_command(key: str) -> str:
    return (
        f"{key} of the script does not apply in the driver's JVM: its value looks like a secret, and anybody who sees "
        "the pod's processes reads the JVM's command. Keep the secret in a file, mounted from a Secret, and name the "
        "file: spark.jars.ivySettings for repositories, a file of JAAS for Java options."
    )
