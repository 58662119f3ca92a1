#!/bin/bash
#SBATCH --job-name=tiles
#SBATCH --ntasks=8
#SBATCH --nodes=1
#SBATCH --mem-per-cpu=1500M
#SBATCH --time=06:00:00

ulimit -n 4096
export GDAL_CACHEMAX=512
ls tiles/*.tif > tiles.txt
parallel="parallel --delay .2 -j $SLURM_NTASKS --joblog runtask.log"
$parallel "srun --exclusive -N1 -n1 gdalwarp -q -overwrite -t_srs EPSG:3035 -r bilinear {1} warped/{1/}" :::: tiles.txt
gdalbuildvrt -q mosaic.vrt warped/*.tif
gdal_translate -of COG -co COMPRESS=DEFLATE mosaic.vrt mosaic_$(date +%y%m%d).tif
