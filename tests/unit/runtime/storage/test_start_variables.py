"""The driver's clients of the application's storage, made while the script has variables of its own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidegate_spark
from tidegate_spark.contract.protocol import Storage, to_json
from tidegate_spark.storage import start_variables
from tidegate_spark.storage.s3_client import Credentials, connect
from tidegate_testing.driver_process import driver_config

PLACE = Storage("s3://here", "http://store.example:9000")
AWS = Storage("s3://here", region="eu-west-1")
KEYS = Credentials("key", "secret")
OF_AWS = "https://s3.eu-west-1.amazonaws.com"


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The pod's variables, none of them about a store; nothing is noted after the test."""
    for name in (
        "AWS_PROFILE",
        "AWS_ENDPOINT_URL",
        "AWS_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "HTTPS_PROXY",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(start_variables, "_noted", [])
    return monkeypatch


def script_sets(variables: pytest.MonkeyPatch, **values: str) -> None:
    """The driver starts, then its script sets ``values``."""
    start_variables.note()
    for name, value in values.items():
        variables.setenv(name, value)


def proxies_of(client: Any) -> dict[str, str]:
    proxies: dict[str, str] = client._endpoint.http_session._proxy_config._proxies
    return proxies


def credentials_of(client: Any) -> Any:
    return client._request_signer._credentials


def identity_of(client: Any) -> str | None:
    return getattr(credentials_of(client), "access_key", None)


def attempts_of(client: Any) -> int:
    attempts: int = client.meta.config.retries["total_max_attempts"]
    return attempts


def certificates_of(client: Any) -> Any:
    return client._endpoint.http_session._verify


def test_a_script_s_profile_is_not_looked_for(variables: pytest.MonkeyPatch) -> None:
    script_sets(variables, AWS_PROFILE="nope", AWS_CONFIG_FILE="/nowhere", AWS_MAX_ATTEMPTS="many")
    assert identity_of(connect(PLACE, KEYS)) == "key"
    assert attempts_of(connect(PLACE, KEYS)) == 2
    assert identity_of(connect(PLACE, None)) is None


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_script_s_endpoint_is_not_the_storage_s(variables: pytest.MonkeyPatch, name: str) -> None:
    script_sets(variables, **{name: "http://script.example"})
    assert connect(AWS, KEYS).meta.endpoint_url == OF_AWS


def test_a_pod_s_endpoint_is_the_storage_s_although_the_script_names_another(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("AWS_ENDPOINT_URL", "http://pod.example")
    script_sets(variables, AWS_ENDPOINT_URL="http://script.example", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true")
    assert connect(AWS, KEYS).meta.endpoint_url == "http://pod.example"


def test_a_script_s_keys_do_not_replace_the_pod_s(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("AWS_ACCESS_KEY_ID", "pod")
    variables.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    script_sets(variables, AWS_ACCESS_KEY_ID="script", AWS_SECRET_ACCESS_KEY="other")
    assert identity_of(connect(AWS, None)) == "pod"


def test_a_script_s_keys_do_not_hide_the_pod_s_file_which_is_read_anew(
    variables: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / ".aws" / "credentials"
    file.parent.mkdir()
    file.write_text("[default]\naws_access_key_id=first\naws_secret_access_key=s\n")
    script_sets(
        variables, AWS_ACCESS_KEY_ID="script", AWS_SECRET_ACCESS_KEY="s", AWS_SHARED_CREDENTIALS_FILE="/no", HOME="/no"
    )
    assert identity_of(connect(AWS, None)) == "first"
    file.write_text("[default]\naws_access_key_id=second\naws_secret_access_key=s\n")
    assert identity_of(connect(AWS, None)) == "second"


def test_a_pod_s_role_is_assumed_with_its_token_as_it_is_then(variables: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    variables.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    variables.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod")
    variables.setenv("AWS_ENDPOINT_URL_STS", "http://sts.example")
    script_sets(
        variables, AWS_ROLE_ARN="arn:script", AWS_WEB_IDENTITY_TOKEN_FILE="/no", AWS_ENDPOINT_URL_STS="http://no"
    )
    credentials = credentials_of(connect(AWS, None))
    assert credentials.method == "assume-role-with-web-identity"
    fetcher = credentials._refresh_using.__self__
    assert fetcher._assume_role_kwargs()["RoleArn"] == "arn:aws:iam::1:role/pod"
    token.write_text("second")
    assert fetcher._assume_role_kwargs()["WebIdentityToken"] == "second"
    assert fetcher._client_creator("sts").meta.endpoint_url == "http://sts.example"


def test_a_script_s_role_is_not_assumed(variables: pytest.MonkeyPatch) -> None:
    script_sets(variables, AWS_ROLE_ARN="arn:script", AWS_WEB_IDENTITY_TOKEN_FILE="/script/token")
    assert identity_of(connect(AWS, None)) is None


def test_a_pod_s_credentials_address_is_asked_although_the_script_names_another(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/pod")
    script_sets(variables, AWS_CONTAINER_CREDENTIALS_FULL_URI="http://169.254.170.23/script")
    resolver = start_variables.new_session().get_component("credential_provider")
    container = next(one for one in resolver.providers if one.METHOD == "container-role")
    assert container._environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"] == "http://169.254.170.23/pod"


def profile_with_process(folder: Path) -> None:
    """A profile whose keys a program of the image has, which reads variables; and a role that is assumed with them."""
    program = folder / "keys.sh"
    program.write_text(
        '#!/bin/sh\nprintf \'{"Version":1,"AccessKeyId":"%s","SecretAccessKey":"s"}\' "$KEYS_OF $AWS_PROFILE"\n'
    )
    program.chmod(0o755)
    (folder / ".aws").mkdir()
    (folder / ".aws" / "config").write_text(
        f"[profile keys]\ncredential_process = {program}\n"
        "[profile role]\nrole_arn = arn:aws:iam::1:role/pod\nsource_profile = keys\n"
    )


def test_a_credential_process_runs_with_the_pod_s_variables(variables: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile_with_process(tmp_path)
    variables.setenv("KEYS_OF", "pod")
    variables.setenv("AWS_PROFILE", "keys")
    script_sets(variables, KEYS_OF="script", AWS_PROFILE="other")
    assert identity_of(connect(AWS, None)) == "pod keys"


def test_so_does_that_of_the_profile_by_which_a_role_is_assumed(variables: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile_with_process(tmp_path)
    variables.setenv("KEYS_OF", "pod")
    variables.setenv("AWS_PROFILE", "role")
    script_sets(variables, KEYS_OF="script", AWS_PROFILE="other")
    credentials = credentials_of(connect(AWS, None))
    assert credentials.method == "assume-role"
    assert credentials._refresh_using.__self__._source_credentials.access_key == "pod role"


def test_a_script_that_turns_the_node_s_metadata_off_or_has_a_proxy_leaves_the_pod_s_identity(
    variables: pytest.MonkeyPatch,
) -> None:
    variables.delenv("AWS_EC2_METADATA_DISABLED")
    script_sets(variables, AWS_EC2_METADATA_DISABLED="true", HTTP_PROXY="http://script.example")
    resolver = start_variables.new_session().get_component("credential_provider")
    fetcher = next(one for one in resolver.providers if one.METHOD == "iam-role")._role_fetcher
    assert not fetcher._disabled
    assert not fetcher._session._proxy_config._proxies


def test_a_script_s_proxy_is_not_the_storage_s(variables: pytest.MonkeyPatch) -> None:
    script_sets(variables, HTTP_PROXY="http://script.example", HTTPS_PROXY="http://script.example")
    assert proxies_of(connect(PLACE, KEYS)) == {}
    assert proxies_of(connect(AWS, KEYS)) == {}


def test_a_pod_s_proxy_is_the_storage_s_although_the_script_names_another(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("HTTPS_PROXY", "http://pod.example")
    script_sets(variables, HTTPS_PROXY="http://script.example", NO_PROXY="*")
    assert proxies_of(connect(AWS, KEYS))["https"] == "http://pod.example"


@pytest.mark.parametrize(("place", "host"), [(PLACE, "store.example"), (AWS, ".amazonaws.com")])
def test_a_pod_s_proxy_is_not_used_for_what_the_pod_excepts(
    variables: pytest.MonkeyPatch, place: Storage, host: str
) -> None:
    variables.setenv("HTTP_PROXY", "http://pod.example")
    variables.setenv("HTTPS_PROXY", "http://pod.example")
    variables.setenv("NO_PROXY", host)
    script_sets(variables, NO_PROXY="")
    assert proxies_of(connect(place, KEYS)) == {}


@pytest.mark.parametrize("name", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_the_storage_s_certificates_are_judged_by_the_pod_s_bundle(variables: pytest.MonkeyPatch, name: str) -> None:
    variables.setenv(name, "/pod/ca.crt")
    script_sets(variables, AWS_CA_BUNDLE="/script/ca.crt", REQUESTS_CA_BUNDLE="/script/ca.crt")
    assert certificates_of(connect(PLACE, KEYS)) == "/pod/ca.crt"


def test_a_script_s_bundle_is_not_the_storage_s(variables: pytest.MonkeyPatch) -> None:
    script_sets(variables, AWS_CA_BUNDLE="/script/ca.crt", REQUESTS_CA_BUNDLE="/script/ca.crt")
    assert certificates_of(connect(PLACE, KEYS)) is True


def test_where_no_script_runs_the_variables_of_the_moment_are_read(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("AWS_ENDPOINT_URL", "http://pod.example")
    variables.setenv("HTTP_PROXY", "http://proxy.example")
    client = connect(AWS, KEYS)
    assert client.meta.endpoint_url == "http://pod.example"
    assert proxies_of(client)["http"] == "http://proxy.example"


def test_noted_variables_are_not_shown(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("AWS_SECRET_ACCESS_KEY", "do-not-show")
    assert "do-not-show" not in repr(start_variables.StartVariables.read())


def test_a_driver_notes_them_before_its_script_runs(tmp_path: Path) -> None:
    program = (
        "import os, sys, types\n"
        "from tidegate_spark.contract.protocol import Storage\n"
        "from tidegate_spark.driver import start\n"
        "from tidegate_spark.storage.s3_client import Credentials, connect\n"
        "class Driver:\n"
        "    def __init__(self, *_): pass\n"
        "    def run(self, stops):\n"
        "        os.environ['AWS_PROFILE'] = 'nope'\n"
        "        print(connect(Storage('s3://here'), Credentials('key', 'secret')).meta.endpoint_url)\n"
        "sys.modules['tidegate_spark.driver.driver'] = types.SimpleNamespace(Driver=Driver)\n"
        "start.pyspark_path.make_importable = start._start_jvm = lambda *_: None\n"
        "start.start(None)\n"
    )
    environment = {
        "PYTHONPATH": str(Path(tidegate_spark.__file__).parents[1]),
        "HOME": str(tmp_path),
        "AWS_ENDPOINT_URL": "http://pod.example",
        "TIDEGATE_CONFIG": to_json(driver_config("orders", "local:///main.py", PLACE, credentials_secret="")),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "http://pod.example\n", done.stderr
