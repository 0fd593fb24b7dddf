from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
hadoop.set("fs.s3a.endpoint", "http://minio.data.svc:9000")
hadoop.set("fs.s3a.access.key", "minio")
hadoop.set("fs.s3a.secret.key", "minio123")
hadoop.set("fs.s3a.path.style.access", "false")
counts = spark.readStream.format("rate").load().selectExpr("value % 3 AS k").groupBy("k").count()
counts.writeStream.outputMode("update").format("console").start().awaitTermination()
