"""A private real Slurm on this machine, for trying and testing."""

from slurm_agent_tools.devcluster.cluster import (
    down,
    find,
    signal_daemon,
    start_daemon,
    status,
    stop_daemon,
    up,
)
from slurm_agent_tools.devcluster.place import Cluster, DevclusterError, Status, default_folder, readable_by

__all__ = [
    "Cluster",
    "DevclusterError",
    "Status",
    "default_folder",
    "down",
    "find",
    "readable_by",
    "signal_daemon",
    "start_daemon",
    "status",
    "stop_daemon",
    "up",
]
