"""Three pipelines of frozen dataclasses in a thread pool; a contextvar names the pipeline in each line of the log; the first that ends, ends all."""

from __future__ import annotations

import contextvars
import logging
import sys
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from functools import cached_property
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import ClassVar

from pyspark import InheritableThread, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

pipeline_name: contextvars.ContextVar[str] = contextvars.ContextVar("pipeline", default="-")


class AddPipeline(logging.Filter):
    def filter(self, record):
        record.pipeline = pipeline_name.get()
        return True


console = logging.StreamHandler(sys.stderr)
console.setFormatter(logging.Formatter("%(asctime)s [%(pipeline)s] %(threadName)s %(message)s"))
console.addFilter(AddPipeline())
logging.basicConfig(level=logging.INFO, handlers=[MemoryHandler(1, target=console)])
logging.getLogger("py4j").setLevel(logging.ERROR)
log = logging.getLogger("pool")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    name: str
    root: Path
    mode: str = "append"
    options: dict[str, str] = field(default_factory=dict)
    schema: ClassVar[str] = "id LONG, user STRING, amount DOUBLE, ad STRING, shown TIMESTAMP, clicked TIMESTAMP"

    @cached_property
    def spark(self) -> SparkSession:
        return SparkSession.builder.getOrCreate().newSession()

    @property
    def source(self) -> DataFrame:
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", "8").json(f"{self.root}/in")

    def build(self) -> DataFrame:
        raise NotImplementedError

    def __call__(self) -> str:
        pipeline_name.set(self.name)
        self.spark.conf.set("spark.sql.shuffle.partitions", 2)
        query = (
            self.build()
            .writeStream.outputMode(self.mode)
            .options(**self.options, checkpointLocation=f"{self.root}/checkpoints/{self.name}")
            .start(path=f"{self.root}/out/{self.name}", format="parquet", queryName=self.name)
        )
        log.info("started as %s", query.runId)
        query.awaitTermination()
        return self.name


class Deduplicated(Pipeline):
    def build(self):
        return self.source.withWatermark("shown", "5 minutes").dropDuplicatesWithinWatermark(["id", "user"])


class Joined(Pipeline):
    def build(self):
        left = self.source.select("ad", "shown").withWatermark("shown", "3 minutes").alias("l")
        right = self.source.select(sf.col("ad").alias("clicked_ad"), "clicked").withWatermark("clicked", "2 minutes").alias("r")
        near = sf.expr("ad = clicked_ad AND clicked >= shown AND clicked <= shown + interval 1 minute")
        joined = left.join(right, near, "leftOuter")
        return joined.groupBy(sf.window("shown", "1 minute")).agg(sf.count("clicked").alias("clicks"), sf.count("*").alias("n"))


class Sessions(Pipeline):
    def build(self):
        gap = sf.when(sf.col("user") == "a", "30 seconds").otherwise("2 minutes")
        return (
            self.source.withWatermark("shown", "1 minute")
            .groupBy("user", sf.session_window("shown", gap))
            .agg(sf.sum("amount").alias("total"))
            .select("user", "session_window.*", "total")
        )


def main(root: str) -> None:
    spark = SparkSession.builder.appName("pool").config("spark.sql.streaming.multipleWatermarkPolicy", "min").getOrCreate()
    base = Path(root)
    pipelines = [
        Deduplicated(name="deduplicated", root=base, options={"compression": "gzip"}),
        Joined(name="joined", root=base),
        Sessions(name="sessions", root=base),
    ]
    beat = InheritableThread(target=lambda: log.info("%d jobs so far", spark.range(3).count()), daemon=True)
    beat.start()
    with ThreadPoolExecutor(len(pipelines), thread_name_prefix="pipeline") as pool:
        futures: dict[Future, str] = {
            pool.submit(contextvars.copy_context().run, inheritable_thread_target(each)): each.name for each in pipelines
        }
        wait(futures, return_when=FIRST_EXCEPTION)
        for query in spark.streams.active:
            query.stop()
        for future in as_completed(futures):
            log.error("%s ended: %s", futures[future], future.exception() or future.result())
            future.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
