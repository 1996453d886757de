import pytest

from kvflow.cli.bench_command import shown


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (["--", "--api-key", "sesame"], "kvflow -- --api-key '***'"),
        (["--api-key=sesame"], "kvflow '--api-key=***'"),
        (["--admin-api-key", "-sesame"], "kvflow --admin-api-key '***'"),
        (["--hf-token", "sesame"], "kvflow --hf-token '***'"),
        (["--ssl-keyfile-password", "sesame"], "kvflow --ssl-keyfile-password '***'"),
        (["--url", "http://me:sesame@h:1/v1"], "kvflow --url 'http://***@h:1/v1'"),
        (["--url=me:ses@me@h:1"], "kvflow '--url=***@h:1'"),
    ],
)
def test_command_is_shown_without_secrets(typed, text):
    assert shown(typed) == text


@pytest.mark.parametrize(
    "typed",
    [
        ["bench", "peer", "--arms", "off,full"],
        ["--max-total-tokens", "500"],
        ["--tokenizer-path", "somewhere"],
        ["--url", "http://h:30000"],
        ["monkey", "business"],
    ],
)
def test_command_without_secrets_is_shown_as_typed(typed):
    assert shown(typed) == " ".join(["kvflow", *typed])
