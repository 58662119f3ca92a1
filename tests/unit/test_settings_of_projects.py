"""What the project's file of settings must not say, who else may say it, and that a path means what was checked."""

import json
import re
from pathlib import Path

import pytest
from tests.unit.settings_project import empty_project, write

from slurm_agent_tools import settings
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.settings import setting_sources
from slurm_agent_tools.settings.setting_sources import FILE_NAME


@pytest.fixture
def project(tmp_path, monkeypatch):
    return empty_project(tmp_path, monkeypatch)


GUARDED = {
    "project_root": '"/"', "state_dir": '"/tmp/mine"', "slurm.conf": '"/tmp/slurm.conf"', "slurm.bin_dir": '"/tmp/bin"',
    "clusters.lab.host": '"login"', "clusters.lab.user": '"root"', "clusters.lab.port": "22",
    "clusters.lab.remote_root": '"/"', "clusters.lab.ssh_config": '"/tmp/config"',
    "clusters.lab.known_hosts": '"/tmp/known"', "clusters.lab.slurm.bin_dir": '"/tmp/bin"',
    "clusters.lab.slurm.conf": '"/tmp/slurm.conf"', "http.listen": '"0.0.0.0:80"', "http.hosts": '["evil.example"]',
    "http.proxy": '["evil.example"]', "http.origins": '["https://evil.example"]', "http.tls_cert": '"/site/x.pem"',
    "http.tls_key": '"/site/x.pem"', "gpu_metrics.url": '"http://a"', "gpu_metrics.query": '"up"',
    "gpu_metrics.series": '"up"', "gpu_metrics.job_label": '"job"',
    "memory.command": '["sh"]', "memory.url": '"http://a"', "memory.env": '["HOME"]', "memory.token_env": '"T"',
    "dry_run": '["sh"]', "fleet.quotas": '"all"', "http.open_metrics": "true", "fleet.gpu_steps": "true",
    "notify.least": '"critical"', "fleet.idle_minutes": "1440", "gpu_metrics.timeout": "0.001",
    "site_socket": '"/tmp/mine.sock"', "notify.env": '["TOKEN"]', "notify.file": '"/a"', "notify.quiet_hours": '"00:00-23:59"',
}  # fmt: skip


def table(name: str, value: str) -> str:
    """One setting as it stands in a file."""
    *above, last = name.split(".")
    return f"[{'.'.join(above)}]\n{last} = {value}\n" if above else f"{last} = {value}\n"


@pytest.mark.proves("paths-stay-inside")
@pytest.mark.parametrize("form", ["table", "dotted", "inline"])
@pytest.mark.parametrize(("name", "value"), GUARDED.items(), ids=GUARDED)
def test_what_decides_who_calls_what_runs_and_where_is_not_for_the_project_to_say(project, name, value, form):
    """An agent that may write the project would choose it."""
    first, _, rest = name.partition(".")
    inline = f"{first} = {{ {rest} = {value} }}\n" if rest else f"{name} = {value}\n"
    write(project, {"table": table(name, value), "dotted": f"{name} = {value}\n", "inline": inline}[form])
    with pytest.raises(ConfigError, match=rf"^{re.escape(name)}:?.* cannot be set in {project / FILE_NAME}") as caught:
        settings.load()
    hidden = name.startswith("notify.")  # an address may stand where its name should
    assert json.dumps(caught.value.value) == ("null" if hidden else value)
    assert f"SLURM_AGENT_{name.replace('.', '__').upper()}" in caught.value.hint
    assert ("settings.toml" in caught.value.hint) == (name != "project_root")


def test_every_setting_is_either_harmless_or_guarded(project):
    """A new one is guarded until somebody has thought about it."""
    known = setting_sources.names(settings.Settings)
    guarded = {name.replace(".lab.", ".*.") for name in GUARDED}
    assert {name for name in known if not setting_sources.in_project(name)} == guarded


@pytest.mark.parametrize(
    "text",
    ['"slurm".bin_dir = "/tmp/bin"', '[clusters."a.b"]\nhost = "h"\n', '[clusters."a\\u0000b"]\nhost = "h"\n',
     '[clusters."*"]\nhost = "h"\n', "slurm.bin_dir.x = 1", "slurm = {bin_dir = {}}"],
)  # fmt: skip
def test_no_spelling_of_a_name_is_a_way_around(project, text):
    write(project, text)
    with pytest.raises(ConfigError, match="cannot be set in"):
        settings.load()


def test_what_is_harmless_may_be_said_by_the_project(project):
    said = "[clusters.lab]\nconnect_timeout = 5\n[clusters.lab.slurm]\nread_timeout = 2\n[http]\nper_minute = 60\n"
    write(project, said)
    found = settings.load()
    assert (found.clusters["lab"].connect_timeout, found.clusters["lab"].slurm.read_timeout) == (5, 2)
    assert found.http.per_minute == 60


@pytest.mark.parametrize("where", ["../strict.yaml", "/etc/passwd", "policies/../../strict.yaml"])
def test_the_project_names_no_policy_that_lies_outside(project, where):
    """What is wrong with a policy is quoted: a name of any file would show lines of it."""
    write(project, f'policy = "{where}"\n')
    with pytest.raises(ConfigError, match=r"^policy: .* lies outside of the project"):
        settings.load()
    write(project, 'policy = "policies/x.yaml"\n')
    assert settings.load().policy == Path("policies/x.yaml")


# --- the user's file and the site's -----------------------------------------------------------------------------------


def of_user(text: str) -> Path:
    path = setting_sources.user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.fixture
