#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
julia -e 'ENV["CUDA_VISIBLE_DEVICES"] = "1"; include("run.jl")'
