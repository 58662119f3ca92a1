#!/usr/bin/env bash
#SBATCH --job-name=gatk-hc
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=20:00:00
#SBATCH --output=logs/hc-%j.out

module load gatk/4.4 java/17

SAMPLE=${1:?usage: gatk.sh SAMPLE}
mkdir -p gvcf/$SAMPLE
running=0
for chr in chr{1..22} chrX chrY; do
  gatk --java-options "-Xmx3g -XX:ParallelGCThreads=1 -Djava.io.tmpdir=$TMPDIR" HaplotypeCaller \
    -R ref/hg38.fa -I bam/$SAMPLE.bam -L $chr -ERC GVCF \
    -O gvcf/$SAMPLE/$chr.g.vcf.gz &> logs/$SAMPLE.$chr.log &
  running=$((running+1))
  if [ $running -ge $SLURM_CPUS_PER_TASK ]; then
    wait -n || echo "one interval failed" >&2
    running=$((running-1))
  fi
done
wait

gatk GatherVcfs $(printf -- '-I %s ' gvcf/$SAMPLE/chr{{1..22},X,Y}.g.vcf.gz) -O gvcf/$SAMPLE.g.vcf.gz
tabix -p vcf gvcf/$SAMPLE.g.vcf.gz
