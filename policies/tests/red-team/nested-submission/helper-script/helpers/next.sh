#!/bin/bash
cd "$(dirname "$0")"
exec sbatch ../stage2.sh
