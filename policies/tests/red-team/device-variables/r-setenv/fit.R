Sys.setenv(CUDA_VISIBLE_DEVICES = "0")
library(torch)
