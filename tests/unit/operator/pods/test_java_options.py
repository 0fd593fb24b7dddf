"""Options of a JVM are told apart as Spark and the shell do, however long the text is."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from tidegate.pods.spark.java_options import files_named, reaching_storage

OPTIONS = "spark.driver.extraJavaOptions"
TEXTS = st.lists(st.sampled_from(["-Dhttp.a=b", " ", "\t", "\n", "'", '"', "\\", "a", "=", "\v", "é"]), max_size=20)


@given(TEXTS)
def test_a_text_has_the_options_that_a_shell_would_find(parts: list[str]) -> None:
    text = "-Dhttp.first=x " + "".join(parts)
    try:
        expected = [option for option in shlex.split(text) if option.startswith("-Dhttp.")]
    except ValueError:  # a quotation mark without an end
        expected = []
    assert reaching_storage({OPTIONS: text}) == ({OPTIONS: shlex.join(expected)} if expected else {})


def test_a_quoted_file_is_named_without_its_quotation_marks() -> None:
    text = """-Xmx1g "-Djavax.net.ssl.trustStore=/a b/c.jks" -Djavax.net.ssl.keyStore='/d "e'/f\\\\g"""
    assert files_named({OPTIONS: text}) == ("/a b/c.jks", '/d "e/f\\g')
