#!/bin/bash
#SBATCH --job-name=cdo
#SBATCH --partition=compute
#SBATCH --account=ab0123
#SBATCH --mem=12G
#SBATCH --time=04:00:00
#SBATCH --output=cdo.%j.log

module load cdo nco
set -o errexit -o nounset -o pipefail

monthly() {
    local in=$1 out=${1%.nc}_mon.nc
    cdo -s -O -f nc4 -z zip_4 monmean -selname,tas,pr "$in" "$out"
    ncatted -O -h -a history,global,d,, "$out"
}

d=1980-01-01
end=1989-12-31
while [[ ! $d > $end ]]; do
    y=${d%%-*}
    monthly "era5/${y}.nc"
    d=$(date -I -d "$d + 1 year")
done
ncrcat -O era5/*_mon.nc era5_1980s_mon.nc
ncdump -h era5_1980s_mon.nc | sed -n '1,20p'