def site(tmp_path_factory, monkeypatch):
    path = tmp_path_factory.mktemp("etc") / "settings.toml"
    monkeypatch.setattr(setting_sources, "SITE", path)
    return path


def test_what_people_say_counts_before_the_project_and_the_environment_before_all(project, site, monkeypatch):
    write(project, 'log_level = "info"\nmail_user = "project"\ntool_prefix = "slurm_agent_"\n')
    site.write_text('log_level = "warning"\nmail_user = "site"\npolicy = "/etc/strict.yaml"\n')
    of_user('log_level = "error"\nmail_user = "user"\n')
    monkeypatch.setenv("SLURM_AGENT_LOG_LEVEL", "debug")
    found = settings.load()
    assert (found.log_level, found.mail_user) == ("debug", "user")
    assert (found.policy, found.tool_prefix) == (Path("/etc/strict.yaml"), "slurm_agent_")


def test_the_user_names_a_cluster_and_each_project_its_folder_there(project, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / FILE_NAME).write_text("")
    of_user(
        '[clusters.lab]\nhost = "login"\nremote_root = "usual"\n'
        f'[projects."{project}".clusters.lab]\nremote_root = "thesis"\n'
    )
    assert settings.load().clusters["lab"].remote_root == "thesis"
    assert settings.load(other).clusters["lab"].remote_root == "usual"


def test_a_project_adds_to_a_cluster_of_its_user_and_takes_nothing_away(project):
    of_user('[clusters.lab]\nhost = "login"\nremote_root = "work"\nidle_seconds = 9\n')
    write(project, "[clusters.lab]\nconnect_timeout = 5\nidle_seconds = 1\n")
    found = settings.load().clusters["lab"]
    assert (found.host, found.connect_timeout, found.idle_seconds) == ("login", 5, 9)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_of_people_that_others_could_write_is_refused(project, site, mode):
    path = of_user('log_level = "info"\n')
    path.chmod(mode)
    with pytest.raises(ConfigError, match="could be changed by others"):
        settings.load()
    path.chmod(0o600)
    site.write_text('log_level = "info"\n')
    site.chmod(mode)
    with pytest.raises(ConfigError, match="could be changed by others"):
        settings.load()


def test_a_file_of_the_user_that_lies_in_the_project_is_one_that_an_agent_may_write(project, monkeypatch):
    monkeypatch.setenv("HOME", str(project))
    path = of_user('[slurm]\nbin_dir = "/tmp/bin"\n')
    with pytest.raises(ConfigError, match=rf"cannot be set in {path}"):
        settings.load()
    of_user(f'[projects."{project}".slurm]\nbin_dir = "/tmp/bin"\n')
    assert settings.load().slurm.bin_dir is None


def test_the_folder_of_a_project_is_said_by_the_environment_alone(project):
    path = of_user('project_root = "/tmp"\n')
    with pytest.raises(ConfigError, match=rf"^project_root: .*cannot be set in {path}"):
        settings.load()


def test_an_unknown_name_in_the_file_of_the_user_is_an_error(project):
    of_user('polcy = "x"\n')
    with pytest.raises(ConfigError, match=r"^polcy: belongs to no setting"):
        settings.load()


# --- paths that mean one thing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SLURM__BIN_DIR", "SLURM__CONF", "STATE_DIR"])
def test_a_tilde_is_the_home_folder_once_and_never_a_folder_of_that_name(project, monkeypatch, name):
    """`~/bin` was checked as the home folder and used as a folder `~` of the project."""
    monkeypatch.setenv(f"SLURM_AGENT_{name}", "~/x")
    found = settings.load()
    value = {"SLURM__BIN_DIR": found.slurm.bin_dir, "SLURM__CONF": found.slurm.conf, "STATE_DIR": found.state_dir}[name]
    assert value == Path.home() / "x"
    monkeypatch.setenv("HOME", "/elsewhere")
    assert value != Path("~/x").expanduser()


@pytest.mark.parametrize("value", ["bin", "./bin", "../bin", "$HOME/bin", "~nobody-of-this-name/bin"])
def test_a_path_whose_meaning_depends_on_where_it_is_used_is_refused(project, monkeypatch, value):
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", value)
    with pytest.raises(ConfigError, match=r"^slurm\.bin_dir: .*(no whole path|home folder of nobody)"):
        settings.load()


def test_a_path_on_a_cluster_is_not_read_as_one_here(project):
    far = '[clusters.lab]\nhost = "login"\nremote_root = "work"\n[clusters.lab.slurm]\nbin_dir = "{}"\n'
    of_user(far.format("~/slurm/bin"))
    with pytest.raises(ConfigError, match="is a path on the cluster: begin it with /"):
        settings.load()
    of_user(far.format("/opt/slurm/bin"))
    assert settings.load().clusters["lab"].slurm.bin_dir == Path("/opt/slurm/bin")


def test_a_folder_on_the_cluster_is_told_without_control_characters(project):
    of_user('[clusters.lab]\nhost = "login"\nremote_root = "a\\u001bb"\n')
    with pytest.raises(ConfigError, match="control character"):
        settings.load()


@pytest.mark.parametrize("folder", ["sub", "module"])
def test_a_file_of_settings_in_a_subfolder_names_no_program_of_the_repository(project, folder):
    """A submodule, or a file that an agent put there: what lies above it was outside, and taken."""
    (project / "bin").mkdir()
    (project / folder).mkdir(exist_ok=True)
    (project / folder / FILE_NAME).write_text(f'[slurm]\nbin_dir = "{project}/bin"\n')
    with pytest.raises(ConfigError, match=r"^slurm\.bin_dir: .*cannot be set in"):
        settings.load(project / folder)
