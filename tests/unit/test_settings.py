import json
from pathlib import Path
from typing import get_origin

import pytest
from pydantic import BaseModel
from tests.unit.settings_project import empty_project, write

from slurm_agent_tools import settings
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.settings.setting_sources import FILE_NAME


@pytest.fixture
def project(tmp_path, monkeypatch):
    return empty_project(tmp_path, monkeypatch)


def test_what_is_set_nowhere_is_the_default(project):
    found = settings.load()
    assert (found.tool_prefix, found.log_level, found.policy, found.slurm.read_timeout) == ("", "warning", None, 6.0)
    assert found.project_root == project


def test_the_file_counts_before_the_default_and_the_environment_before_the_file(project, monkeypatch):
    write(project, 'log_level = "info"\n[slurm]\nread_timeout = 3\ncache_seconds = 4\n')
    monkeypatch.setenv("SLURM_AGENT_SLURM__CACHE_SECONDS", "5")
    monkeypatch.setenv("SLURM_AGENT_TOOL_PREFIX", "slurm_agent_")
    found = settings.load()
    assert (found.log_level, found.tool_prefix) == ("info", "slurm_agent_")
    assert (found.slurm.read_timeout, found.slurm.cache_seconds, found.slurm.poll_scale) == (3, 5, 1)


def test_an_empty_variable_is_not_set(project, monkeypatch):
    write(project, 'log_level = "info"\n')
    monkeypatch.setenv("SLURM_AGENT_LOG_LEVEL", "")
    assert settings.load().log_level == "info"


def test_a_dotenv_file_counts_for_nothing(project):
    (project / ".env").write_text("SLURM_AGENT_LOG_LEVEL=debug\n")
    assert settings.load().log_level == "warning"


@pytest.mark.parametrize(
    ("text", "named"),
    [("colour = 1\n", "colour"), ("[slurm]\nread_timeuot = 1\n", "slurm.read_timeuot"), ("[other]\nx = 1\n", "other")],
)
def test_an_unknown_key_is_named_with_the_file(project, text, named):
    write(project, text)
    with pytest.raises(ConfigError) as caught:
        settings.load()
    assert caught.value.field == named
    assert FILE_NAME in caught.value.hint


@pytest.mark.parametrize(
    ("text", "named", "value"),
    [
        ('polcy = "x"\n', "polcy", "x"),
        ('log_level = "loud"\n', "log_level", "loud"),
        ("[slurm]\nread_timeout = -1\n", "slurm.read_timeout", -1),
        ('[slurm]\npoll_scale = "fast"\n', "slurm.poll_scale", "fast"),
        ('tool_prefix = "x"\n', "tool_prefix", "x"),
    ],
)
def test_a_bad_value_in_the_file_is_named(project, text, named, value):
    write(project, text)
    with pytest.raises(ConfigError) as caught:
        settings.load()
    assert (caught.value.field, caught.value.value) == (named, value)


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("SLURM_AGENT_LOG_LEVEL", "loud", "log_level"),
        ("SLURM_AGENT_SLURM__READ_TIMEOUT", "soon", "slurm.read_timeout"),
        ("SLURM_AGENT_SLURM__NOTHING", "1", "slurm.nothing"),
    ],
)
def test_a_bad_variable_is_named_with_its_full_name(project, monkeypatch, variable, value, named):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        settings.load()
    assert (caught.value.field, caught.value.value) == (named, value)
    assert variable in caught.value.hint


def test_a_name_that_is_no_setting_is_told_in_plain_words(project):
    write(project, "[slurm]\nspeed = 3\n")
    with pytest.raises(ConfigError, match=r"slurm\.speed: belongs to no setting"):
        settings.load()


@pytest.mark.parametrize(
    ("variable", "mend"),
    [
        ("SLURM_AGENT_POLCY", "Did you mean SLURM_AGENT_POLICY?"),
        ("SLURM_AGENT_SLRUM__CONF", "Did you mean SLURM_AGENT_SLURM?"),
        ("SLURM_AGENT_XYZ", "slurm-agent-tools doctor --settings lists them."),
    ],
)
def test_a_misspelt_variable_is_an_error_and_no_wish_without_effect(project, monkeypatch, variable, mend):
    monkeypatch.setenv("SLURM_AGENT_DEVCLUSTER", "/tmp/other")  # not a setting, and known
    settings.load()
    monkeypatch.setenv(variable, "strict.yaml")
    with pytest.raises(ConfigError, match="belongs to no setting") as caught:
        settings.load()
    assert (caught.value.field, caught.value.hint) == (variable, mend)


def test_a_whole_table_may_be_one_variable_and_its_entries_may_be_others(project, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", '{"far": {"host": "login", "remote_root": "work"}}')
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS__FAR__PORT", "2222")
    far = settings.load().clusters["far"]
    assert (far.host, far.remote_root, far.port) == ("login", "work", 2222)


def test_every_setting_that_holds_others_may_be_given_whole():
    nested = {
        name for name, info in settings.Settings.model_fields.items()
        if get_origin(info.annotation) is dict or (isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel))
    }  # fmt: skip
    assert nested | {"toolsets", "dry_run"} == set(settings._TABLES)  # lists by themselves


