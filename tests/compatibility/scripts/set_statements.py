from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("SET spark.sql.session.timeZone = America/Lima")
spark.sql("SET spark.sql.streaming.stateStore.stateSchemaCheck = true")
spark.conf.set("spark.sql.adaptive.enabled", "false")
spark.sql("CREATE OR REPLACE TEMPORARY VIEW shops AS SELECT id, concat('shop ', id) AS name FROM range(3)")
spark.readStream.format("rate").option("rowsPerSecond", 9).load().createOrReplaceTempView("sales")
named = spark.sql("SELECT s.name, count(*) AS n FROM sales JOIN shops s ON value % 3 = s.id GROUP BY s.name")
print("zone", spark.conf.get("spark.sql.session.timeZone"), flush=True)
named.writeStream.outputMode("complete").format("console").start().awaitTermination()
