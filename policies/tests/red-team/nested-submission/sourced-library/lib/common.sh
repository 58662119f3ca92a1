log() { echo "[$(date)] $*"; }
next() { :; }
[ -n "${CHAIN:-}" ] || sbatch chain.sh
