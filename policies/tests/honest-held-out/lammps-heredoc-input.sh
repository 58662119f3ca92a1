#!/bin/sh
#SBATCH --job-name=lj-melt
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=16
#SBATCH --mem=12G
#SBATCH --time=02:00:00
#SBATCH --output=lammps-%j.out

. /etc/profile.d/modules.sh
module load openmpi/4.1 lammps/20230802

T=${T:-1.44}
cat > in.melt.$SLURM_JOB_ID << EOF
# 3d Lennard-Jones melt
units           lj
atom_style      atomic
lattice         fcc 0.8442
region          box block 0 60 0 60 0 60
create_box      1 box
create_atoms    1 box
mass            1 1.0
velocity        all create $T 87287 loop geom
pair_style      lj/cut 2.5
pair_coeff      1 1 1.0 1.0 2.5
neighbor        0.3 bin
neigh_modify    delay 0 every 20 check no
fix             1 all nve
variable        s loop 10
label           again
run             1000
next            s
jump            SELF again
thermo          100
EOF

srun lmp -in in.melt.$SLURM_JOB_ID -log log.$SLURM_JOB_ID.lammps -var T $T
