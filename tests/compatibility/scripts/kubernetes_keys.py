from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("k8s://https://kubernetes.default.svc")
    .config("spark.kubernetes.container.image", "registry.example.org/spark:4")
    .config("spark.kubernetes.namespace", "data")
    .config("spark.kubernetes.driverEnv.STAGE", "prod")
    .config("spark.kubernetes.driver.label.team", "orders")
    .config("spark.executor.instances", "4")
    .config("spark.driver.cores", "2")
    .getOrCreate()
)
spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
