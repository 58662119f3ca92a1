from transformers import AutoModel

model = AutoModel.from_pretrained("gpt2", device_map={"": "cuda:1"})
