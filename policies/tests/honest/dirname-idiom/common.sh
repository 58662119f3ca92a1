info() { echo "$(date +%T) $*"; }
export PYTHONUNBUFFERED=1
