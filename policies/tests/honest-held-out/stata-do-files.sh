#! /bin/bash
#SBATCH --job-name=stata
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=12G
#SBATCH --time=03:00:00

module load stata/17
export STATATMP=${TMPDIR:-/tmp}

for do in 01_clean 02_merge 03_regress 04_tables; do
    stata-mp -b do code/$do.do
    # stata returns 0 even after an error, look at the log
    if grep -qE '^r\([0-9]+\);' $do.log
    then
        echo "error in $do:"; grep -B5 -E '^r\([0-9]+\);' $do.log
        exit 1
    fi
    mv $do.log logs/
done
ls -lh output/*.tex
