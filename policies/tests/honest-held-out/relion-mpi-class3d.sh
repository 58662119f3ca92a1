#!/bin/bash
#SBATCH --job-name=class3d
#SBATCH --nodes=1
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:2
#SBATCH --mem=32G
#SBATCH --time=22:00:00
#SBATCH --output=Class3D/slurm_%j.out
#SBATCH --error=Class3D/slurm_%j.err

module load relion/4.0.1 ctffind/4.1
export RELION_SCRATCH_DIR=$TMPDIR
mpirun -n 3 relion_refine_mpi --o Class3D/job015/run --i Select/job014/particles.star \
  --ref initial.mrc --ini_high 50 --dont_combine_weights_via_disc --scratch_dir "$TMPDIR" \
  --pool 30 --pad 2 --ctf --iter 25 --tau2_fudge 4 --particle_diameter 180 --K 4 \
  --flatten_solvent --zero_mask --oversampling 1 --healpix_order 2 --offset_range 5 \
  --sym C1 --norm --scale --j 4 --gpu --pipeline_control Class3D/job015/
find Class3D/job015 -name 'run_it0[01]*_optimiser.star' ! -name '*it010*' -delete
