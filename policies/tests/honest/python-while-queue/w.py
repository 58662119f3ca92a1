import queue

from jobs import process_item

tasks = queue.Queue()
for name in ("a", "b"):
    tasks.put(name)
while True:
    try:
        item = tasks.get_nowait()
    except queue.Empty:
        break
    process_item(item)
