"""`site install`, `check` and `remove` on a system in a folder: shown before, done once, gone without a trace."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.server.site import site_layout
from slurm_agent_tools.server.site.site_config import SERVICE, SiteConfig, parse
from slurm_agent_tools.text.bounded_documents import toml
from slurm_agent_tools.transport import site_files

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("useradd") is None, reason="makes accounts in a folder, which root alone may"
)

PLACE = Path("/etc/slurm-agent-tools/site.toml")
PLUGIN = Path("/etc/slurm/job_submit.lua")


@pytest.fixture
def system(tmp_path) -> Path:
    """The folders of a system that has Slurm's account and nothing of the service."""
    for name in ("etc/slurm", "etc/systemd/system", "run", "var/lib", "usr/lib/systemd"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "usr/lib/systemd/systemd").touch()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nslurm:x:64030:64030::/:/usr/sbin/nologin\n")
    (tmp_path / "etc/group").write_text("root:x:0:\nslurm:x:64030:\n")
    (tmp_path / "etc/slurm/slurm.conf").write_text("ClusterName=lab\n")
    (tmp_path / "etc/slurm-agent-tools").mkdir()
    (tmp_path / "etc/slurm-agent-tools/policy.yaml").write_text("limits: {max_concurrent_jobs: 2}\n")
    return tmp_path


@pytest.fixture
def site(system, capsys):
    """Runs `site`: its exit code and what it printed."""

    def call(*words: str) -> tuple[int, str]:
        code = main.main(["site", *words, "--root", str(system)])
        caught = capsys.readouterr()
        return code, caught.out + caught.err

    return call


def tree(system: Path) -> dict[str, tuple[int, ...]]:
    """Everything but the backups that useradd makes, by owner, mode, time and size."""
    found = {}
    for path in sorted(system.rglob("*")):
        if path.parent == system / "etc" and path.name.startswith(("passwd", "group", "shadow", "gshadow", "sub")):
            continue
        seen = path.lstat()
        times = () if path.is_dir() else (seen.st_mtime_ns, seen.st_size)
        found[str(path.relative_to(system))] = (seen.st_uid, seen.st_gid, seen.st_mode, *times)
    return found


def test_without_yes_everything_is_shown_and_nothing_is_made(system, site):
    before = tree(system)
    code, said = site("install")
    assert code == 0
    assert tree(system) == before
    for part in ("useradd", "tickets  slurm-agent-site:slurm 2770", "NoNewPrivileges=yes", "SocketMode=0666",
                 "JobSubmitPlugins=lua", "setpriv --reuid=slurm-agent-site", str(PLUGIN)):  # fmt: skip
        assert part in said


def test_only_root_may_do_it(system, site, monkeypatch):
    before = tree(system)
    monkeypatch.setattr(site_files.os, "geteuid", lambda: 1000)
    for words in (["install", "--yes"], ["install"]):
        code, said = site(*words)
        assert (code, "--yes needs root" in said) == ((2, True) if "--yes" in words else (0, False))
    assert tree(system) == before


def test_installed_twice_is_the_same_as_once(system, site):
    assert site("install", "--yes")[0] == 0
    once = tree(system)
    code, said = site("install", "--yes")
    assert (code, tree(system)) == (0, once)
    assert "everything was there already" in said
    assert "  make " not in site("install")[1]

    code, said = site("check")
    assert code == 0
    assert said.startswith("as it should be: ")


def test_removed_twice_nothing_is_left(system, site):
    before = tree(system)
    accounts = (system / "etc/passwd").read_text(), (system / "etc/group").read_text()
    site("install", "--yes")
    (system / "var/lib/slurm-agent-tools/site/ledger.sqlite3").write_text("x")
    (system / "var/lib/slurm-agent-tools/tickets" / ("0" * 32)).write_text("x")

    shown = site("remove")[1]
    assert "account slurm-agent-site" in shown
    assert "--keep-log keeps it" in shown
    assert site("remove", "--yes")[0] == 0
    assert tree(system) == before
    assert ((system / "etc/passwd").read_text(), (system / "etc/group").read_text()) == accounts
    code, said = site("remove", "--yes")
    assert (code, "nothing is installed" in said) == (0, True)
    assert tree(system) == before


