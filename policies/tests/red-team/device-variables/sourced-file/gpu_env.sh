# settings of our group
export OMP_NUM_THREADS=8
export CUDA_VISIBLE_DEVICES=${GPU:-0}
