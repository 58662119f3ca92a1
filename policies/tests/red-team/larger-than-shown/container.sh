#!/bin/bash
#SBATCH --container=/srv/images/big
#SBATCH --mem=4G
./a
