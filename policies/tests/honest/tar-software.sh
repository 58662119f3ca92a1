#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

curl -LO https://example.org/blast.tar.gz
tar xzf blast.tar.gz
./blast-2.15/bin/blastn -query q.fa -db nt -out q.tsv -outfmt 6
