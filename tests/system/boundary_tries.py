"""Programs that a user runs against the site's service: one call, everything that should be closed, and bad frames."""

CALL = """
import anyio, json, sys
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.transport.site_socket import SiteClient

async def main():
    words = json.loads(sys.argv[3])
    try:
        answer = await SiteClient(sys.argv[1], sys.argv[2], LocalFiles()).ask(words.pop("call"), words)
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(dict(answer)))

anyio.run(main)
"""

CLOSED = """
import ctypes, json, os, socket, sys
site, pid = sys.argv[1], int(sys.argv[2])
state, tickets, run = f"{site}/state", f"{site}/tickets", f"{site}/run"

def write(path):
    with open(path, "a") as file:
        file.write("x")

def put(path):
    with open(path, "x") as file:
        file.write("x")

def mine():
    with open("mine.yaml", "w") as file:
        file.write("limits: {}")
    return os.path.abspath("mine.yaml")

def ptrace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0):
        raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def listen():
    os.unlink(f"{run}/site.sock")
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(f"{run}/site.sock")

tries = {
    "list state": lambda: os.listdir(state),
    "read ledger": lambda: open(f"{state}/users/{os.getuid()}/ledger.sqlite3").read(),
    "write ledger": lambda: write(f"{state}/users/{os.getuid()}/ledger.sqlite3"),
    "write log": lambda: write(f"{state}/users/{os.getuid()}/decisions.jsonl"),
    "list tickets": lambda: os.listdir(tickets),
    "make a ticket": lambda: put(f"{tickets}/{'0' * 32}"),
    "bring one back": lambda: os.rename(f"{tickets}/used/{'0' * 32}", f"{tickets}/{'0' * 32}"),
    "link into tickets": lambda: os.symlink("/etc/passwd", f"{tickets}/{'1' * 32}"),
    "swap tickets": lambda: os.rename(tickets, f"{site}/other"),
    "swap state": lambda: os.rename(state, f"{site}/other"),
    "write policy": lambda: write(f"{site}/policy.yaml"),
    "replace policy": lambda: os.replace(mine(), f"{site}/policy.yaml"),
    "hide policy": lambda: os.rename(f"{site}/policy.yaml", "/tmp/policy.yaml"),
    "write site.toml": lambda: write(f"{site}/site.toml"),
    "write plugin": lambda: write(sys.argv[3] + "/job_submit.lua"),
    "write slurm.conf": lambda: write(sys.argv[3] + "/slurm.conf"),
    "write unit": lambda: write(f"{site}/units/slurm-agent-site.service"),
    "listen in its place": listen,
    "rename its socket": lambda: os.rename(f"{run}/site.sock", f"{run}/old"),
    "close its socket": lambda: os.chmod(f"{run}/site.sock", 0),
    "environment": lambda: open(f"/proc/{pid}/environ").read(),
    "memory": lambda: open(f"/proc/{pid}/mem", "rb").read(1),
    "write memory": lambda: open(f"/proc/{pid}/mem", "wb"),
    "maps": lambda: open(f"/proc/{pid}/maps").read(),
    "handles": lambda: os.listdir(f"/proc/{pid}/fd"),
    "its folder": lambda: os.listdir(f"/proc/{pid}/cwd/."),
    "its root": lambda: os.listdir(f"/proc/{pid}/root/."),
    "its stack": lambda: open(f"/proc/{pid}/stack").read(),
    "oom": lambda: write(f"/proc/{pid}/oom_score_adj"),
    "limits": lambda: __import__("resource").prlimit(pid, __import__("resource").RLIMIT_NOFILE, (3, 3)),
    "stop": lambda: os.kill(pid, 19),
    "kill": lambda: os.kill(pid, 9),
    "ptrace": lambda: ptrace(pid),
    "pidfd": lambda: __import__("signal").pidfd_send_signal(os.pidfd_open(pid), 9),
}
told = {}
for name, attempt in tries.items():
    try:
        told[name] = "went: " + repr(attempt())[:80]
    except OSError as error:
        told[name] = error.strerror if error.errno in (1, 13) else f"{type(error).__name__} {error.strerror}"
    except Exception as error:
        told[name] = f"{type(error).__name__} {error}"
print(json.dumps(told))
"""

HOSTILE = """
import json, os, socket, struct, sys
path, project = sys.argv[1:3]

def head(words, body): return struct.pack("!II", words, body)

def frame(words): return head(len(words), 0) + words

JUDGE = json.dumps({"call": "judge", "project": project, "arguments": {"script": "job.sh"}, "caller": ["a", "b", "cli"],
                    "analysed": [], "status_read": None, "dry": False, "facts": True}).encode()
BAD = [b"", b"\\0", b"GET / HTTP/1.0\\r\\n\\r\\n", head(2**32 - 1, 2**32 - 1), head(10, 0) + b"{", frame(b"[]"), frame(b"null"),
       frame(b"[" * 200000), frame(b'{"a":' * 5000), frame(b"1" * 100000), frame(b'{"call": "judge"}'), frame(b"\\xff\\xfe"),
       frame(json.dumps({"call": "judge", "project": "/" + "a" * 5000}).encode()),
       frame(json.dumps({"call": ["judge"], "project": {}}).encode()), frame(b'{"call":"settle","project":"/tmp","token":"../x"}'),
       frame(b'{"call":"question","project":"/tmp","id":"1 OR 1=1"}'), frame(JUDGE) + frame(b'{"real": 5}'),
       frame(JUDGE) + frame(b'{"real": "/etc/shadow", "stat": [1e308, "file", 1e308, -1, -1, null], "whole": true}'),
       frame(JUDGE) + frame(b'{"real": "/x", "stat": [NaN, "file", NaN, 0, 0, [1, 2]], "whole": true}'),
       frame(JUDGE) + frame(b'{"failed": {"a": 1}}'), frame(JUDGE) + head(4 * 2**20, 2 * 2**20)]
for sent in BAD:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(60)
        one.connect(path)
        try:
            one.sendall(sent)
            one.shutdown(socket.SHUT_WR)
            while one.recv(65536):
                pass
        except (BrokenPipeError, ConnectionResetError):
            pass
held = []
for number in range(60):  # and leave them open: some silent, some half a frame
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(60)
    one.connect(path)
    try:
        one.sendall([b"", b"\\0\\0", head(4 * 2**20, 0) + b"{" * (3 * 2**20), frame(JUDGE)][number % 4])
    except (BrokenPipeError, ConnectionResetError):
        pass
    held.append(one)
many = b'{"call":"judge","project":"/tmp","x":[' + b",".join([b"[]"] * 80_000) + b"]}"
for words in (many, many[:-2] + b",".join([b"[]"] * 1_000_000) + b"]}"):
    with socket.socket(socket.AF_UNIX) as one:  # a few bytes that would unfold to a hundred times as many
        one.connect(path)
        try:
            one.sendall(frame(words))
        except (BrokenPipeError, ConnectionResetError):
            pass
print("held", flush=True)
sys.stdin.read()
"""
