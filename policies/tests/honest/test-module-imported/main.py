import blocks

print(blocks.width())
