#!/bin/bash
#SBATCH --mem=12G -c 4 -t 6:00:00
java -Xmx10g -jar picard.jar MarkDuplicates I=in.bam O=out.bam M=m.txt
