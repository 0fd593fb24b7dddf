"""What queries are called to which the script gives no name: by their ``checkpointLocation``, and by what is noted."""
