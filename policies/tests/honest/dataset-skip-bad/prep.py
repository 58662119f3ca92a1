import glob

from PIL import Image

bad = []
for path in glob.glob("img/*.jpg"):
    try:
        Image.open(path).verify()
    except OSError:
        bad.append(path)
        continue
print(len(bad), "bad files")
