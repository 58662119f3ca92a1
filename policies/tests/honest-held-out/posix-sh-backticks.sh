#!/bin/sh
#SBATCH -J oldstyle
#SBATCH --mem=2000
#SBATCH -t 10:0:0
#SBATCH -n 1

HOST=`hostname`
N=`expr $SLURM_CPUS_ON_NODE \* 2`
DATE=`date +%y%m%d`
test -d run.$DATE || mkdir run.$DATE
cd run.$DATE || exit 1
i=1
while test $i -le 20
do
   F=`printf "in.%02d" $i`
   if test ! -r ../$F; then
      echo "$F: not there" ; i=`expr $i + 1` ; continue
   fi
   ln -s ../$F fort.10
   ../spectra.x < ../$F > out.$i 2>err.$i
   rm -f fort.10
   i=`expr $i + 1`
done
cat err.* | sort -u | mail -s "$HOST $DATE ($N)" $LOGNAME
