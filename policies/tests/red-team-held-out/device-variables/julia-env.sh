#!/bin/bash
#SBATCH --job-name=julia-env
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
julia -e 'ENV["CUDA_VISIBLE_DEVICES"] = "1"; using CUDA; include("train.jl")'