@pytest.mark.parametrize("key", ["state", "tickets", "socket"])
def test_a_folder_that_others_use_is_neither_taken_nor_removed(system, site, key):
    (system / "srv/data").mkdir(parents=True)
    (system / "srv/data/theirs").write_text("x")
    place = system / PLACE.relative_to("/")
    place.write_text(f'{key} = "/srv/data{"/site.sock" if key == "socket" else ""}"\n')
    before = tree(system)
    code, said = site("install", "--yes")
    assert (code, "is used by somebody else" in said) == (2, True)
    assert tree(system) == before
    assert site("remove", "--yes")[0] == 0
    assert (system / "srv/data/theirs").read_text() == "x"


def test_the_pages_group_must_be_there(system, site):
    place = system / PLACE.relative_to("/")
    place.write_text('page_origin = "https://approve.example.org"\npage_group = "www-data"\n')
    before = tree(system)
    code, said = site("install", "--yes")
    assert (code, "page_group: 'www-data' is no group of this machine" in said) == (2, True)
    assert tree(system) == before
    with (system / "etc/group").open("a") as groups:
        groups.write("www-data:x:33:\n")
    code, said = site("install")
    assert (code, "SocketGroup=www-data" in said, "--groups=www-data" in said) == (0, True, True)


def test_what_another_way_of_tickets_left_goes_too(system, site):
    before = tree(system)
    site("install", "--yes")
    (system / PLACE.relative_to("/")).write_text('tokens = "hmac"\n')
    site("install", "--yes")
    (system / "var/lib/slurm-agent-tools/controller/ticket.key.spent").write_text("x")
    assert site("remove", "--yes")[0] == 0
    assert tree(system) == before


def test_a_removal_that_was_cut_off_goes_on(system, site, monkeypatch):
    before = tree(system)
    site("install", "--yes")
    with monkeypatch.context() as patched:
        patched.setattr(site_files, "command", lambda argv: (_ for _ in ()).throw(OSError(28, argv[0])))
        assert site("remove", "--yes")[0] == 1
    assert site("remove", "--yes")[0] == 0
    assert tree(system) == before


def test_the_decision_log_stays_as_roots_where_that_is_asked_for(system, site):
    site("install", "--yes")
    state = system / "var/lib/slurm-agent-tools/site"
    (state / "records").mkdir()
    (state / "records/decisions.jsonl").write_text("{}\n")
    (state / "records/ledger.sqlite3").write_text("x")
    code, said = site("remove", "--yes", "--keep-log")
    assert code == 0
    assert "decisions.jsonl  root:root" in said
    left = [path for path in state.rglob("*") if path.is_file()]
    assert left == [state / "records/decisions.jsonl"]
    assert {path.stat().st_uid for path in (state, *state.rglob("*"))} == {0}


def test_a_plugin_that_no_lua_loads_is_not_put_in_place(system, site, monkeypatch):
    monkeypatch.setattr(site_layout, "job_submit_lua", lambda *_: "-- end of nothing\nend\n")
    code, said = site("install", "--yes")
    assert (code, "does not work in" in said) == (1, True)
    assert not (system / PLUGIN.relative_to("/")).exists()


def test_a_plugin_of_others_is_neither_replaced_nor_removed(system, site):
    theirs = system / PLUGIN.relative_to("/")
    theirs.write_text("-- the site's own\n")
    code, said = site("install", "--yes")
    assert (code, "is a plugin that somebody else wrote" in said) == (2, True)
    theirs.unlink()
    site("install", "--yes")
    theirs.write_text("-- the site's own\n")
    assert site("remove", "--yes")[0] == 0
    assert theirs.read_text() == "-- the site's own\n"


@pytest.mark.parametrize("line", ["JobSubmitPlugins=lua", "  jobsubmitplugins = cray,Lua  # agents"])
def test_the_plugin_stays_while_slurm_conf_names_it_since_the_controller_would_not_start(system, site, line):
    site("install", "--yes")
    before = tree(system)
    conf = system / "etc/slurm/slurm.conf"
    conf.write_text(f"ClusterName=lab\n{line}\n")
    code, said = site("remove", "--yes")
    assert (code, "still names the plugin" in said) == (2, True)
    assert {name: seen for name, seen in tree(system).items() if "slurm.conf" not in name}.items() <= before.items()
    conf.write_text("ClusterName=lab\n# JobSubmitPlugins=lua\n")
    assert site("remove", "--yes")[0] == 0


def test_a_plugin_that_changed_is_put_back_with_a_newer_time_which_alone_the_controller_notices(system, site):
    site("install", "--yes")
    plugin = system / PLUGIN.relative_to("/")
    sound = plugin.read_text()
    plugin.write_text(sound + "-- changed\n")
    ahead = plugin.stat().st_mtime + 1000
    os.utime(plugin, (ahead, ahead))
    code, said = site("check")
    assert (code, "says something else" in said) == (1, True)
    site("install", "--yes")
    assert plugin.read_text() == sound
    assert plugin.stat().st_mtime > ahead
    assert site("check")[0] == 0


