"""Objects in a bucket: the port to the store that keeps them, and an application's own among them.

``store`` is the port, ``s3`` and ``memory`` are behind it. ``s3_client`` is boto3's, for what needs no port;
``app_objects`` knows the keys of one application.
"""
