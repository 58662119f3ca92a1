#!/bin/bash
#SBATCH --reboot
#SBATCH --mem=4G
./a
