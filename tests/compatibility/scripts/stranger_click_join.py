"""Impressions joined with clicks, both with watermarks, as a command of the click library."""

import click
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr


@click.group()
@click.option("--app-name", default="ad-join")
@click.option("--conf", multiple=True, help="key=value for the session")
@click.pass_context
def cli(ctx, app_name, conf):
    builder = SparkSession.builder.appName(app_name)
    for pair in conf:
        key, _, value = pair.partition("=")
        builder = builder.config(key, value)
    ctx.obj = builder.getOrCreate()
    ctx.call_on_close(ctx.obj.stop)


@cli.command()
@click.argument("impressions", type=click.Path(exists=True))
@click.argument("clicks", type=click.Path(exists=True))
@click.argument("sink")
@click.option("--checkpoint-dir", envvar="CHECKPOINT_DIR", required=True)
@click.option("--trigger", default="1 second", show_default=True)
@click.pass_obj
def join(spark, impressions, clicks, sink, checkpoint_dir, trigger):
    imp = (
        spark.readStream.schema("ad STRING, shown TIMESTAMP").json(impressions)
        .withWatermark("shown", "20 seconds").alias("i")
    )
    clk = (
        spark.readStream.schema("ad STRING, clicked TIMESTAMP").json(clicks)
        .withWatermark("clicked", "30 seconds").alias("c")
    )
    joined = imp.join(
        clk,
        expr("i.ad = c.ad AND c.clicked >= i.shown AND c.clicked <= i.shown + INTERVAL 1 MINUTE"),
        "leftOuter",
    ).select(col("i.ad").alias("ad"), "shown", "clicked")
    query = (
        joined.writeStream.format("json").outputMode("append")
        .option("checkpointLocation", f"{checkpoint_dir}/ad-join")
        .trigger(processingTime=trigger)
        .start(sink)
    )
    click.echo(f"started {query.name or query.id}")
    query.awaitTermination()


if __name__ == "__main__":
    cli()
