#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

julia -e 'ENV["CUDA_VISIBLE_DEVICES"] = "1"; include("run.jl")'
