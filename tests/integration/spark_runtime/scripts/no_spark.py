"""Never asks for Spark."""

print("done without Spark")
