"""What is wrong when Spark fails because of its surroundings, without whose it is. No I/O."""

from __future__ import annotations

FENCED = "Another driver took the storage over."
BROKER_UNAVAILABLE = "The message broker could not be used."
BUCKET_NOT_FOUND = "A bucket does not exist."
CREDENTIALS_MISSING = "There are no credentials for a bucket."
CREDENTIALS_REJECTED = "A store rejects the credentials."
CREDENTIALS_EXPIRED = "The session token for a store is expired."
STORAGE_UNAVAILABLE = "A store does not answer."
STORAGE_THROTTLED = "A store asks for fewer requests."
CHECKPOINT_FILE_MISSING = "An object of the checkpoint is missing."
DISK_FULL = "The local disk of the driver or of an executor is full."
