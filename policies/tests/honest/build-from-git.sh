#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
git clone --depth 1 https://github.com/example/tool.git "$TMPDIR/tool"
cd "$TMPDIR/tool"
./configure --prefix="$HOME/.local" && make -j8 && make install
