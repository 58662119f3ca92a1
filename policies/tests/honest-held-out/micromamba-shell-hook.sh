#!/usr/bin/env bash
#SBATCH -c 4 --mem=6G
#SBATCH -t 90:00
#SBATCH -J qiime2
eval "$(micromamba shell hook --shell bash)"
micromamba activate qiime2-2023.9
qiime tools import --type 'SampleData[PairedEndSequencesWithQuality]' --input-path manifest.tsv --output-path demux.qza --input-format PairedEndFastqManifestPhred33V2
qiime dada2 denoise-paired --i-demultiplexed-seqs demux.qza --p-trunc-len-f 240 --p-trunc-len-r 200 \
   --p-n-threads 4 --o-table table.qza --o-representative-sequences rep.qza --o-denoising-stats stats.qza
micromamba deactivate
micromamba run -n picrust2 picrust2_pipeline.py -s rep.fna -i table.biom -o picrust2 -p 4
