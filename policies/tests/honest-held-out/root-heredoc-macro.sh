#!/bin/bash
#SBATCH --job-name=ana
#SBATCH --mem=6G
#SBATCH --time=03:00:00
cat > draw.C <<'EOF'
void draw(const char* f = "all.root") {
  TFile in(f);
  auto t = (TTree*)in.Get("B4");
  t->Draw("Eabs>>h(100,0,800)", "Eabs>0", "goff");
  printf("mean %g\n", ((TH1*)gDirectory->Get("h"))->GetMean());
}
EOF
root -l -b -q 'draw.C("out/all.root")' < /dev/null
python3 -m analysis.fit --in out/all.root --model gauss+exp --plots plots/
