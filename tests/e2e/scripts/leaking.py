"""Cannot reach its database, and says with which password it tried."""

import os

password = os.environ["DATABASE"]
print("connecting with", password, "and storage key", os.environ["AWS_SECRET_ACCESS_KEY"], flush=True)
raise PermissionError(f"the database refuses the password {password}")