def test_a_table_that_is_no_json_is_named(project, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_SLURM", "{read_timeout}")
    with pytest.raises(ConfigError, match=r"SLURM_AGENT_SLURM: .* is not JSON"):
        settings.load()


def test_a_file_that_is_no_toml_is_named(project):
    write(project, "log_level = \n")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        settings.load()
    assert str(project / FILE_NAME) in str(caught.value.value)


def test_a_root_that_is_no_folder_is_refused(project, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(project / "nowhere"))
    with pytest.raises(ConfigError, match="project_root"):
        settings.load()


def test_the_root_is_found_upward_through_links(project, monkeypatch):
    (project / "sub" / "deep").mkdir()
    (project / "link").symlink_to(project / "sub")
    assert settings.find_root(project / "link" / "deep") == project.resolve()
    monkeypatch.chdir(project / "sub")
    assert settings.load().project_root == project.resolve()


def test_a_folder_with_git_is_a_root(tmp_path):
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "a" / "b").mkdir()
    assert settings.find_root(tmp_path / "a" / "b") == (tmp_path / "a").resolve()


def test_the_state_lies_where_the_user_keeps_state(project, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert settings.load().state_dir == Path("/var/state/slurm-agent-tools")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert settings.state_home() == Path.home() / ".local" / "state"


def test_settings_do_not_change(project):
    with pytest.raises(ValueError, match="frozen"):
        settings.load().log_level = "debug"


def test_the_environment_may_name_programs_anywhere(project, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", str(project / "bin"))
    assert settings.load().slurm.bin_dir == project / "bin"


def test_rates_need_their_currency_and_no_price_is_below_nothing(project, monkeypatch):
    write(project, '[rates]\ncurrency = "EUR"\ncpu_hour = 0.02\n[rates.gpu_hour]\na100 = 1.5\n')
    monkeypatch.setenv("SLURM_AGENT_RATES__GPU_HOUR__OTHER", "1")
    assert settings.load().rates.gpu_hour == {"a100": 1.5, "other": 1.0}
    for text in ("cpu_hour = 1.0", 'currency = "EUR"\ncpu_hour = -1.0', 'currency = "EUR"\ngpu_hour = {a100 = inf}'):
        write(project, f"[rates]\n{text}\n")
        with pytest.raises(ConfigError, match=r"^rates"):
            settings.load()


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://user@a", "http://a?b", "file:///etc/passwd", "a:9090"])
def test_gpu_figures_come_from_a_plain_address(project, monkeypatch, url):
    monkeypatch.setenv("SLURM_AGENT_GPU_METRICS__URL", url)
    with pytest.raises(ConfigError, match=r"^gpu_metrics\.url"):
        settings.load()
    monkeypatch.setenv("SLURM_AGENT_GPU_METRICS__URL", "http://prometheus.site:9090/here")
    assert settings.load().gpu_metrics.url == "http://prometheus.site:9090/here"


def cluster(**names: str) -> str:
    return json.dumps({"lab": {"host": "login.cluster.org", "user": "me@uni.edu", "remote_root": "work", **names}})


@pytest.mark.parametrize("name", ["host", "user"])
@pytest.mark.parametrize(
    "value",
    ["`touch x`", "a;b", "$(id)", "a b", "-oProxyCommand=id", "a|b", "a\\", "a'b", 'a"b', "a\nb", "", "a\n", "a\x00",
     "\x1b[2J", "a" * 300, "b\u00fcro", "login\u2024org", " a", "a/b", "a,b", "a%h b", "{a}", "*"],
)  # fmt: skip
def test_a_host_and_a_user_are_names_and_nothing_that_a_shell_could_run(project, monkeypatch, name, value):
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", cluster(**{name: value}))
    with pytest.raises(ConfigError, match=f"{name} .* is more than a name"):
        settings.load()


@pytest.mark.parametrize("host", ["[a]", "fe80::1%a/b", "lab@other", "a:22", "%h", "::1%$(id)"])
def test_a_host_carries_no_user_no_port_and_no_token(project, monkeypatch, host):
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", cluster(host=host))
    with pytest.raises(ConfigError, match=r"host .* is more than a name"):
        settings.load()


@pytest.mark.parametrize("host", ["lab", "login-1.cluster.org", "10.0.0.7", "fe80::1%eth0", "[::1]", "_gw", "a" * 253])
def test_hosts_are_taken_as_people_write_them(project, monkeypatch, host):
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", cluster(host=host, user="ada.l+x@uni.edu"))
    assert settings.load().clusters["lab"].host == host


def test_a_memory_server_is_a_command_or_an_address(project, monkeypatch):
    write(project, "[memory]\ntimeout = 5\n")
    assert not settings.load().memory.on
    monkeypatch.setenv("SLURM_AGENT_MEMORY__COMMAND", '["memory", "server"]')
    assert (settings.load().memory.command, settings.load().memory.timeout) == (("memory", "server"), 5)
    monkeypatch.setenv("SLURM_AGENT_MEMORY__URL", "https://host/mcp")
    with pytest.raises(ConfigError, match="not both"):
        settings.load()
    monkeypatch.delenv("SLURM_AGENT_MEMORY__COMMAND")
    assert settings.load().memory.on
    monkeypatch.setenv("SLURM_AGENT_MEMORY__URL", "https://me:secret@host/mcp")
    with pytest.raises(ConfigError, match=r"^memory\.url"):
        settings.load()


def test_toolsets_are_all_switched_on_and_a_file_or_the_environment_leaves_some_out(project, monkeypatch):
    assert settings.load().toolsets == settings.TOOLSETS == ("core", "campaigns", "planning", "fleet", "files")
    write(project, 'toolsets = ["core", "fleet"]\n')
    assert settings.load().toolsets == ("core", "fleet")
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["core"]')
    assert settings.load().toolsets == ("core",)


@pytest.mark.parametrize(("text", "named"), [('["fleet"]', "toolsets"), ('["core", "cheese"]', "toolsets.1")])
def test_toolsets_without_the_core_or_with_a_name_that_is_none_are_an_error(project, text, named):
    write(project, f"toolsets = {text}\n")
    with pytest.raises(ConfigError) as caught:
        settings.load()
    assert caught.value.field == named
