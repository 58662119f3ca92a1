"""Secrets are masked, what only looks like one is not, and no text takes long."""

import re

import pytest
from tests.watchdog import SECONDS, ends

from slurm_agent_tools.text.sanitize import MASK, ROWS, mask, mask_settings

ORDINARY = (
    "job 123456_7 on gpu[01-04], exit code 0:15",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "token_accuracy=0.93 tokens_per_second=51234.5 num_tokens: 4096 max_new_tokens=256",
    "tokenizer: gpt2 pad_token=[PAD] eos_token='</s>' bos_token: <|endoftext|> sep_token=None",
    "PWD=/home/alice/project OLDPWD=/tmp",
    "saved /scratch/alice/run-2026-01-02/checkpoint-00012000/model.safetensors",
    "password: required, api_key=None, secret=${SECRET}, --password-file /run/pw",
    "tcp://10.0.0.1:29500 s3://bucket/key https://host:8080/path@v2",
    "loss=0.1234 key=value author=alice monkey: 5 primary_key=id sort_key=date",
    "Bearer of news; basic authentication is on; cookie policy",
    "sat-0123456789abcdef is the job's own mark",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "git@github.com:group/project.git",
    '"auth": "kerberos" auth=munge auth: LdapAuth "auth": null "auth": "OAuth2" auth_type="Basic64A"',
    "PATH=/opt/a1b2c3d4e5f6a7b8c9d0:/usr/bin PATCH=0123456789abcdef0123456789 PAT=1234 --pat 5 PATTERN=a1b2c3d4e5f6a7b8c9d0e1",
    "ya29 is 1//2 of it; dapi.save(x); hvs.open; N_PASS=3 bypass=abcdef first_pass=abc123 ONE_PASS=abc123",
    "cache_key=0123456789abcdef0123456789abcdef01234567 run-0123456789abcdef",
    "<s>hello</s> <token>the</token> <secretName>prod</secretName> <key>batch</key><value>32</value> x</password>",
    "<password>${DB_PASSWORD}</password> <password></password> <credentials>\n<user>me</user>\n</credentials>",
    '<add key="epochs" value="30"/> <input name="password" type="text"/> <password> a < b',
    "login failed\npassword incorrect\nlogin node01\npassword authentication\nlogin ok password expired for ada",
    "on machine gpu01\nlogin shells differ\npassword\n\nthe default login shell\nasks for no password at all",
    "password: |\nTraceback (most recent call last):",
    "secret: >\n\n  x",
    "credentials:\n  loaded",
    "password:\n  length8: x",
    "Password:\nhunter2",
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_kind_masks_its_samples_and_leaves_its_near_miss(row):
    for sample in row.samples:
        assert re.search(row.source, sample), sample
        assert MASK in mask(f"before {sample} behind"), sample
        assert mask(f"before {sample} behind").endswith(" behind")
    assert mask(row.near_miss) == row.near_miss


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_secret_stays_as_it_is(text):
    assert mask(text) == text


def test_the_name_before_a_secret_stays():
    text = 'export AWS_SECRET_ACCESS_KEY="abcd/efgh+ijkl" HF_TOKEN=abc123def456 LR=0.1'
    assert mask(text) == f'export AWS_SECRET_ACCESS_KEY="{MASK}" HF_TOKEN={MASK} LR=0.1'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("a <password>hunter2!</password> b", "a <password>¦</password> b"),
        ("<Config>\n  <clientSecret>\n    hunt er2\n  </clientSecret>\n</Config>", "<Config>\n  <clientSecret>\n    ¦\n</clientSecret>\n</Config>"),
        ("<ns:db.password type='x'><![CDATA[hunter2]]></ns:db.password>", "<ns:db.password type='x'><![CDATA[¦]]></ns:db.password>"),
        ("<name>fs.s3a.secret.key</name><value>abc/def</value>", "<name>fs.s3a.secret.key</name><value>¦</value>"),
        ("<key>apiKey</key>\n\t<string>hunter2</string>", "<key>apiKey</key>\n\t<string>¦</string>"),
        ('<add key="ApiKey" value="hunter2"/>', '<add key="ApiKey" value="¦"/>'),
        ("machine h login y\npassword zzz\nnext", "machine h login y\npassword ¦\nnext"),
        ("machine h\nlogin y\npassword zzz\nmachine g\npassword yyy login x", "machine h\nlogin y\npassword ¦\nmachine g\npassword ¦ login x"),
        ("default\n\tlogin y\n\taccount a\n\tpassword zzz", "default\n\tlogin y\n\taccount a\n\tpassword ¦"),
        ("login y\npassword zzz\n", "login y\npassword ¦\n"),
        ("db:\n  password:\n    hunter2\nlr: 1", "db:\n  password:\n    ¦\nlr: 1"),
        ("password: |-\n    hunter2\nlr: 1", "password: |-\n    ¦\nlr: 1"),
    ],
)  # fmt: skip
def test_a_secret_in_an_element_or_over_several_lines_is_masked_and_no_line_is_lost(text: str, masked: str):
    assert mask(text) == masked.replace("¦", MASK)
    assert mask(text).count("\n") == text.count("\n")


