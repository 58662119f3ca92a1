BEGIN TRANSACTION;
CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        plan_sha256 TEXT NOT NULL, plan TEXT NOT NULL, job_name TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL, expires REAL NOT NULL,
        channel TEXT, granted REAL, granted_by TEXT, signature TEXT, used REAL, declined REAL, request TEXT
    ) STRICT
    ;
INSERT INTO "approvals" VALUES('yes','alice','/home/alice/p','default','p','text','big',1777896000.0,1777896000.0,1777982400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE campaign_events (
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL, campaign TEXT NOT NULL,
        number INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, event TEXT NOT NULL,
        PRIMARY KEY (user, project, cluster, campaign, number)
    ) STRICT, WITHOUT ROWID
    ;
CREATE TABLE decided (token TEXT PRIMARY KEY, decision TEXT NOT NULL, advised TEXT) STRICT;
INSERT INTO "decided" VALUES('ended','{"approval": null, "id": "d", "pinned": [], "policy": {"layers": [], "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "version": "1"}, "request": {"array": null, "chdir": null, "components": 1, "cpus_per_gpu": null, "cpus_per_task": null, "dependency": null, "directives": [], "error": null, "export": null, "gpus": null, "gpus_per_node": null, "gpus_per_socket": null, "gpus_per_task": null, "interpreter": null, "justification": null, "memory_per_cpu": null, "memory_per_gpu": null, "memory_per_node": null, "name": null, "nodes": null, "nodes_max": null, "ntasks": null, "ntasks_per_gpu": null, "ntasks_per_node": null, "output": null, "partition": null, "problems": [], "qos": null, "requeue": null, "time_limit": null, "time_min": null}, "resources": {"array": null, "array_concurrency": null, "array_tasks": null, "cpus": null, "gpus": null, "memory_bytes": null, "memory_per_gpu_bytes": null, "memory_per_node_bytes": null, "nodes": null, "partition": null, "time_limit_seconds": null}, "rules": [], "verdict": "allow"}',NULL);
CREATE TABLE estimates (
    token TEXT NOT NULL, kind TEXT NOT NULL, said TEXT NOT NULL, PRIMARY KEY (token, kind)) STRICT, WITHOUT ROWID;
CREATE TABLE log_head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        lines INTEGER NOT NULL, sha256 TEXT NOT NULL, mark TEXT NOT NULL, broken TEXT
    ) STRICT
    ;
CREATE TABLE reads (
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        what TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (user, project, cluster, what)
    ) STRICT
    ;
INSERT INTO "reads" VALUES('alice','/home/alice/p','default','status',1777896000.0);
CREATE TABLE results (
        path TEXT NOT NULL,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        name TEXT NOT NULL, status TEXT NOT NULL, job_id TEXT, at REAL NOT NULL,
        PRIMARY KEY (user, project, path)
    ) STRICT
    ;
INSERT INTO "results" VALUES('results/a.json','alice','/home/alice/p','default','a','success','7',1777896000.0);
CREATE TABLE submissions (
        token TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        phase TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL,
        script_path TEXT NOT NULL, script_sha256 TEXT NOT NULL, request_sha256 TEXT NOT NULL,
        job_name TEXT NOT NULL, slots INTEGER NOT NULL, decision_id TEXT NOT NULL,
        run_id TEXT, job_id INTEGER, approval_id TEXT,
        requested TEXT NOT NULL, granted TEXT, stdout TEXT, stderr TEXT,
        estimated_start REAL, released REAL, delivered REAL,
        files TEXT NOT NULL, drift TEXT,
        seen TEXT, partition TEXT, started REAL, ended REAL, outcome TEXT, failed INTEGER,
        exit_code INTEGER, signal INTEGER, codes TEXT, run_seconds INTEGER, tasks INTEGER, usage TEXT,
        analysed REAL, category TEXT, diagnosis TEXT, cancellation TEXT,
        told TEXT,
        work TEXT, stage TEXT, configuration TEXT, parts TEXT, passed INTEGER, stage_note TEXT
    ) STRICT
    ;
INSERT INTO "submissions" VALUES('ended','alice','/home/alice/p','default','key-ended','released',1777896000.0,1777896000.0,'a.sh','s','r','a',1,'d',NULL,7,NULL,'{"array": null, "array_concurrency": null, "array_tasks": null, "cpus": null, "gpus": 2, "memory_bytes": 17179869184, "memory_per_gpu_bytes": null, "memory_per_node_bytes": null, "nodes": null, "partition": "gpu", "time_limit_seconds": null}',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,NULL,1777896000.0,1777896090.0,'COMPLETED',0,NULL,NULL,NULL,90,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "submissions" VALUES('open','alice','/home/alice/p','default','key-open','intent',1777896000.0,1777896000.0,'a.sh','s','r','a',1,'d',NULL,NULL,NULL,'{"array": null, "array_concurrency": null, "array_tasks": null, "cpus": null, "gpus": null, "memory_bytes": null, "memory_per_gpu_bytes": null, "memory_per_node_bytes": null, "nodes": null, "partition": null, "time_limit_seconds": null}',NULL,NULL,NULL,NULL,NULL,NULL,'{"train.py": "0000000000000000000000000000000000000000000000000000000000000000"}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE INDEX submissions_owner ON submissions (user, project, cluster, created);
CREATE INDEX submissions_key ON submissions (idempotency_key);
CREATE INDEX submissions_job ON submissions (job_id);
CREATE INDEX submissions_request ON submissions (request_sha256);
CREATE INDEX submissions_stage ON submissions (configuration) WHERE stage IS NOT NULL;
CREATE INDEX approvals_plan ON approvals (plan_sha256);
CREATE INDEX results_owner ON results (user, project, cluster);
COMMIT;
PRAGMA user_version = 5;
