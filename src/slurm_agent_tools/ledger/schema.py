"""The ledger's tables, one migration after the other; `PRAGMA user_version` counts those that were applied."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE submissions (
        token TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        phase TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL,
        script_path TEXT NOT NULL, script_sha256 TEXT NOT NULL, request_sha256 TEXT NOT NULL,
        job_name TEXT NOT NULL, slots INTEGER NOT NULL, decision_id TEXT NOT NULL,
        run_id TEXT, job_id INTEGER, request_json TEXT NOT NULL, reply_json TEXT,
        outcome TEXT, failed INTEGER, analysed REAL, category TEXT
    ) STRICT;
    CREATE INDEX submissions_owner ON submissions (user, project, cluster, created);
    CREATE INDEX submissions_key ON submissions (idempotency_key);
    CREATE INDEX submissions_job ON submissions (job_id);
    CREATE TABLE reads (
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        what TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (user, project, cluster, what)
    ) STRICT;
    CREATE TABLE results (
        path TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        name TEXT NOT NULL, status TEXT NOT NULL, job_id TEXT, at REAL NOT NULL
    ) STRICT;
    """,
    """
    ALTER TABLE submissions ADD COLUMN files_json TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE submissions ADD COLUMN drift_json TEXT;
    ALTER TABLE submissions ADD COLUMN run_seconds INTEGER;
    ALTER TABLE submissions ADD COLUMN approval_id TEXT;
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        plan_sha256 TEXT NOT NULL, plan TEXT NOT NULL, job_name TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL, expires REAL NOT NULL,
        channel TEXT, granted REAL, granted_by TEXT, signature TEXT, used REAL, declined REAL
    ) STRICT;
    CREATE INDEX approvals_plan ON approvals (plan_sha256);
    """,
    """
    ALTER TABLE submissions ADD COLUMN delivered REAL;
    CREATE INDEX submissions_request ON submissions (request_sha256);
    """,
    """
    ALTER TABLE submissions ADD COLUMN partition TEXT;
    ALTER TABLE submissions ADD COLUMN seen TEXT;
    ALTER TABLE submissions ADD COLUMN started REAL;
    ALTER TABLE submissions ADD COLUMN ended REAL;
    ALTER TABLE submissions ADD COLUMN exit_code INTEGER;
    ALTER TABLE submissions ADD COLUMN signal INTEGER;
    ALTER TABLE submissions ADD COLUMN tasks INTEGER;
    ALTER TABLE submissions ADD COLUMN usage_json TEXT;
    CREATE INDEX results_owner ON results (user, project, cluster);
    """,
    """
    ALTER TABLE submissions ADD COLUMN told TEXT;
    """,
    """
    ALTER TABLE submissions ADD COLUMN diagnosis_json TEXT;
    ALTER TABLE submissions ADD COLUMN cancel_json TEXT;
    """,
    # A path is one in its project: two projects may have the same.
    """
    CREATE TABLE results_by_project (
        path TEXT NOT NULL,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        name TEXT NOT NULL, status TEXT NOT NULL, job_id TEXT, at REAL NOT NULL,
        PRIMARY KEY (user, project, path)
    ) STRICT;
    INSERT INTO results_by_project SELECT path, user, project, cluster, name, status, job_id, at FROM results;
    DROP TABLE results;
    ALTER TABLE results_by_project RENAME TO results;
    CREATE INDEX results_owner ON results (user, project, cluster);
    """,
)