def test_a_key_over_several_lines_is_masked_and_the_lines_after_it_keep_their_numbers():
    body = "\n".join(["QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 2] * 20)
    text = f"one\n-----BEGIN RSA PRIVATE KEY-----\n{body}\nAB==\n-----END RSA PRIVATE KEY-----\nRuntimeError: x"
    masked = mask(text)
    assert "QUJDREVG" not in masked
    assert masked.count("\n") == text.count("\n")
    assert masked.endswith("\nRuntimeError: x")


def test_masking_twice_changes_nothing_more():
    for row in ROWS:
        for sample in row.samples:
            assert mask(mask(sample)) == mask(sample)


@pytest.mark.parametrize(
    "unit",
    ["a", "-eyJ", "://", "-----BEGIN PRIVATE KEY-----", "A: b\n", "token=", "SG.aaaaaaaaaaaaaaaaaaaa.", "curl -u ",
     "<password>", "<password>a", "<password ", "<name>password</name>\n", "machine a\n", "login a\n", "login\n", "password: |\n ", "password:\n ", "a.a.", "\n", "key='password' "],
)  # fmt: skip
def test_a_hostile_line_of_a_quarter_of_a_megabyte_is_masked_to_its_end(unit):
    every_word = " ".join(word for row in ROWS for word in row.words)
    text = every_word + (unit * (2**18 // len(unit)))
    with ends(SECONDS / 4):  # a quarter of a second; a quadratic pattern takes minutes
        masked = mask(f"{text}\nHF_TOKEN=abc123def456")
    assert masked.endswith(f"\nHF_TOKEN={MASK}")


def test_settings_are_masked_by_the_names_of_their_keys():
    settings = {
        "lr": 0.1, "tokenizer": "gpt2", "eos_token": "</s>", "max_tokens": 4096, "api_key": "plainword", "password": "",
        "db": {"password": "hunter2", "url": "postgres://me:hunter2@db/x"},
        "headers": [{"Authorization": "Bearer 0123456789abcdef"}],
        "secret_santa": True, "hub_token": "abcd1234efgh", "passwords": 3,
    }  # fmt: skip
    masked, places = mask_settings(settings)
    assert places == ["api_key", "db.password", "db.url", "headers[0].Authorization", "hub_token"]
    assert masked["db"] == {"password": MASK, "url": f"postgres://me:{MASK}@db/x"}
    assert {key: masked[key] for key in ("lr", "tokenizer", "eos_token", "max_tokens", "password", "secret_santa")} == {
        key: settings[key] for key in ("lr", "tokenizer", "eos_token", "max_tokens", "password", "secret_santa")
    }


SECRET = {
    "a registry in docker's file": (
        '{"auths": {"https://index.example/v1/": {"auth": "YWxpY2U6¦c2VjcmV0cGFzcw=="}}}',
        "YWxpY2U6",
    ),
    "over two lines": ('"auth":\n\t\t"YWxpY2U6¦c2VjcmV0cGFzcw=="', "YWxpY2U6"),
    "in a text of JSON": (r"{\"auth\": \"YWxpY2U6¦c2VjcmV0cGFzcw==\"}", "YWxpY2U6"),
    "docker's other tokens": ('"identitytoken": "eb1b7f2e-¦0123-4567"', "eb1b7f2e"),
    "a hexadecimal token": ("export GITHUB_PAT=0123456789abcdef¦0123456789abcdef01234567", "0123456789abcdef"),
    "one of Azure": ("AZURE_DEVOPS_EXT_PAT='abcdefghijklmnopqrst¦uvwxyz234567abcdefghijklmnopqrst'", "abcdefghijkl"),
    "Google's": ("gcloud: ya29.¦A0ARrdaM-0123456789_abcdefghijklmnop", "A0ARrdaM"),
    "Google's, to refresh": ("refresh 1//0¦gabcdefghijklmnopqrstuvwxyz-0123456789", "gabcdefghij"),
    "Vault's": ("VAULT hvs.¦CAESIJabcdefghijklmn0123456789", "CAESIJ"),
    "Databricks'": ("dapi¦0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    "a mailbox": ("SMTP_PASS=hunt¦er22", "hunter22"),
    "kubectl's": ("client-key-data: LS0tLS1CRUdJTiBS¦U0EgUFJJVkFURSBLRVk=", "LS0tLS1CRUdJ"),
}


@pytest.mark.parametrize(("text", "hidden"), SECRET.values(), ids=SECRET)
def test_a_secret_of_this_kind_does_not_stay(text: str, hidden: str):
    masked = mask(text.replace("¦", ""))

    assert hidden not in masked
    assert MASK in masked


def test_the_settings_of_docker_and_npm_are_masked_by_their_key_and_form():
    settings = {
        "auths": {"reg.example": {"auth": "YWxpY2U6aHVudGVyMg=="}},
        "auth": "kerberos",
        "_auth": "YWxpY2U6aHVudGVyMg==",
    }
    masked, places = mask_settings(settings)

    assert places == ["auths.reg.example.auth", "_auth"]
    assert masked == {"auths": {"reg.example": {"auth": MASK}}, "auth": "kerberos", "_auth": MASK}
