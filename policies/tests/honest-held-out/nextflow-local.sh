#!/bin/bash
#SBATCH --job-name=nf-rnaseq
#SBATCH --cpus-per-task=16
#SBATCH --mem=16G
#SBATCH --time=24:00:00
#SBATCH --output=nf.%j.out

module load nextflow/23.10 singularity
export NXF_OPTS='-Xms500M -Xmx2G'
export NXF_SINGULARITY_CACHEDIR=$HOME/.singularity/nf
export NXF_HOME=$PWD/.nextflow_home

cat > local.config <<'CFG'
process {
  executor = 'local'
  cpus     = { check_max( 4, 'cpus' ) }
  errorStrategy = 'finish'
}
executor {
  name   = 'local'
  cpus   = 16
  memory = '15 GB'
}
singularity { enabled = true; autoMounts = true }
CFG

nextflow run nf-core/rnaseq -r 3.14.0 -profile singularity -c local.config \
  --input samplesheet.csv --outdir results --genome GRCm38 -resume