def test_both_sides_get_the_same_key_each_for_itself_and_keep_it(system, site):
    (system / PLACE.relative_to("/")).write_text('tokens = "hmac"\n')
    site("install", "--yes")
    key = system / "etc/slurm-agent-tools/ticket.key"
    other = system / "var/lib/slurm-agent-tools/controller/ticket.key"
    text = key.read_text()
    assert other.read_text() == text
    assert len(text.strip()) == 64
    assert (key.stat().st_mode & 0o777, other.stat().st_mode & 0o777) == (0o400, 0o400)
    assert other.stat().st_uid == 64030 != key.stat().st_uid
    assert not (system / "var/lib/slurm-agent-tools/tickets").exists()
    assert text.strip() not in site("install", "--yes")[1] + site("install")[1] + site("check")[1]
    assert key.read_text() == text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: (root / "var/lib/slurm-agent-tools/site").chmod(0o755), "0755, not slurm-agent-site"),
        (lambda root: os.chown(root / "var/lib/slurm-agent-tools/tickets", 0, 0), "is 0:0 "),
        (lambda root: (root / "etc/systemd/system" / f"{SERVICE}.service").unlink(), "No such file"),
        (lambda root: (root / "etc/systemd/system" / f"{SERVICE}.socket").write_text("[Socket]"), "something else"),
        (lambda root: (root / "etc/slurm-agent-tools/policy.yaml").write_text("limits: {gpu: 1}"), "policy"),
        (lambda root: os.chown(root / "etc/slurm-agent-tools/policy.yaml", 1000, 0), "could be changed by others"),
        (lambda root: shell(root, "/bin/bash"), "its shell is /bin/bash"),
    ],
)
def test_check_tells_what_is_not_as_it_should_be_and_how_to_mend_it(system, site, change, said):
    site("install", "--yes")
    change(system)
    code, told = site("check")
    assert code == 1
    assert told.startswith("NOT AS IT SHOULD BE: 1 of ")
    assert said in told
    code, told = site("check", "--json")
    body = json.loads(told)
    wrong = [one for one in body["findings"] if one["outcome"] == "wrong"]
    assert (code, body["status"], len(wrong)) == (1, "wrong", 1)
    assert wrong[0]["mend"]


def shell(system: Path, path: str) -> None:
    file = system / "etc/passwd"
    lines = file.read_text().splitlines()
    file.write_text(
        "\n".join(f"{line.rpartition(':')[0]}:{path}" if SERVICE in line else line for line in lines) + "\n"
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [("slurm-agent-site:x:0:0::/:/usr/sbin/nologin", "number 0"), (f"{SERVICE}:x:1001:1001::/:/bin/bash", "/bin/bash")],
)
def test_an_account_that_is_somebody_is_not_taken(system, site, row, said):
    with (system / "etc/passwd").open("a") as file:
        file.write(row + "\n")
    code, told = site("install", "--yes")
    assert (code, said in told) == (2, True)


def test_the_sample_of_site_toml_names_every_key_with_its_default():
    lines = site_layout.site_toml().splitlines()
    keys = [line.removeprefix("# ") for line in lines if re.match(r"# \w+ = ", line)]
    assert parse(toml(site_layout.site_toml())) == parse(toml("\n".join(keys))) == SiteConfig()
    assert all(any(f"{name} " in line for line in lines) for name in SiteConfig.model_fields)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemds_own_checker_takes_the_units_and_finds_little_to_fear(tmp_path):
    config = SiteConfig(state=Path("/var/lib/a place/100%"))
    names = [f"{SERVICE}.socket", f"{SERVICE}.service"]
    (tmp_path / names[0]).write_text(site_layout.socket_unit(config))
    (tmp_path / names[1]).write_text(site_layout.service_unit(config, PLACE))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    words = ["systemd-analyze", "verify", *(str(tmp_path / name) for name in names)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert (done.returncode, SERVICE in done.stderr) == (0, False), done.stderr
    words = ["systemd-analyze", "security", "--no-pager", "--offline=yes", str(tmp_path / names[1])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=env)
    exposed = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert exposed is not None, done
    assert float(exposed[1]) <= MOST_EXPOSED, done.stdout


MOST_EXPOSED = 1.5
"""Of 10, as systemd counts it: what is left is the network, by which it asks Slurm, and Unix sockets."""
