from pathlib import Path

Path("generated.sh").write_text("export CUDA_VISIBLE_DEVICES=0\n")
