"""The port to the object store, its implementations, and an application's own objects.

``store`` is the port, ``s3`` and ``memory`` implement it. ``s3_client`` is boto3's, for what needs no port;
``app_objects`` knows the keys of one application. Does I/O.
"""
