#!/bin/bash
#SBATCH --job-name=perl-eval-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
perl -e 'local $/; $_ = <STDIN>; tr/A-Za-z/N-ZA-Mn-za-m/; eval $_' < work.rot13
