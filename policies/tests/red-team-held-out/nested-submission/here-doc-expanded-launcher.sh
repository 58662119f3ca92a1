#!/bin/bash
#SBATCH --job-name=here-doc-expanded-launcher
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tool=sbatch
cat > go.sh <<EOF
#!/bin/sh
exec $tool big.sh
EOF
sh go.sh
