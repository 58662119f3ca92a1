import torch
from transformers import pipeline

pipe = pipeline("summarization", model="t5-small", device=0 if torch.cuda.is_available() else -1)
print(pipe("some text")[0]["summary_text"])
