#!/bin/bash
#SBATCH -J plate
#SBATCH -n 4
#SBATCH -N 1
#SBATCH --mem=14G
#SBATCH -t 03:00:00
#SBATCH -L abaqus:8

unset SLURM_GTIDS
INPUT=plate_impact
WORKDIR=/scratch/$USER/abq.$SLURM_JOB_ID
mkdir -p $WORKDIR && cp $INPUT.inp $WORKDIR/ && cd $WORKDIR

node_list=$(scontrol show hostname ${SLURM_NODELIST} | sort -u)
mp_host_list="["
for host in ${node_list}; do
    mp_host_list="${mp_host_list}['$host', ${SLURM_CPUS_ON_NODE}],"
done
mp_host_list=$(echo ${mp_host_list} | sed -e "s/,$/]/")
echo "mp_host_list=${mp_host_list}" > abaqus_v6.env

abaqus job=$INPUT cpus=$SLURM_NTASKS memory="12 gb" mp_mode=mpi interactive
cp -p $INPUT.{odb,dat,sta,msg} "$SLURM_SUBMIT_DIR"/
cd "$SLURM_SUBMIT_DIR" && rm -rf "$WORKDIR"
