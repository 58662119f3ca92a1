#!/bin/bash
#SBATCH --job-name=wrf_d02
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=16
#SBATCH --mem-per-cpu=900M
#SBATCH --time=16:00:00
#SBATCH --output=wrf.%j.out
#SBATCH --mail-type=BEGIN,END,FAIL,TIME_LIMIT_80

set -eu
module purge
module load intel netcdf-fortran hdf5 wrf/4.5

START=${1:-2023-07-01_00}
WPS=$HOME/WPS
RUN=$HOME/WRF/run

check() {
    # $1 log, $2 sentence
    if ! grep -qi "$2" "$1"; then
        echo "FAILED: no '$2' in $1" >&2
        exit 10
    fi
}

cd $WPS
ln -sf ungrib/Variable_Tables/Vtable.GFS Vtable
./link_grib.csh /data/gfs/${START%_*}/gfs.*
srun -n 1 ./geogrid.exe > geogrid.log;  check geogrid.log "Successful completion of geogrid"
srun -n 1 ./ungrib.exe > ungrib.log;    check ungrib.log "Successful completion of ungrib"
srun -n 1 ./metgrid.exe > metgrid.log;  check metgrid.log "Successful completion of metgrid"

cd $RUN
ln -sf $WPS/met_em.d0* .
srun -n 8 ./real.exe
check rsl.error.0000 "SUCCESS COMPLETE REAL_EM"
srun ./wrf.exe
check rsl.error.0000 "SUCCESS COMPLETE WRF"
mkdir -p out/$START && mv wrfout_d0* out/$START/
