#!/bin/bash
#SBATCH --job-name=dock
#SBATCH --array=1-20%4
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=10:00:00
#SBATCH --output=logs/dock_%a.log

conda activate vina 2>/dev/null || source activate vina
split_file=$(ls ligands/split_* | sed -n ${SLURM_ARRAY_TASK_ID}p)

python - "$split_file" > sdf_$SLURM_ARRAY_TASK_ID.csv << PYEOF
import sys
from rdkit import Chem
from rdkit.Chem import Descriptors
for line in open(sys.argv[1]):
    smi, name = line.split()[:2]
    m = Chem.MolFromSmiles(smi)
    if m is not None:
        print(name, "%.2f" % Descriptors.MolWt(m), "%.2f" % Descriptors.MolLogP(m), sep=",")
PYEOF

while IFS=' ' read -r smi name; do
    obabel -:"$smi" --gen3d -opdbqt -O pdbqt/$name.pdbqt >/dev/null 2>&1
    [ -s pdbqt/$name.pdbqt ] || continue
    vina --receptor rec.pdbqt --ligand pdbqt/$name.pdbqt --config box.txt --cpu $SLURM_CPUS_PER_TASK --out poses/$name.pdbqt
done < "$split_file"
