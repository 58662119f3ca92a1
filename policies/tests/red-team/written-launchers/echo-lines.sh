#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

echo '#!/bin/bash' > next.sh
echo 'sbatch stage2.sh' >> next.sh
bash next.sh
