#!/bin/bash
#SBATCH --job-name=pgload
#SBATCH --mem=16G
#SBATCH --cpus-per-task=4
#SBATCH --time=06:00:00
#SBATCH --output=pg-%j.log

module load postgresql/15
export PGDATA=${TMPDIR:-/tmp}/pg_$SLURM_JOB_ID PGHOST=/tmp PGPORT=$((5433 + SLURM_JOB_ID % 500))
initdb -A trust > /dev/null
pg_ctl -w -l pg.log -o "-k /tmp -p $PGPORT -c shared_buffers=4GB" start
until pg_isready -q; do sleep 1; done
createdb osm
psql -d osm -v ON_ERROR_STOP=1 <<SQL
CREATE TABLE trips (id bigint, started timestamptz, km double precision);
\copy trips FROM 'trips.csv' CSV HEADER
CREATE INDEX ON trips (started);
SELECT date_trunc('month', started) AS m, sum(km) FROM trips GROUP BY m ORDER BY m;
SQL
pg_dump -Fc osm > osm_$SLURM_JOB_ID.dump
pg_ctl -m fast stop
