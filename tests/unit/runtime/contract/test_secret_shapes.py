"""What a secret is recognized by, and what is none although it looks a little like one. Pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.contract.secret_shapes import (
    REDACTED,
    bytes_without_shapes,
    is_literal,
    names_a_secret,
    secrets_of,
    without_shapes,
)
from tidegate_spark.process.redaction import Secrets, Stream

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SHAPES = {
    "key in PEM": PEM,
    "key of AWS": "AKIAIOSFODNN7EXAMPLE",
    "session of AWS": "ASIAIOSFODNN7EXAMPLE",
    "web token": JWT,
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitHub, fine": "github_pat_" + "a1B2" * 12,
    "GitLab": "glpat-a1B2c3D4e5F6g7H8i9J0",
    "Slack": "xoxb-123456789012-abcdefABCDEF",
    "Google": "AIza" + "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H",
    "Hugging Face": "hf_" + "aBcD" * 9,
}
NAMED = {
    "Azure, event hub": ("Endpoint=sb://h/;SharedAccessKey={};EntityPath=x", "c2VjcmV0c2VjcmV0c2VjcmV0"),
    "Azure, storage": ("AccountName=n;AccountKey={}", "c2VjcmV0c2VjcmV0c2VjcmV0=="),
    "address": ("amqp://orders:{}@rabbit:5672/vhost", "hunter2"),
    "address of a database": ("jdbc:postgresql://db/orders?user=o&password={}&ssl=true", "hunter2"),
    "address of an Oracle database": ("jdbc:oracle:thin:orders/{}@//db:1521/service", "hunter2"),
    "header": ("Authorization: Bearer {}", "a1B2c3D4.e5-F6"),
    "header of a login": ("> authorization: Basic {}\n> accept: */*", "dXNlcjpodW50ZXIy"),
    "header in Python": ("requests.get(url, headers={{'Authorization': 'Bearer {}'}})", "a1B2c3D4e5F6"),
    "header in JSON": ('{{"headers": "{{\\"Authorization\\": \\"Token {}\\"}}"}}', "a1B2c3D4e5F6"),
    "signed address": ("https://h/p?sv=1&sig={}", "abc%2Bdef%3D"),
    "JAAS": ('PlainLoginModule required username="u" password="{}";', "hunter 2"),
    "JAAS in single quotes": ("PlainLoginModule required username='u' password='{}';", 'hunter "2'),
    "an argument in a traceback": ("connect(user='u', password = '{}')", "hunter2"),
    "JAAS in JSON": ('{{"conf": "required password=\\"{}\\";"}}', "hunter2"),
}


@pytest.mark.parametrize("secret", SHAPES.values(), ids=SHAPES)
def test_a_secret_is_recognized_by_its_shape_and_nothing_beside_it_is_taken(secret: str) -> None:
    assert without_shapes(f"it said: {secret}, and ended") == f"it said: {REDACTED}, and ended"
    assert secrets_of(secret) == (secret,)


@pytest.mark.parametrize(("text", "secret"), NAMED.values(), ids=NAMED)
def test_a_secret_is_recognized_by_what_it_stands_in_and_the_rest_stays(text: str, secret: str) -> None:
    assert without_shapes(text.format(secret)) == text.format(REDACTED)
    assert secrets_of(text.format(secret)) == (secret,)


@pytest.mark.parametrize(
    "text",
    [
        "s3a://bucket/prefix@2024/part:1",
        "http://host:8080/path and mail a@b.example",
        "kafka.messaging:9092,kafka-2.messaging:9092",
        "amqp://orders:$(PASSWORD)@rabbit",
        "amqp://orders:${env.PASSWORD}@rabbit",
        "amqp://orders:*****@rabbit",
        "jdbc:postgresql://db/orders?password=",
        "eyJhbGciOi is the beginning of a token",
        "-----BEGIN CERTIFICATE-----\nMIIEvQ\n-----END CERTIFICATE-----",
        "AKIA is how they begin; MAKIAIOSFODNN7EXAMPLE is none",
        "ValueError: password = must not be empty",
        "Authorization: Bearer $(TOKEN)",
        "authorization: the bearer of this message",
        "jdbc:oracle:thin:@//db:1521/service",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_shapes(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *(
            "password",
            "--password",
            "--db-passwd",
            "API_TOKEN",
            "CLIENT_SECRET",
            "aws.secretKey",
            "--api-key",
            "DB_PWD",
        ),
        *("spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.bucket.far.secret.key", "spark.ssl.keyPassword"),
        *(
            "SPARK_DB_PASSWORD",
            "JAVA_KEYSTORE_PASSWORD",
            "DB_PASS",
            "sasl.jaas.config",
            "DB_PWD",
            "spark.hadoop.fs.azure.account.key.x.blob.core.windows.net",
        ),
    ],
)
def test_a_name_tells_of_a_secret(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("spark.hadoop.fs.s3a.aws.credentials.provider", "spark.kubernetes.authenticate.driver.oauthTokenFile"),
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ACCESS_KEY_ID", "SECRET_NAME", "TIDEGATE_AGENT_TOKEN", "tokenizer"),
        *("--max-tokens", "spark.sql.session.timeZone", "spark.kubernetes.driver.secretKeyRef.TOKEN", "KEY", "monkey"),
        *("spark.kubernetes.executor.secrets.tls", "spark.security.credentials.hive.enabled", "PASSWORD_FILE"),
        *("PWD", "OLDPWD"),
    ],
)
def test_a_name_tells_of_none(name: str) -> None:
    assert not names_a_secret(name)


@pytest.mark.parametrize(
    "value",
    ["", " ", "*****", "true", "None", REDACTED, "$(PASSWORD)", "${env:PASSWORD}", "${env.PASSWORD}", "x ${env.P} y"],
)
def test_references_and_placeholders_are_no_secrets(value: str) -> None:
    assert not is_literal(value)


@pytest.mark.parametrize("value", ["/etc/secrets/password", "file:///etc/secrets/password"])
def test_paths_are_no_secrets(value: str) -> None:
    assert not is_literal(value)


@pytest.mark.parametrize("value", ["hunter2", "1234", "$ecret", "a/b+c==", "$(unfinished"])
def test_other_values_are(value: str) -> None:
    assert is_literal(value)


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    assert bytes_without_shapes(b"\xff\xfe amqp://u:hunter2@h \x80") == b"\xff\xfe amqp://u:[redacted]@h \x80"


PIECES = [*SHAPES.values(), *(text.format(secret) for text, secret in NAMED.values()), " ", "\n", "a", "correct horse"]


@given(
    st.lists(st.sampled_from(PIECES), max_size=6),
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
)
def test_however_a_stream_is_cut_no_shape_gets_through(words: list[str], cuts: list[int]) -> None:
    secrets, text = Secrets(["correct horse"]), "\n".join(words).encode()
    stream, shown, rest = Stream(secrets), b"", text
    while rest:
        length = cuts[len(rest) % len(cuts)]
        shown, rest = shown + stream.feed(rest[:length]), rest[length:]
    assert shown + stream.flush() == secrets.clean_bytes(text)


def test_an_ordinary_line_is_not_held_back() -> None:
    stream = Stream(Secrets())
    for line in (b"see https://spark.apache.org/docs\n", b"password: asked for\n", b"-----BEGIN CERTIFICATE-----\n"):
        assert stream.feed(line) == line
