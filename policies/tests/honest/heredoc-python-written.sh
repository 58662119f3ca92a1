#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

cat > $TMPDIR/gen.py <<'EOF'
import random
random.seed(0)
with open("points.txt", "w") as f:
    for _ in range(1000):
        f.write(f"{random.random()} {random.random()}\n")
EOF
python $TMPDIR/gen.py
./solve points.txt
