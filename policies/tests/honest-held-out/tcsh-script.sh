#!/bin/tcsh
#SBATCH --job-name=amberprep
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --output=prep.%j

source /usr/share/Modules/init/tcsh
module load amber/22
setenv WORK /scratch/$USER/prep
mkdir -p $WORK
foreach f ( ligands/*.mol2 )
   set b = $f:t:r
   echo "preparing $b"
   antechamber -i $f -fi mol2 -o $WORK/$b.prepi -fo prepi -c bcc -s 2
   parmchk2 -i $WORK/$b.prepi -f prepi -o $WORK/$b.frcmod
   if ( $status != 0 ) then
      echo "$b failed" >> failed.txt
      continue
   endif
end
ls $WORK | wc -l
