#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=24G # JUSTIFIED: 7B model in bf16 with its optimizer
python sft.py
