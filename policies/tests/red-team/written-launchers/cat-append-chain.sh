#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cat > s.sh <<'EOF'
#!/bin/bash
echo start
EOF
cat >> s.sh <<'EOF'
sbatch more.sh
EOF
chmod +x s.sh && ./s.sh
