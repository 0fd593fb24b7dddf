"""The error codes of object stores (Amazon, MinIO, Versity), by meaning. Pure."""

MISSING_BUCKET_CODES = frozenset({"NoSuchBucket", "404"})
REJECTED_CODES = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "AccessDenied",
        "InvalidToken",
        "AllAccessDisabled",
        "AccountProblem",
        "Forbidden",
        # Versity's gateway answers so, with status 404, if it has no such access key.
        "XAdminUserNotFound",
        "403",
        "401",
    }
)
EXPIRED_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
THROTTLING_CODES = frozenset(
    {
        "SlowDown",
        # MinIO has one for each kind of request.
        "SlowDownRead",
        "SlowDownWrite",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequests",
        "429",
    }
)
REGION_CODES = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"})
UNSUITABLE_CODES = frozenset({"NotImplemented", "501"})
ARCHIVED_OR_ENCRYPTED_CODES = frozenset(
    {
        # It is in an archive.
        "InvalidObjectState",
        # It was encrypted with a key that its sender kept, or with one of a service that is not there any more.
        "InvalidRequest",
        "KMS.DisabledException",
        "KMS.InvalidStateException",
        "KMS.KMSInvalidStateException",
        "KMS.NotFoundException",
    }
)
