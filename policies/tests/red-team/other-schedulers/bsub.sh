#!/bin/bash
#BSUB -n 64
#BSUB -M 8000000
./a
